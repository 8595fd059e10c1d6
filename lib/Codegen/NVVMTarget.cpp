// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file From the LLVM dialect to PTX text, and what LLVM knows of chips.
#include "pgkp/Codegen/NVVM.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVM/NVVM/Utils.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::pgkp;

static const llvm::Target *lookupNVPTX(std::string &error) {
  NVVM::SerializeGPUModuleBase::init();
  return llvm::TargetRegistry::lookupTarget(llvm::Triple(kNVVMTriple), error);
}

static std::unique_ptr<llvm::TargetMachine>
createTargetMachine(const llvm::Target &target, StringRef chip,
                    StringRef features) {
  llvm::TargetOptions options;
  // a * b + c in one rounding, as nvcc does.
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  return std::unique_ptr<llvm::TargetMachine>(target.createTargetMachine(
      llvm::Triple(kNVVMTriple), chip, features, options, std::nullopt,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

static bool emitAssembly(llvm::Module &module, llvm::TargetMachine &machine,
                         std::string &assembly) {
  llvm::SmallString<0> buffer;
  llvm::raw_svector_ostream os(buffer);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, os, nullptr,
                                  llvm::CodeGenFileType::AssemblyFile))
    return false;
  passes.run(module);
  assembly = buffer.str().str();
  return true;
}

/// PTX version in tenths that LLVM picks for a chip if none is asked for; 0
/// if the text has none.
static unsigned leastPTXVersion(const llvm::Target &target, StringRef chip) {
  auto machine = createTargetMachine(target, chip, "");
  llvm::LLVMContext context;
  llvm::Module empty("empty", context);
  empty.setTargetTriple(llvm::Triple(kNVVMTriple));
  empty.setDataLayout(machine->createDataLayout());
  std::string assembly;
  if (!emitAssembly(empty, *machine, assembly))
    return 0;
  StringRef version = StringRef(assembly).split(".version").second.ltrim();
  unsigned major = 0, minor = 0;
  if (version.consumeInteger(10, major) || !version.consume_front(".") ||
      version.consumeInteger(10, minor))
    return 0;
  return major * 10 + minor;
}

LogicalResult mlir::pgkp::checkNVVMTarget(Location loc, StringRef chip,
                                          StringRef features) {
  std::string error;
  const llvm::Target *target = lookupNVPTX(error);
  if (!target)
    return emitError(loc, "this build of LLVM cannot generate PTX: ") << error;
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      target->createMCSubtargetInfo(llvm::Triple(kNVVMTriple), "", ""));
  if (!chip.starts_with("sm_") || !info->isCPUStringValid(chip))
    return emitError(loc, "unknown chip '")
           << chip << "'; expected one that LLVM " << LLVM_VERSION_STRING
           << " knows, such as sm_80, sm_90 or sm_90a";
  if (features.empty())
    return success();
  StringRef number = features;
  unsigned version = 0;
  bool known = number.consume_front("+ptx") &&
               !number.getAsInteger(10, version) &&
               llvm::any_of(info->getAllProcessorFeatures(),
                            [&](const llvm::SubtargetFeatureKV &feature) {
                              return features.drop_front() == feature.Key;
                            });
  if (!known)
    return emitError(loc, "unknown features '")
           << features
           << "'; expected none or '+ptxNN' with a PTX version "
              "that LLVM knows";
  unsigned least = leastPTXVersion(*target, chip);
  if (version < least)
    return emitError(loc, "features '")
           << features << "' are too old for chip '" << chip
           << "', which needs at least '+ptx" << least << "'";
  return success();
}

namespace {
/// Keeps LLVM's first error instead of ending the process with it.
struct ErrorKeeper : llvm::DiagnosticHandler {
  explicit ErrorKeeper(std::string &error) : error(error) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() == llvm::DS_Error && error.empty()) {
      llvm::raw_string_ostream os(error);
      llvm::DiagnosticPrinterRawOStream printer(os);
      info.print(printer);
    }
    return true;
  }
  std::string &error;
};
} // namespace

FailureOr<std::string> mlir::pgkp::translateNVVMModule(gpu::GPUModuleOp module,
                                                       NVVMFormat format,
                                                       unsigned optLevel) {
  NVVM::NVVMTargetAttr targetAttr;
  if (ArrayAttr targets = module.getTargetsAttr(); targets && !targets.empty())
    targetAttr = dyn_cast<NVVM::NVVMTargetAttr>(targets[0]);
  if (!targetAttr)
    return emitError(module.getLoc(), "expected a '#nvvm.target'");
  if (failed(checkNVVMTarget(module.getLoc(), targetAttr.getChip(),
                             targetAttr.getFeatures())))
    return failure();
  std::string error;
  const llvm::Target *target = lookupNVPTX(error);
  auto machine = createTargetMachine(*target, targetAttr.getChip(),
                                     targetAttr.getFeatures());

  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<ErrorKeeper>(error));
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(module, context, module.getName());
  if (!llvmModule)
    return emitError(module.getLoc(), "translation to LLVM IR failed");
  llvmModule->setTargetTriple(llvm::Triple(kNVVMTriple));
  llvmModule->setDataLayout(machine->createDataLayout());

  if (format == NVVMFormat::LLVMIR) {
    std::string ir;
    llvm::raw_string_ostream(ir) << *llvmModule;
    return ir;
  }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(machine.get());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  static const llvm::OptimizationLevel levels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
      llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  llvm::OptimizationLevel level = levels[std::min(optLevel, 3u)];
  llvm::ModulePassManager passes =
      level == llvm::OptimizationLevel::O0
          ? builder.buildO0DefaultPipeline(level)
          : builder.buildPerModuleDefaultPipeline(level);
  passes.run(*llvmModule, modules);

  std::string ptx;
  if (!emitAssembly(*llvmModule, *machine, ptx))
    return emitError(module.getLoc(), "this build of LLVM cannot emit PTX");
  if (!error.empty())
    return emitError(module.getLoc(), "LLVM: ") << error;
  if (StringRef(ptx).contains(".extern .func"))
    return emitError(
        module.getLoc(),
        "generated PTX calls an external function; kernels are self-contained");
  return ptx;
}
