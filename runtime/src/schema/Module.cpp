// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "schema/Module.h"

#include "schema/ContentKey.h"
#include "schema/Envelope.h"

#include <algorithm>
#include <unordered_set>

namespace pgkp::rt {

static constexpr size_t kMaxDims = 64;
static constexpr size_t kMaxName = 1024;
static constexpr size_t kMaxKeys = size_t{1} << 20;

// Names go to logs and to dlsym: no spaces, quotes of ours or control
// characters.
static bool validName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c > ' ' && c < 0x7f && c != '\''; });
}

static std::string_view view(const flatbuffers::String *text) {
  return text ? std::string_view(text->c_str(), text->size())
              : std::string_view();
}

template <typename Vector> static size_t sizeOf(const Vector *vector) {
  return vector ? vector->size() : 0;
}

// The FlatBuffers verifier lets any number through as an enum.
template <typename Enum> static bool inRange(Enum value) {
  return value >= Enum::MIN && value <= Enum::MAX;
}

static std::span<const uint8_t>
bytesOf(const flatbuffers::Vector<uint8_t> *vector) {
  return vector ? std::span(vector->data(), vector->size())
                : std::span<const uint8_t>();
}

/// Adds where an error is to its message.
template <typename T, typename... Args>
static Expected<T> within(Expected<T> result,
                          fmt::format_string<Args...> format, Args &&...args) {
  if (!result)
    result.error().message = fmt::format(format, std::forward<Args>(args)...) +
                             ": " + result.error().message;
  return result;
}

using ExprTables = flatbuffers::Vector<flatbuffers::Offset<schema::Expr>>;

static Expected<std::vector<Expr>> parseAll(const ExprTables *tables,
                                            size_t numSymbols) {
  std::vector<Expr> result;
  if (!tables)
    return result;
  if (tables->size() > kMaxDims)
    return makeError(Code::corrupt, "{} dimensions, at most {} are allowed",
                     tables->size(), kMaxDims);
  for (const schema::Expr *table : *tables) {
    PGKP_ASSIGN(Expr expr, Expr::parse(table, numSymbols));
    result.push_back(std::move(expr));
  }
  return result;
}

// A shape, unlike a site's extents, has an expression for every dimension.
static Expected<std::vector<Expr>> parseShape(const ExprTables *tables,
                                              size_t numSymbols) {
  PGKP_ASSIGN(std::vector<Expr> shape, parseAll(tables, numSymbols));
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i].empty())
      return makeError(Code::corrupt, "dimension {} has no expression", i);
  return shape;
}

static Status checkFact(const schema::Fact &fact, size_t numDims) {
  if (!inRange(fact.kind()))
    return makeError(Code::corrupt, "unknown kind of fact {}",
                     static_cast<int>(fact.kind()));
  if (fact.dim() >= numDims)
    return makeError(Code::corrupt, "fact about extent {}, there are {}",
                     fact.dim(), numDims);
  switch (fact.kind()) {
  case schema::FactKind::eq:
    if (fact.a() < 0)
      return makeError(Code::corrupt, "extent {} == {} is negative", fact.dim(),
                       fact.a());
    break;
  case schema::FactKind::divisible:
    if (fact.a() <= 0)
      return makeError(Code::corrupt, "divisor {} of extent {} is not positive",
                       fact.a(), fact.dim());
    break;
  case schema::FactKind::range:
    if (fact.a() > fact.b())
      return makeError(Code::corrupt, "range [{}, {}] of extent {} is empty",
                       fact.a(), fact.b(), fact.dim());
    break;
  }
  return {};
}

static Status checkConfig(const schema::Config *config) {
  if (config && config->items())
    for (const schema::ConfigItem *item : *config->items())
      if (!inRange(item->kind()) || !validName(view(item->name())))
        return makeError(Code::corrupt,
                         "configuration has an invalid item '{}'",
                         view(item->name()));
  return {};
}

/// How many things of this kind a parameter's index chooses from.
static size_t numOfKind(const schema::Param &param,
                        const schema::Artifact &artifact, size_t numDims,
                        size_t numArgs) {
  switch (param.kind()) {
  case schema::ParamKind::extent:
    return numDims;
  case schema::ParamKind::tensor_map:
    return sizeOf(artifact.tensor_maps());
  case schema::ParamKind::workspace:
  case schema::ParamKind::counters:
    return 1;
  default:
    return numArgs;
  }
}

