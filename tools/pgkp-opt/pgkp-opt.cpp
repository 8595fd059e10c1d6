// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- pgkp-opt.cpp - Run PGKP and upstream passes on a module ------------===//

#include "pgkp/Dialect/Test/TestDialect.h"
#include "pgkp/InitAll.h"

#include "mlir/IR/Dialect.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"

using namespace mlir;

int main(int argc, char **argv) {
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "pgkp-opt " PGKP_VERSION_STRING " (LLVM " LLVM_VERSION_STRING ")\n";
  });
  registerAllPasses();
  pgkp::registerAllPGKPPasses();
  pgkp::registerTestDialectPasses();

  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  pgkp::registerAllPGKPDialects(registry);
  return asMainReturnCode(
      MlirOptMain(argc, argv, "PGKP module optimizer", registry));
}
