// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef PGKP_TARGET_PASSES
#define PGKP_TARGET_PASSES

include "mlir/Pass/PassBase.td"

def PrintManifestPass : Pass<"pgkp-print-manifest", "::mlir::ModuleOp"> {
  let summary = "Print a module's manifest, for tests and people";
  let description = [{
    Exports the manifest as a bundle would hold it and prints it as text, one
    line per kernel, class, entry, argument, result and site. Changes nothing.
    See the manifest schema for what each field means.
  }];
  let options = [
    Option<"hashes", "hashes", "bool", /*default=*/"false",
           "Print the kernels' content hashes">,
  ];
  let dependentDialects = ["::mlir::pgkp::PGKPDialect"];
}

#endif // PGKP_TARGET_PASSES