static Status checkTensorMap(const schema::TensorMap &map, size_t numDims,
                             size_t numArgs) {
  if (map.arg() >= numArgs)
    return makeError(Code::corrupt, "refers to argument {} of {}", map.arg(),
                     numArgs);
  if (!inRange(map.element()) || !inRange(map.swizzle()))
    return makeError(Code::corrupt, "unknown element type or swizzle");
  const size_t rank = sizeOf(map.sizes());
  if (rank < 1 || rank > 5 || sizeOf(map.box()) != rank ||
      sizeOf(map.strides()) + 1 != rank)
    return makeError(Code::corrupt,
                     "{} sizes, {} strides, {} box sizes; expected n, n - 1 "
                     "and n, n at most 5",
                     rank, sizeOf(map.strides()), sizeOf(map.box()));
  for (const auto *exprs : {map.sizes(), map.strides(), map.box()})
    PGKP_TRY(parseShape(exprs, numDims));
  return {};
}

Status checkArtifact(const schema::Artifact &artifact, size_t numDims,
                     size_t numArgs) {
  if (!artifact.target() || !inRange(artifact.target()->device()) ||
      !inRange(artifact.format()))
    return makeError(Code::corrupt, "artifact has an unknown target or format");
  if (!validName(view(artifact.kernel())) ||
      !validName(view(artifact.symbol())))
    return makeError(Code::corrupt,
                     "artifact has an invalid kernel or symbol name");
  if (artifact.facts())
    for (const schema::Fact *fact : *artifact.facts())
      PGKP_TRY(checkFact(*fact, numDims));
  PGKP_TRY(checkConfig(artifact.config()));
  PGKP_TRY(within(Expr::parse(artifact.workspace(), numDims), "workspace"));
  if (const schema::Launch *launch = artifact.launch()) {
    if (sizeOf(launch->grid()) != 3 || sizeOf(launch->block()) != 3)
      return makeError(Code::corrupt,
                       "launch needs three grid and three block dimensions");
    PGKP_TRY(within(parseShape(launch->grid(), numDims), "grid"));
  }
  for (size_t i = 0; i < sizeOf(artifact.tensor_maps()); ++i)
    PGKP_TRY(within(
        checkTensorMap(*artifact.tensor_maps()->Get(static_cast<unsigned>(i)),
                       numDims, numArgs),
        "tensor map {}", i));
  if (artifact.params())
    for (const schema::Param *param : *artifact.params()) {
      if (!inRange(param->kind()))
        return makeError(Code::corrupt, "unknown kind of parameter {}",
                         static_cast<int>(param->kind()));
      if (param->element_bytes() > 8)
        return makeError(Code::corrupt, "parameter with elements of {} bytes",
                         static_cast<int>(param->element_bytes()));
      const size_t limit = numOfKind(*param, artifact, numDims, numArgs);
      if (param->index() >= limit)
        return makeError(Code::corrupt, "parameter refers to number {} of {}",
                         param->index(), limit);
    }
  return {};
}

