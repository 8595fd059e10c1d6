// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pgkp/Codegen/Driver.h"

#include "DriverImpl.h"
#include "DriverObject.h"

#include "pgkp-c/program.h"
#include "pgkp/Codegen/Host.h"
#include "pgkp/Codegen/NVVM.h"
#include "pgkp/Codegen/Specialize.h"
#include "pgkp/InitAll.h"
#include "pgkp/Target/Manifest.h"
#include "schema/ContentKey.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <algorithm>
#include <ctime>
#include <link.h>

using namespace mlir;
using namespace mlir::pgkp;
using rt::Code;
using rt::makeError;

//===----------------------------------------------------------------------===//
// Identity
//===----------------------------------------------------------------------===//

/// The executable's build id (a note of the linker), 16 hexadecimal digits.
static std::string getBuildId() {
  std::string id;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *data) {
        auto &id = *static_cast<std::string *>(data);
        for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr) &header = info->dlpi_phdr[i];
          if (header.p_type != PT_NOTE)
            continue;
          const char *at =
              reinterpret_cast<const char *>(info->dlpi_addr + header.p_vaddr);
          const char *end = at + header.p_memsz;
          while (at + sizeof(ElfW(Nhdr)) <= end) {
            const auto *note = reinterpret_cast<const ElfW(Nhdr) *>(at);
            const char *name = at + sizeof(*note);
            const auto *value = reinterpret_cast<const uint8_t *>(
                name + (note->n_namesz + 3) / 4 * 4);
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
                StringRef(name, 3) == "GNU") {
              for (unsigned j = 0; j < std::min(note->n_descsz, 8u); ++j)
                id += llvm::hexdigit(value[j] >> 4, true),
                    id += llvm::hexdigit(value[j] & 15, true);
              return 1;
            }
            at = reinterpret_cast<const char *>(value) +
                 (note->n_descsz + 3) / 4 * 4;
          }
        }
        return 1; // the first object is the executable; no other matters
      },
      &id);
  return id;
}

std::string mlir::pgkp::getProducer() {
  static const std::string producer = [] {
    std::string id = getBuildId();
    return "pgkp-" PGKP_VERSION_STRING + (id.empty() ? "" : "-" + id) +
           " llvm-" LLVM_VERSION_STRING;
  }();
  return producer;
}

schema::TargetT mlir::pgkp::getHostTarget() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  auto has = [&](std::initializer_list<StringRef> names) {
    return llvm::all_of(names,
                        [&](StringRef name) { return features.lookup(name); });
  };
  schema::TargetT target;
  target.device = schema::DeviceKind::host;
  target.chip = "x86-64";
  if (!has({"cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"}))
    return target;
  target.chip = "x86-64-v2";
  if (!has({"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}))
    return target;
  target.chip = "x86-64-v3";
  if (has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}))
    target.chip = "x86-64-v4";
  return target;
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

std::string ErrorCollector::format(Diagnostic &diagnostic) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (auto where = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
    stream << where.getFilename().getValue() << ':' << where.getLine() << ':'
           << where.getColumn() << ": ";
  stream << diagnostic;
  for (char &c : text)
    if (static_cast<unsigned char>(c) < ' ')
      c = ' ';
  return text;
}

static float getCpuMs() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1e3f + time.tv_nsec * 1e-6f;
}

//===----------------------------------------------------------------------===//
// Schema to attributes
//===----------------------------------------------------------------------===//

static rt::Expected<SmallVector<FactAttr>>
getFacts(MLIRContext &ctx, ArrayRef<schema::Fact> facts) {
  SmallVector<FactAttr> result;
  for (const schema::Fact &fact : facts) {
    switch (fact.kind()) {
    case schema::FactKind::eq:
      if (fact.a() >= 0) {
        result.push_back(FactAttr::getEqual(&ctx, fact.dim(), fact.a()));
        continue;
      }
      break;
    case schema::FactKind::divisible:
      if (fact.a() >= 1) {
        if (fact.a() > 1)
          result.push_back(FactAttr::getDivisible(&ctx, fact.dim(), fact.a()));
        continue;
      }
      break;
    case schema::FactKind::range:
      if (fact.a() >= 0 && fact.a() <= fact.b()) {
        result.push_back(
            FactAttr::getRange(&ctx, fact.dim(), fact.a(), fact.b()));
        continue;
      }
      break;
    }
    return makeError(Code::invalidArgument,
                     "fact about extent {} has bounds {} and {}", fact.dim(),
                     fact.a(), fact.b());
  }
  return result;
}

static ConfigAttr getConfig(MLIRContext &ctx, const schema::Config *config) {
  if (!config || !config->items() || config->items()->size() == 0)
    return {};
  Builder b(&ctx);
  NamedAttrList items;
  for (const schema::ConfigItem *item : *config->items()) {
    StringRef name(item->name()->c_str(), item->name()->size());
    if (item->kind() == schema::ConfigValueKind::integer)
      items.set(name, b.getI64IntegerAttr(item->integer()));
    else
      items.set(name,
                b.getStringAttr(item->text() ? item->text()->c_str() : ""));
  }
  return ConfigAttr::get(&ctx, items.getDictionary(&ctx));
}

