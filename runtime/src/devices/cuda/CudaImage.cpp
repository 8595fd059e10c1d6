// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices/cuda/CudaImage.h"

#include "pgkp-c/program.h"

#include <algorithm>
#include <cstring>

namespace pgkp::rt::cuda {
namespace {

/// A kernel may have this much dynamic shared memory without asking.
constexpr unsigned kFreeSharedBytes = 48 << 10;

int tensorMapType(schema::ElementType element) {
  switch (element) {
  case schema::ElementType::i1:
  case schema::ElementType::i8:
    return 0; // CU_TENSOR_MAP_DATA_TYPE_UINT8
  case schema::ElementType::i16:
    return 1;
  case schema::ElementType::i32:
    return 3;
  case schema::ElementType::i64:
  case schema::ElementType::index:
    return 5;
  case schema::ElementType::f16:
    return 6;
  case schema::ElementType::f32:
    return 7;
  case schema::ElementType::f64:
    return 8;
  case schema::ElementType::bf16:
    return 9;
  }
  return 0;
}

Expected<LaunchPlan::Map> parseMap(const schema::TensorMap &map,
                                   size_t numExtents) {
  LaunchPlan::Map result{map.arg(),
                         tensorMapType(map.element()),
                         static_cast<int>(map.swizzle()),
                         {},
                         {},
                         {}};
  auto parseAll = [&](const auto *tables, std::vector<Expr> &out) -> Status {
    for (const schema::Expr *table : *tables) {
      PGKP_ASSIGN(Expr expr, Expr::parse(table, numExtents));
      out.push_back(std::move(expr));
    }
    return {};
  };
  PGKP_TRY(parseAll(map.sizes(), result.sizes));
  if (map.strides())
    PGKP_TRY(parseAll(map.strides(), result.strides));
  PGKP_TRY(parseAll(map.box(), result.box));
  return result;
}

/// The artifact passed checkArtifact with any number of extents and arguments;
/// how many a call must bring is counted here.
Expected<std::unique_ptr<LaunchPlan>> makePlan(const schema::Artifact &artifact,
                                               const std::string &what) {
  constexpr size_t anyNumber = 64;
  PGKP_TRY(checkArtifact(artifact, anyNumber, UINT16_MAX));
  const schema::Launch *launch = artifact.launch();
  if (!launch || !artifact.params())
    return makeError(Code::corrupt, "{}: no launch geometry or parameters",
                     what);
  auto plan = std::make_unique<LaunchPlan>();
  plan->kernel = what;
  for (unsigned i = 0; i < 3; ++i) {
    PGKP_ASSIGN(plan->grid[i], Expr::parse(launch->grid()->Get(i), anyNumber));
    plan->block[i] = launch->block()->Get(i);
  }
  plan->sharedBytes = launch->shared_bytes();
  plan->programmatic = launch->programmatic();
  if (artifact.tensor_maps())
    for (const schema::TensorMap *map : *artifact.tensor_maps()) {
      PGKP_ASSIGN(LaunchPlan::Map parsed, parseMap(*map, anyNumber));
      plan->leastArgs = std::max<size_t>(plan->leastArgs, parsed.arg + 1u);
      plan->maps.push_back(std::move(parsed));
    }
  for (const schema::Param *param : *artifact.params()) {
    plan->params.push_back(*param);
    if (param->kind() == schema::ParamKind::extent)
      plan->leastExtents =
          std::max<size_t>(plan->leastExtents, param->index() + 1u);
    else if (param->kind() == schema::ParamKind::pointer ||
             param->kind() == schema::ParamKind::scalar)
      plan->leastArgs = std::max<size_t>(plan->leastArgs, param->index() + 1u);
  }
  return plan;
}

/// A call's parameters: where each value lies, on the stack for usual kernels.
class Parameters {
public:
  static constexpr size_t kFew = 64, kFewMaps = 4;