static Expected<KernelInfo> loadKernel(const schema::Kernel &table) {
  KernelInfo info;
  info.name = view(table.name());
  if (!validName(info.name))
    return makeError(Code::corrupt, "invalid name");
  info.family = view(table.family());
  if (!info.family.empty() && !validName(info.family))
    return makeError(Code::corrupt, "invalid family name");
  if (!table.hash())
    return makeError(Code::corrupt, "no hash");
  info.hash = toDigest(*table.hash());
  info.bytecode = bytesOf(table.bytecode());

  const size_t numDims = sizeOf(table.dims());
  if (numDims > kMaxDims)
    return makeError(Code::corrupt, "{} extents, at most {} are allowed",
                     numDims, kMaxDims);
  for (size_t i = 0; i < numDims; ++i)
    info.dims.emplace_back(view(table.dims()->Get(static_cast<unsigned>(i))));

  for (size_t i = 0; i < sizeOf(table.args()); ++i) {
    const schema::KernelArg &arg = *table.args()->Get(static_cast<unsigned>(i));
    if (!inRange(arg.element()))
      return makeError(Code::corrupt, "argument {} has an unknown element type",
                       i);
    PGKP_ASSIGN(std::vector<Expr> shape,
                within(parseShape(arg.shape(), numDims), "argument {}", i));
    info.args.push_back({arg.element(), std::move(shape), arg.output()});
  }

  std::unordered_set<Digest, DigestHash> seen;
  for (size_t i = 0; i < sizeOf(table.classes()); ++i) {
    const schema::Class &klass =
        *table.classes()->Get(static_cast<unsigned>(i));
    KernelInfo::ClassInfo entry{{}, klass.probability(), klass.provenance()};
    if (!inRange(entry.provenance) ||
        !(entry.probability >= 0 && entry.probability <= 1))
      return makeError(Code::corrupt,
                       "class {} has an unknown provenance or a probability "
                       "outside [0, 1]",
                       i);
    if (sizeOf(klass.facts()) == 0)
      return makeError(Code::corrupt,
                       "class {} has no facts; the generic class is implied",
                       i);
    for (const schema::Fact *fact : *klass.facts()) {
      PGKP_TRY(within(checkFact(*fact, numDims), "class {}", i));
      entry.facts.push_back(*fact);
    }
    if (!seen.insert(keyDigest(info.hash, entry.facts)).second)
      return makeError(Code::corrupt, "class {} repeats an earlier one", i);
    info.classes.push_back(std::move(entry));
  }

  for (size_t i = 0; i < sizeOf(table.configs()); ++i) {
    const schema::Config *config =
        table.configs()->Get(static_cast<unsigned>(i));
    PGKP_TRY(within(checkConfig(config), "configuration {}", i));
    schema::ConfigT unpacked;
    config->UnPackTo(&unpacked);
    info.configs.push_back(std::move(unpacked));
  }
  PGKP_ASSIGN(info.flops, within(Expr::parse(table.flops(), numDims), "flops"));
  PGKP_ASSIGN(info.bytes, within(Expr::parse(table.bytes(), numDims), "bytes"));

  for (size_t i = 0; i < sizeOf(table.generic()); ++i) {
    const schema::Artifact &artifact =
        *table.generic()->Get(static_cast<unsigned>(i));
    PGKP_TRY(within(checkArtifact(artifact, numDims, info.args.size()),
                    "generic artifact {}", i));
    if (sizeOf(artifact.facts()) != 0)
      return makeError(Code::corrupt, "generic artifact {} has facts", i);
    if (!artifact.kernel_hash() ||
        toDigest(*artifact.kernel_hash()) != info.hash)
      return makeError(Code::corrupt,
                       "generic artifact {} is of another kernel", i);
  }
  return info;
}

static Expected<SiteInfo> loadSite(const schema::Site &table, size_t numRoots,
                                   std::span<const KernelInfo> kernels) {
  SiteInfo site;
  site.kernel = table.kernel();
  if (site.kernel >= kernels.size())
    return makeError(Code::corrupt, "kernel number {}, there are {}",
                     site.kernel, kernels.size());
  site.probability = table.probability();
  if (!(site.probability >= 0 && site.probability <= 1))
    return makeError(Code::corrupt, "probability is outside [0, 1]");
  PGKP_ASSIGN(site.extents, parseAll(table.extents(), numRoots));
  const size_t expected = kernels[site.kernel].dims.size();
  if (!site.extents.empty() && site.extents.size() != expected)
    return makeError(Code::corrupt, "{} extents, kernel '{}' has {}",
                     site.extents.size(), kernels[site.kernel].name, expected);
  site.derivable = site.extents.size() == expected &&
                   std::none_of(site.extents.begin(), site.extents.end(),
                                [](const Expr &e) { return e.empty(); });
  return site;
}