//===----------------------------------------------------------------------===//
// The compiler
//===----------------------------------------------------------------------===//

HostCompiler::Impl::Impl() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllToLLVMIRTranslations(registry);
  registerAllPGKPDialects(registry);
  registerNVVMCodegen(registry);
  ctx =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  ctx->loadAllAvailableDialects();
}

HostCompiler::Impl::~Impl() = default;

rt::Expected<llvm::TargetMachine *>
HostCompiler::Impl::getMachine(const schema::TargetT &target) {
  std::string key = target.chip + " " + target.features;
  std::unique_ptr<llvm::TargetMachine> &machine = machines[key];
  if (!machine) {
    PGKP_ASSIGN(machine, createHostMachine(target.chip, target.features));
  }
  return machine.get();
}

rt::Expected<OwningOpRef<ModuleOp>>
HostCompiler::Impl::parse(const std::vector<uint8_t> &source,
                          const std::string &name) {
  ErrorCollector errors(*ctx);
  // The parser wants a terminated buffer, and the name appears in locations.
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(
      StringRef(reinterpret_cast<const char *>(source.data()), source.size()),
      name);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(sources, ParserConfig(ctx.get()));
  if (!module)
    return makeError(Code::invalidArgument, "{}",
                     errors.take(name + ": not a valid module"));
  return module;
}

rt::Expected<std::vector<uint8_t>> HostCompiler::Impl::makeImage(
    ModuleOp module, const schema::TargetT &target, schema::Pipeline pipeline,
    const rt::Digest *buildId, const std::string &name,
    schema::StageTimesT &times) {
  StageClock clock;
  PGKP_ASSIGN(llvm::TargetMachine * machine, getMachine(target));
  ErrorCollector errors(*ctx);
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(module, llvmContext, name);
  if (!code)
    return makeError(Code::internal, "{}: {}", name,
                     errors.take("cannot be translated to LLVM IR"));
  if (buildId) {
    auto *bytes = llvm::ConstantDataArray::get(
        llvmContext, llvm::ArrayRef<uint8_t>(buildId->bytes));
    auto *id = new llvm::GlobalVariable(
        *code, bytes->getType(), /*isConstant=*/true,
        llvm::GlobalValue::ExternalLinkage, bytes, PGKP_BUILD_ID_SYMBOL);
    id->setAlignment(llvm::Align(32));
  }
  PGKP_ASSIGN(auto object, emitObject(*code, *machine, pipeline));
  times.compile_ms += clock.lap();
  PGKP_ASSIGN(auto image, linkShared(object, name));
  times.link_ms += clock.lap();
  return image;
}

static HostTarget describe(const llvm::TargetMachine &machine) {
  HostTarget target;
  const llvm::MCSubtargetInfo &features = *machine.getMCSubtargetInfo();
  if (features.checkFeatures("+avx512f"))
    target.vectorBits = 512;
  else if (!features.checkFeatures("+avx2"))
    target.vectorBits = 128;
  return target;
}

rt::Status HostCompiler::Impl::compileHost(ModuleOp module,
                                           const VariantRequest &request,
                                           schema::ArtifactT &artifact) {
  StageClock clock;
  PGKP_ASSIGN(llvm::TargetMachine * machine, getMachine(request.target));
  auto kernel = *module.getOps<KernelOp>().begin();
  artifact.stages = std::make_unique<schema::StageTimesT>();
  {
    ErrorCollector errors(*ctx);
    FailureOr<func::FuncOp> function = generateHostKernel(
        kernel, getConfig(*ctx, request.config), describe(*machine));
    if (failed(function))
      return makeError(Code::unsupported, "{}",
                       errors.take("kernel '" + request.kernel +
                                   "' cannot be compiled for the host"));
    ExprAttr workspace = getWorkspace(*function);
    if (!workspace.isConstant(0))
      artifact.workspace =
          std::make_unique<schema::ExprT>(exportExpr(workspace));
    PassManager pm(ctx.get(), ModuleOp::getOperationName());
    pm.enableVerifier(false);
    buildHostLowering(pm, /*entry=*/true);
    if (failed(pm.run(module)))
      return makeError(Code::unsupported, "{}",
                       errors.take("kernel '" + request.kernel +
                                   "' cannot be lowered to LLVM"));
  }
  artifact.stages->generate_ms = clock.lap();
  PGKP_ASSIGN(artifact.code,
              makeImage(module, request.target, request.pipeline,
                        &request.contentKey, request.kernel, *artifact.stages));
  artifact.symbol = PGKP_KERNEL_SYMBOL;
  return {};
}

static schema::ParamKind exportKind(NVVMParam::Kind kind) {
  switch (kind) {
  case NVVMParam::Kind::Pointer:
    return schema::ParamKind::pointer;
  case NVVMParam::Kind::Scalar:
    return schema::ParamKind::scalar;
  case NVVMParam::Kind::Extent:
    return schema::ParamKind::extent;
  }
  llvm_unreachable("unknown kind of parameter");
}

