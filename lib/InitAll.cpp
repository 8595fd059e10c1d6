// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- InitAll.cpp - Registration of everything in PGKP -------------------===//

#include "pgkp/InitAll.h"

#include "pgkp/Codegen/Passes.h"
#include "pgkp/Conversion/Passes.h"
#include "pgkp/Dialect/IR/PGKPDialect.h"
#include "pgkp/Dialect/Transforms/BufferizableOpInterfaceImpl.h"
#include "pgkp/Pipelines/Pipelines.h"
#include "pgkp/Target/Passes.h"
#include "pgkp/Transforms/Passes.h"

using namespace mlir;

void pgkp::registerAllPGKPDialects(DialectRegistry &registry) {
  registry.insert<PGKPDialect>();
  registerBufferizableOpInterfaceExternalModels(registry);
}

void pgkp::registerAllPGKPPasses() {
  registerPGKPTransformsPasses();
  registerPGKPCodegenPasses();
  registerPGKPTargetPasses();
  registerPGKPConversionPasses();
  registerPGKPPipelines();
}
