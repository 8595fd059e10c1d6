// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "DriverObject.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;
using ::pgkp::rt::Code;
using ::pgkp::rt::Expected;
using ::pgkp::rt::makeError;

// llvm::Expected hides behind the using declaration above.
namespace mlir::pgkp {

::pgkp::rt::Expected<std::unique_ptr<TargetMachine>>
createHostMachine(StringRef cpu, StringRef features) {
  std::string error;
  Triple triple(sys::getDefaultTargetTriple());
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return makeError(Code::unsupported, "no code generator for '{}'",
                     triple.str());
  // Asked first, as a target machine only warns of a CPU that it does not know.
  std::unique_ptr<MCSubtargetInfo> known(
      target->createMCSubtargetInfo(triple, "", ""));
  if (!known || !known->isCPUStringValid(cpu))
    return makeError(Code::invalidArgument, "unknown CPU '{}' for '{}'",
                     cpu.str(), triple.str());
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Fast;
  std::unique_ptr<TargetMachine> machine(
      target->createTargetMachine(triple, cpu, features, options, Reloc::PIC_,
                                  std::nullopt, CodeGenOptLevel::Default));
  if (!machine)
    return makeError(Code::unsupported, "no code generator for '{}'",
                     triple.str());
  return machine;
}

::pgkp::rt::Expected<SmallVector<char, 0>>
emitObject(Module &module, TargetMachine &machine,
           ::pgkp::schema::Pipeline pipeline) {
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(machine.getTargetTriple());
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    function.addFnAttr("no-builtins");
    function.addFnAttr("no-trapping-math", "true");
    function.addFnAttr("frame-pointer", "none");
    function.addFnAttr(Attribute::NoUnwind);
  }

  {
    LoopAnalysisManager loops;
    FunctionAnalysisManager functions;
    CGSCCAnalysisManager graphs;
    ModuleAnalysisManager modules;
    PassBuilder builder(&machine);
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(graphs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, graphs, modules);
    ModulePassManager passes;
    if (pipeline == ::pgkp::schema::Pipeline::full)
      passes = builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3);
    else if (Error error =
                 builder.parsePassPipeline(passes, "function(sroa,early-cse)"))
      return makeError(Code::internal, "{}", toString(std::move(error)));
    passes.run(module, modules);
  }

  SmallVector<char, 0> object;
  raw_svector_ostream stream(object);
  legacy::PassManager codegen;
  if (machine.addPassesToEmitFile(codegen, stream, nullptr,
                                  CodeGenFileType::ObjectFile))
    return makeError(Code::internal, "the target cannot emit objects");
  codegen.run(module);
  return object;
}

} // namespace mlir::pgkp
