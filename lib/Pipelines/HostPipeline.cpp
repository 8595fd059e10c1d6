// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"
#include "pgkp/Codegen/Host.h"
#include "pgkp/Codegen/Passes.h"
#include "pgkp/Dialect/IR/PGKPOps.h"
#include "pgkp/Pipelines/Pipelines.h"

using namespace mlir;
using namespace mlir::pgkp;

namespace {
/// Copies each kernel into a module of its own: host code generation replaces a
/// kernel, and dispatches refer to it until they are lowered.
struct IsolateKernelsPass
    : public PassWrapper<IsolateKernelsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(IsolateKernelsPass)

  StringRef getArgument() const final { return "pgkp-isolate-kernels"; }
  StringRef getDescription() const final {
    return "Copy each kernel into a module of its own";
  }

  void runOnOperation() override {
    SymbolTable table(getOperation());
    OpBuilder builder(&getContext());
    for (KernelOp kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>())) {
      builder.setInsertionPointAfter(kernel);
      auto module = ModuleOp::create(builder, kernel.getLoc(),
                                     (kernel.getSymName() + "_host").str());
      table.insert(module);
      builder.setInsertionPointToStart(module.getBody());
      builder.clone(*kernel);
    }
  }
};
} // namespace

void mlir::pgkp::buildToHostPipeline(OpPassManager &pm,
                                     const PreparePipelineOptions &options) {
  buildPreparePipeline(pm, options);
  pm.addPass(std::make_unique<IsolateKernelsPass>());
  OpPassManager &kernels = pm.nest<ModuleOp>();
  kernels.addPass(createCodegenHostPass());
  buildHostLowering(kernels, /*entry=*/true);
  buildProgramLoweringPipeline(pm);
}
