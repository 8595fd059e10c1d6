// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Named pipelines and the functions that build them.
#ifndef PGKP_PIPELINES_PIPELINES_H
#define PGKP_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::pgkp {

struct PreparePipelineOptions
    : public PassPipelineOptions<PreparePipelineOptions> {
  PassOptions::Option<std::string> profile{
      *this, "profile", llvm::cl::desc("A profile of earlier runs (PGKF)"),
      llvm::cl::init("")};
  PassOptions::Option<unsigned> maxClasses{
      *this, "max-classes",
      llvm::cl::desc("Largest number of classes per kernel"),
      llvm::cl::init(9)};
};

/// `pgkp-prepare-pipeline`, on a module of upstream dialects on tensors:
/// outlines kernels, infers roots, annotates specializations, inserts and plans
/// prepares. The result is what the manifest is exported from.
void buildPreparePipeline(OpPassManager &pm,
                          const PreparePipelineOptions &options);

/// `pgkp-program-pipeline`, on what the prepare pipeline made: from entries on
/// tensors to an LLVM-dialect module without undefined symbols. Kernels are
/// erased. Needs registerAllExtensions (bufferization and conversion
/// interfaces).
void buildProgramLoweringPipeline(OpPassManager &pm);

/// `pgkp-to-host-pipeline`, on a module of upstream dialects on tensors: the
/// prepare pipeline, then the LLVM-dialect program, and for each kernel a
/// nested module `<kernel>_host` that exports it as `pgkp_kernel`.
void buildToHostPipeline(OpPassManager &pm,
                         const PreparePipelineOptions &options);

struct NVVMPipelineOptions : public PassPipelineOptions<NVVMPipelineOptions> {
  PassOptions::Option<std::string> chip{
      *this, "chip", llvm::cl::desc("Chip to compile for, as LLVM names it"),
      llvm::cl::init("sm_90")};
  PassOptions::Option<std::string> features{
      *this, "features",
      llvm::cl::desc("PTX version as +ptxNN; empty: the least that the chip "
                     "needs"),
      llvm::cl::init("")};
};

/// `pgkp-to-nvvm-pipeline`, on a module of upstream dialects on tensors: the
/// prepare pipeline, then a gpu.binary with PTX text beside every kernel.
void buildToNVVMPipeline(OpPassManager &pm, const NVVMPipelineOptions &options);

/// Registers `pgkp-to-nvvm-pipeline`.
void registerNVVMPipeline();

/// Registers every pipeline of PGKP.
void registerPGKPPipelines();

} // namespace mlir::pgkp

#endif // PGKP_PIPELINES_PIPELINES_H
