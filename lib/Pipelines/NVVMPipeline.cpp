// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pgkp/Codegen/Passes.h"
#include "pgkp/Pipelines/Pipelines.h"

using namespace mlir;
using namespace mlir::pgkp;

void mlir::pgkp::buildToNVVMPipeline(OpPassManager &pm,
                                     const NVVMPipelineOptions &options) {
  buildPreparePipeline(pm, PreparePipelineOptions());
  CodegenNVVMPassOptions codegen;
  codegen.chip = options.chip;
  codegen.features = options.features;
  pm.addPass(createCodegenNVVMPass(codegen));
  pm.addPass(createNVVMToPTXPass());
}

void mlir::pgkp::registerNVVMPipeline() {
  PassPipelineRegistration<NVVMPipelineOptions>(
      "pgkp-to-nvvm-pipeline",
      "pgkp-prepare-pipeline, then PTX for every kernel", buildToNVVMPipeline);
}