/// Of an argument's elements in memory; an i1 takes a byte.
static uint8_t getElementBytes(KernelOp kernel, const NVVMParam &param) {
  if (param.kind == NVVMParam::Kind::Extent)
    return 0;
  Type element = getElementTypeOrSelf(kernel.getArgumentTypes()[param.index]);
  return element.isIndex() ? 8 : (element.getIntOrFloatBitWidth() + 7) / 8;
}

rt::Status HostCompiler::Impl::compilePTX(KernelOp kernel,
                                          ArrayRef<FactAttr> facts,
                                          const VariantRequest &request,
                                          schema::ArtifactT &artifact) {
  StageClock clock;
  artifact.stages = std::make_unique<schema::StageTimesT>();
  ErrorCollector errors(*ctx);
  FailureOr<NVVMKernel> compiled = compileKernelToPTX(
      kernel, facts, request.target.chip, request.target.features,
      getConfig(*ctx, request.config));
  if (failed(compiled))
    return makeError(Code::unsupported, "{}",
                     errors.take("kernel '" + request.kernel +
                                 "' cannot be compiled for '" +
                                 request.target.chip + "'"));
  artifact.code.assign(compiled->ptx.begin(), compiled->ptx.end());
  artifact.symbol = compiled->symbol;
  artifact.launch = std::make_unique<schema::LaunchT>();
  for (ExprAttr expr : compiled->launch.grid)
    artifact.launch->grid.push_back(
        std::make_unique<schema::ExprT>(exportExpr(expr)));
  artifact.launch->block.assign(compiled->launch.block.begin(),
                                compiled->launch.block.end());
  artifact.launch->shared_bytes = compiled->launch.sharedBytes;
  for (const NVVMParam &param : compiled->launch.params)
    artifact.params.emplace_back(exportKind(param.kind),
                                 getElementBytes(kernel, param), param.index);
  artifact.stages->generate_ms = clock.lap();
  return {};
}

rt::Expected<schema::ArtifactT>
HostCompiler::Impl::compile(const VariantRequest &original) {
  float cpuStart = getCpuMs();
  VariantRequest request = original;
  bool isHost = request.target.device == schema::DeviceKind::host;
  if (isHost && request.format != schema::CodeFormat::elf)
    return makeError(Code::unsupported,
                     "code format '{}' on the host, expected 'elf'",
                     schema::EnumNameCodeFormat(request.format));
  if (!isHost && (request.target.device != schema::DeviceKind::cuda ||
                  request.format != schema::CodeFormat::ptx))
    return makeError(
        Code::unsupported,
        "code format '{}' for a '{}' device, expected 'ptx' for 'cuda'",
        schema::EnumNameCodeFormat(request.format),
        schema::EnumNameDeviceKind(request.target.device));
  if (request.contentKey.isZero()) {
    flatbuffers::FlatBufferBuilder target;
    target.Finish(schema::Target::Pack(target, &request.target));
    request.contentKey = rt::contentKey(
        request.kernelHash, request.facts, request.config,
        *flatbuffers::GetRoot<schema::Target>(target.GetBufferPointer()),
        request.format, request.pipeline, getProducer());
  }

  PGKP_ASSIGN(OwningOpRef<ModuleOp> module,
              parse(request.module, request.kernel));
  auto kernels = module->getOps<KernelOp>();
  if (kernels.empty() || std::next(kernels.begin()) != kernels.end())
    return makeError(
        Code::invalidArgument, "{}: the module has {} kernels, expected one",
        request.kernel, std::distance(kernels.begin(), kernels.end()));
  PGKP_ASSIGN(SmallVector<FactAttr> facts, getFacts(*ctx, request.facts));
  {
    ErrorCollector errors(*ctx);
    // The device's emitter takes facts itself and keeps the body as it is.
    if (isHost && failed(specializeKernel(*kernels.begin(), facts)))
      return makeError(Code::invalidArgument, "{}: {}", request.kernel,
                       errors.take("cannot be specialized"));
  }

  schema::ArtifactT artifact;
  if (isHost) {
    PGKP_TRY(compileHost(*module, request, artifact));
  } else {
    PGKP_TRY(compilePTX(*kernels.begin(), facts, request, artifact));
  }
  artifact.content_key = toSchema(request.contentKey);
  artifact.kernel_hash = toSchema(request.kernelHash);
  artifact.kernel = request.kernel;
  artifact.facts = request.facts;
  if (request.config)
    artifact.config.reset(request.config->UnPack());
  artifact.target = std::make_unique<schema::TargetT>(request.target);
  artifact.format = request.format;
  artifact.pipeline = request.pipeline;
  artifact.code_hash = toSchema(rt::hashBytes(artifact.code));
  artifact.producer = getProducer();
  artifact.stages->cpu_ms = getCpuMs() - cpuStart;
  return artifact;
}

HostCompiler::HostCompiler() : impl(std::make_unique<Impl>()) {}
HostCompiler::~HostCompiler() = default;

rt::Expected<schema::ArtifactT>
HostCompiler::compile(const VariantRequest &request) {
  return impl->compile(request);
}