static Expected<EntryInfo> loadEntry(const schema::Entry &table,
                                     std::span<const KernelInfo> kernels) {
  EntryInfo info;
  info.name = view(table.name());
  info.symbol = view(table.symbol());
  if (!validName(info.name) || !validName(info.symbol))
    return makeError(Code::corrupt, "invalid name or symbol");
  const size_t numRoots = sizeOf(table.roots());
  if (numRoots > kMaxDims)
    return makeError(Code::corrupt, "{} roots, at most {} are allowed",
                     numRoots, kMaxDims);
  for (size_t i = 0; i < numRoots; ++i) {
    info.roots.emplace_back(view(table.roots()->Get(static_cast<unsigned>(i))));
    if (!validName(info.roots.back()))
      return makeError(Code::corrupt, "root {} has an invalid name", i);
  }

  for (size_t i = 0; i < sizeOf(table.args()); ++i) {
    const schema::EntryArg &arg = *table.args()->Get(static_cast<unsigned>(i));
    EntryInfo::Arg entry{std::string(view(arg.name())),
                         arg.element(),
                         {},
                         arg.persistent(),
                         std::nullopt};
    if (!inRange(entry.element))
      return makeError(Code::corrupt, "argument {} has an unknown element type",
                       i);
    PGKP_ASSIGN(entry.shape,
                within(parseShape(arg.shape(), numRoots), "argument {}", i));
    if (arg.bounded()) {
      if (arg.low() > arg.high())
        return makeError(Code::corrupt,
                         "argument {} has the empty range [{}, {}]", i,
                         arg.low(), arg.high());
      entry.range.emplace(arg.low(), arg.high());
    }
    info.args.push_back(std::move(entry));
  }

  for (size_t i = 0; i < sizeOf(table.results()); ++i) {
    const schema::EntryResult &result =
        *table.results()->Get(static_cast<unsigned>(i));
    EntryInfo::Result entry{result.element(), {}, result.carries()};
    if (!inRange(entry.element))
      return makeError(Code::corrupt, "result {} has an unknown element type",
                       i);
    PGKP_ASSIGN(entry.shape,
                within(parseShape(result.shape(), numRoots), "result {}", i));
    if (entry.carries < -1 ||
        entry.carries >= static_cast<int64_t>(info.args.size()))
      return makeError(Code::corrupt,
                       "result {} carries argument {}, there are {}", i,
                       entry.carries, info.args.size());
    if (entry.carries >= 0) {
      const EntryInfo::Arg &arg = info.args[entry.carries];
      if (arg.element != entry.element ||
          arg.shape.size() != entry.shape.size())
        return makeError(Code::corrupt,
                         "result {} carries argument {} of another type", i,
                         entry.carries);
    }
    info.results.push_back(std::move(entry));
  }

  for (size_t i = 0; i < sizeOf(table.sites()); ++i) {
    PGKP_ASSIGN(SiteInfo site,
                within(loadSite(*table.sites()->Get(static_cast<unsigned>(i)),
                                numRoots, kernels),
                       "site {}", i));
    info.sites.push_back(std::move(site));
  }

  for (size_t i = 0; i < sizeOf(table.limits()); ++i) {
    const schema::Limit &limit = *table.limits()->Get(static_cast<unsigned>(i));
    EntryInfo::Limit entry;
    PGKP_ASSIGN(entry.value,
                within(Expr::parse(limit.value(), numRoots), "limit {}", i));
    PGKP_ASSIGN(entry.bound,
                within(Expr::parse(limit.bound(), numRoots), "limit {}", i));
    entry.text = limit.text() ? std::string(view(limit.text())) : "";
    info.limits.push_back(std::move(entry));
  }
  return info;
}

std::optional<std::string>
EntryInfo::brokenLimit(std::span<const int64_t> rootValues) const {
  for (const Limit &limit : limits) {
    const auto value = limit.value.evaluate(rootValues);
    const auto bound = limit.bound.evaluate(rootValues);
    if (!value || !bound)
      return fmt::format("{} has no value", limit.text);
    if (*value > *bound)
      return fmt::format("{} is {}; expected at most {}", limit.text, *value,
                         *bound);
  }
  return std::nullopt;
}

