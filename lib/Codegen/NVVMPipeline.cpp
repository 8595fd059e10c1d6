// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pgkp/Codegen/NVVM.h"
#include "pgkp/Codegen/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mlir::pgkp;

namespace {
struct NVVMPipelineOptions : public PassPipelineOptions<NVVMPipelineOptions> {
  Option<std::string> chip{*this, "chip",
                           llvm::cl::desc("Chip to compile for"),
                           llvm::cl::init("sm_90")};
  Option<std::string> features{*this, "features",
                               llvm::cl::desc("PTX version as +ptxNN"),
                               llvm::cl::init("")};
};
} // namespace

void mlir::pgkp::registerNVVMPipeline() {
  PassPipelineRegistration<NVVMPipelineOptions>(
      "pgkp-to-nvvm-pipeline",
      "From a module of entries to kernels with PTX: pgkp-prepare-pipeline, "
      "then code generation for NVVM",
      [](OpPassManager &pm, const NVVMPipelineOptions &options) {
        CodegenNVVMPassOptions codegen;
        codegen.chip = options.chip;
        codegen.features = options.features;
        pm.addPass(createCodegenNVVMPass(codegen));
        pm.addPass(createNVVMToPTXPass());
      });
}