  Parameters(size_t count, size_t maps) {
    if (count > kFew) [[unlikely]] {
      manyValues.resize(count);
      manyAddresses.resize(count);
      values = manyValues.data();
      addresses = manyAddresses.data();
    }
    if (maps > kFewMaps) [[unlikely]]
      manyMaps.resize(maps);
  }

  void add(uint64_t value) {
    values[count] = value;
    addresses[count] = &values[count];
    ++count;
  }
  void addAt(const void *address) {
    addresses[count++] = const_cast<void *>(address);
  }
  TensorMap &map(size_t i) {
    return manyMaps.empty() ? fewMaps[i] : manyMaps[i];
  }
  void **list() { return addresses; }

private:
  uint64_t fewValues[kFew];
  void *fewAddresses[kFew];
  TensorMap fewMaps[kFewMaps];
  std::vector<uint64_t> manyValues;
  std::vector<void *> manyAddresses;
  std::vector<TensorMap> manyMaps;
  uint64_t *values = fewValues;
  void **addresses = fewAddresses;
  size_t count = 0;
};

uint64_t dataOf(const void *header, unsigned elementBytes) {
  const auto *memref = static_cast<const pgkp_memref_header_t *>(header);
  return reinterpret_cast<uint64_t>(memref->aligned) +
         static_cast<uint64_t>(memref->offset) * elementBytes;
}

/// False: no valid size.
template <typename T>
bool evaluateAll(const std::vector<Expr> &exprs,
                 std::span<const int64_t> extents, int64_t least, T *out) {
  for (size_t i = 0; i < exprs.size(); ++i) {
    const auto value = exprs[i].evaluate(extents);
    if (!value || *value < least)
      return false;
    out[i] = static_cast<T>(*value);
  }
  return true;
}

Status encode(const Driver &driver, const LaunchPlan &plan,
              const LaunchPlan::Map &map, const LaunchArgs &call,
              TensorMap &out) {
  constexpr size_t kMaxRank = 5;
  uint64_t sizes[kMaxRank], strides[kMaxRank] = {};
  uint32_t box[kMaxRank], steps[kMaxRank] = {1, 1, 1, 1, 1};
  if (!evaluateAll(map.sizes, call.extents, 1, sizes) ||
      !evaluateAll(map.strides, call.extents, 16, strides) ||
      !evaluateAll(map.box, call.extents, 1, box))
    return makeError(Code::invalidArgument,
                     "{}: these extents give no tensor map", plan.kernel);
  constexpr int noInterleave = 0, promoteTo256Bytes = 3, zeroFill = 0;
  const uint64_t data = dataOf(call.args[map.arg], 0);
  return driver.check(
      driver.encodeTiled(
          &out, map.dataType, static_cast<uint32_t>(map.sizes.size()),
          reinterpret_cast<void *>(data), sizes, strides, box, steps,
          noInterleave, map.swizzle, promoteTo256Bytes, zeroFill),
      "cuTensorMapEncodeTiled");
}

} // namespace

Status LaunchPlan::launch(const Driver &driver, CudaStream &stream,
                          const LaunchArgs &call) const {
  if (call.args.size() < leastArgs || call.extents.size() < leastExtents)
    return makeError(Code::invalidArgument,
                     "{} takes {} arguments and {} extents; got {} and {}",
                     kernel, leastArgs, leastExtents, call.args.size(),
                     call.extents.size());
  LaunchConfig config{};
  static constexpr int64_t limits[3] = {0x7fffffff, 0xffff, 0xffff};
  for (unsigned i = 0; i < 3; ++i) {
    const auto blocks = grid[i].evaluate(call.extents);
    if (!blocks || *blocks < 0 || *blocks > limits[i])
      return makeError(Code::invalidArgument,
                       "{}: {} blocks in dimension {}; expected 0 to {}",
                       kernel, blocks.value_or(-1), i, limits[i]);
    if (*blocks == 0)
      return {};
    config.grid[i] = static_cast<unsigned>(*blocks);
    config.block[i] = block[i];
  }
  config.sharedBytes = sharedBytes;
  config.stream = stream.handle();
  LaunchAttribute attribute{};
  if (programmatic) {
    attribute.id = launchProgrammaticSerialization;
    attribute.value.programmaticSerializationAllowed = 1;
    config.attributes = &attribute;
    config.numAttributes = 1;
  }

  Parameters list(params.size(), maps.size());
  for (const schema::Param &param : params)
    switch (param.kind()) {
    case schema::ParamKind::pointer:
      list.add(dataOf(call.args[param.index()], param.element_bytes()));
      break;
    case schema::ParamKind::extent:
      list.addAt(&call.extents[param.index()]);
      break;
    case schema::ParamKind::scalar:
      list.addAt(call.args[param.index()]);
      break;
    case schema::ParamKind::tensor_map: {
      TensorMap &map = list.map(param.index());
      PGKP_TRY(encode(driver, *this, maps[param.index()], call, map));
      list.addAt(&map);
      break;
    }
    case schema::ParamKind::workspace: {
      PGKP_ASSIGN(void *memory, stream.workspace(call.workspaceBytes));
      list.add(reinterpret_cast<uint64_t>(memory));
      break;
    }
    case schema::ParamKind::counters: {
      PGKP_ASSIGN(void *memory, stream.counters());
      list.add(reinterpret_cast<uint64_t>(memory));
      break;
    }
    }
  if (stream.capturing()) [[unlikely]]
    pinned.store(true, std::memory_order_relaxed);
  stream.watch->begin();
  const Result result = driver.launch(&config, function, list.list(), nullptr);
  stream.watch->end();
  if (result == kSuccess) [[likely]]
    return {};
  Status status = driver.check(result, "cuLaunchKernelEx");
  return makeError(status.error().code, "{}: {}", kernel,
                   status.error().message);
}

Expected<std::unique_ptr<Image>>
CudaImage::load(const Driver &driver, ContextHandle context,
                const schema::Artifact &artifact) {
  const std::string what = fmt::format("kernel '{}'", artifact.kernel()->str());
  auto check = [&](Result result, const char *call) -> Status {
    Status status = driver.check(result, call);
    if (!status)
      status.error().message = what + ": " + status.error().message;
    return status;
  };
  PGKP_ASSIGN(auto plan, makePlan(artifact, what));
  if (!plan->maps.empty() && !driver.encodeTiled)
    return makeError(Code::unsupported,
                     "{} uses tensor maps; this driver cannot make them", what);
  LaunchPlan &launch = *plan;
  std::unique_ptr<CudaImage> image(
      new CudaImage(driver, context, std::move(plan), artifact.code()->size()));
  // Aligned as the driver wants an ELF file, which a FlatBuffer's bytes are
  // not.
  std::vector<uint64_t> code((artifact.code()->size() + 7) / 8);
  std::memcpy(code.data(), artifact.code()->data(), artifact.code()->size());
  PGKP_TRY(check(driver.moduleLoad(&image->module, code.data()),
                 "cuModuleLoadData"));
  const std::string symbol = artifact.symbol()->str();
  if (driver.moduleFunction(&launch.function, image->module, symbol.c_str()) !=
      kSuccess)
    return makeError(Code::corrupt, "{}: symbol '{}' is missing", what, symbol);
  // Now, not at the first launch: with lazy loading the code is still not on
  // the device.
  if (driver.functionLoad)
    PGKP_TRY(check(driver.functionLoad(launch.function), "cuFuncLoad"));
  if (launch.sharedBytes > kFreeSharedBytes)
    PGKP_TRY(check(
        driver.functionSetAttribute(launch.function, functionMaxDynamicShared,
                                    static_cast<int>(launch.sharedBytes)),
        "cuFuncSetAttribute"));
  return image;
}

CudaImage::~CudaImage() {
  if (!module || plan->pinned.load(std::memory_order_relaxed))
    return;
  const CurrentContext current(driver, context);
  const OutsideCapture outside(driver);
  driver.moduleUnload(module);
}

} // namespace pgkp::rt::cuda
