// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- InitAll.cpp - Registration of everything in PGKP -------------------===//

#include "pgkp/InitAll.h"

#include "pgkp/Codegen/Passes.h"
#include "pgkp/Dialect/IR/PGKPDialect.h"
#include "pgkp/Dialect/Transforms/BufferizableOpInterfaceImpl.h"

using namespace mlir;

void pgkp::registerAllPGKPDialects(DialectRegistry &registry) {
  registry.insert<PGKPDialect>();
  registerBufferizableOpInterfaceExternalModels(registry);
}

void pgkp::registerAllPGKPPasses() { registerPGKPCodegenPasses(); }