Expected<std::shared_ptr<const Module>>
Module::load(std::vector<uint8_t> bytes) {
  auto module = std::make_shared<Module>();
  module->storage = std::move(bytes);
  const std::vector<uint8_t> &storage = module->storage;
  flatbuffers::Verifier verifier(storage.data(), storage.size());
  if (storage.size() < 8 || !schema::VerifyBundleBuffer(verifier))
    return makeError(Code::corrupt, "bundle of {} bytes does not verify",
                     storage.size());
  const schema::Bundle *bundle = schema::GetBundle(storage.data());
  module->bundle = bundle;
  if (bundle->format_version() != kFormatVersion)
    return makeError(Code::unsupported,
                     "bundle has format version {}, this build reads {}",
                     bundle->format_version(), kFormatVersion);
  module->moduleName = view(bundle->module_());
  // For people only: anything but control characters.
  if (module->moduleName.size() > kMaxName ||
      std::any_of(module->moduleName.begin(), module->moduleName.end(),
                  [](unsigned char c) { return c < ' ' || c == 0x7f; }))
    return makeError(Code::corrupt, "bundle has an invalid module name");
  if (bundle->module_hash())
    module->moduleHash = toDigest(*bundle->module_hash());
  if (bundle->host_target() && !inRange(bundle->host_target()->device()))
    return makeError(Code::corrupt, "bundle has an unknown host target");

  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < sizeOf(bundle->kernels()); ++i) {
    const schema::Kernel &table =
        *bundle->kernels()->Get(static_cast<unsigned>(i));
    PGKP_ASSIGN(KernelInfo info,
                within(loadKernel(table), "bundle '{}', kernel {} '{}'",
                       module->moduleName, i, view(table.name())));
    if (!names.insert(view(table.name())).second)
      return makeError(Code::corrupt, "bundle '{}' has two kernels named '{}'",
                       module->moduleName, info.name);
    info.firstKey = static_cast<KeyId>(module->keyInfos.size());
    if (module->keyInfos.size() + info.classes.size() + 1 > kMaxKeys)
      return makeError(Code::corrupt, "bundle '{}' has more than {} keys",
                       module->moduleName, kMaxKeys);
    for (size_t c = 0; c <= info.classes.size(); ++c)
      module->keyInfos.push_back(
          {static_cast<uint32_t>(i), static_cast<uint32_t>(c),
           keyDigest(info.hash,
                     c < info.classes.size()
                         ? std::span<const schema::Fact>(info.classes[c].facts)
                         : std::span<const schema::Fact>())});
    module->kernelInfos.push_back(std::move(info));
  }

  names.clear();
  for (size_t i = 0; i < sizeOf(bundle->entries()); ++i) {
    const schema::Entry &table =
        *bundle->entries()->Get(static_cast<unsigned>(i));
    PGKP_ASSIGN(EntryInfo info,
                within(loadEntry(table, module->kernelInfos),
                       "bundle '{}', entry {} '{}'", module->moduleName, i,
                       view(table.name())));
    if (!names.insert(view(table.name())).second)
      return makeError(Code::corrupt, "bundle '{}' has two entries named '{}'",
                       module->moduleName, info.name);
    module->entryInfos.push_back(std::move(info));
  }
  return module;
}

std::optional<uint32_t> Module::findEntry(std::string_view entry) const {
  for (size_t i = 0; i < entryInfos.size(); ++i)
    if (entryInfos[i].name == entry)
      return static_cast<uint32_t>(i);
  return std::nullopt;
}

std::span<const uint8_t> Module::program() const {
  return bytesOf(bundle->program());
}

const schema::Artifact *Module::generic(uint32_t kernel,
                                        schema::DeviceKind device,
                                        std::string_view chip) const {
  const auto *artifacts = bundle->kernels()->Get(kernel)->generic();
  if (!artifacts)
    return nullptr;
  for (const schema::Artifact *artifact : *artifacts)
    if (artifact->target()->device() == device &&
        (chip.empty() || view(artifact->target()->chip()) == chip))
      return artifact;
  return nullptr;
}

KeyId Module::classify(uint32_t kernel,
                       std::span<const int64_t> extents) const {
  const KernelInfo &info = kernelInfos[kernel];
  size_t index = 0;
  while (index < info.classes.size() &&
         !holds(info.classes[index].facts, extents))
    ++index;
  return info.firstKey + static_cast<KeyId>(index);
}

std::span<const schema::Fact> Module::facts(KeyId key) const {
  const KeyInfo &info = keyInfos[key];
  const KernelInfo &kernel = kernelInfos[info.kernel];
  if (info.classIndex >= kernel.classes.size())
    return {};
  return kernel.classes[info.classIndex].facts;
}

std::string Module::describe(KeyId key) const {
  return fmt::format("{}[{}]", kernelInfos[keyInfos[key].kernel].name,
                     toString(facts(key)));
}

void Module::expand(uint32_t entry, std::span<const int64_t> roots,
                    std::vector<KeyId> &out) const {
  out.clear();
  std::vector<bool> seen(keyInfos.size());
  int64_t extents[kMaxDims];
  for (const SiteInfo &site : entryInfos[entry].sites) {
    if (!site.derivable)
      continue;
    bool known = true;
    for (size_t i = 0; i < site.extents.size() && known; ++i) {
      const std::optional<int64_t> extent = site.extents[i].evaluate(roots);
      known = extent && *extent >= 0;
      extents[i] = extent.value_or(0);
    }
    if (!known)
      continue;
    const KeyId key =
        classify(site.kernel, std::span(extents, site.extents.size()));
    if (!seen[key]) {
      seen[key] = true;
      out.push_back(key);
    }
  }
}

bool Module::dynamic() const {
  return std::any_of(kernelInfos.begin(), kernelInfos.end(),
                     [](const KernelInfo &k) { return !k.dims.empty(); });
}

} // namespace pgkp::rt
