// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pgkp/Pipelines/Pipelines.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"
#include "pgkp/Conversion/Passes.h"
#include "pgkp/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::pgkp;

void mlir::pgkp::buildPreparePipeline(OpPassManager &pm,
                                      const PreparePipelineOptions &options) {
  // Dispatches are planned per entry, so what entries call becomes part of
  // them.
  pm.addPass(createInlinerPass());
  pm.addPass(createOutlineKernelsPass());
  // Kernels are compared and hashed by their bytecode: one canonical form.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createInferRootsPass());
  AnnotateSpecializationsPassOptions annotate;
  annotate.profile = options.profile;
  annotate.maxClasses = options.maxClasses;
  pm.addPass(createAnnotateSpecializationsPass(annotate));
  pm.addPass(createInsertPreparePass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createPlanPreparePass());
}

void mlir::pgkp::buildProgramLoweringPipeline(OpPassManager &pm) {
  pm.addPass(createEntryDestinationsPass());
  // Results are computed in the entry's destinations.
  pm.addPass(bufferization::createEmptyTensorEliminationPass());
  pm.addPass(bufferization::createEmptyTensorToAllocTensorPass());
  pm.addPass(bufferization::createOneShotBufferizePass());
  pm.addPass(createCSEPass());
  pm.addPass(createCanonicalizerPass());
  bufferization::buildBufferDeallocationPipeline(
      pm, bufferization::BufferDeallocationPipelineOptions());
  pm.addPass(createConvertBufferizationToMemRefPass());
  pm.addPass(createConvertLinalgToLoopsPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertPGKPToLLVMPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createSymbolDCEPass());
}

void mlir::pgkp::registerPGKPPipelines() {
  registerNVVMPipeline();
  PassPipelineRegistration<PreparePipelineOptions>(
      "pgkp-prepare-pipeline",
      "Outline kernels, infer roots, annotate specializations, place prepares",
      buildPreparePipeline);
  PassPipelineRegistration<PreparePipelineOptions>(
      "pgkp-to-host-pipeline",
      "pgkp-prepare-pipeline, then LLVM dialect for the program and every "
      "kernel",
      buildToHostPipeline);
  PassPipelineRegistration<>(
      "pgkp-program-pipeline",
      "Lower what pgkp-prepare-pipeline made to an LLVM-dialect program",
      [](OpPassManager &pm) { buildProgramLoweringPipeline(pm); });
}
