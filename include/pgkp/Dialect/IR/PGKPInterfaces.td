// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PGKPInterfaces.td - Interfaces of the pgkp dialect --*- tablegen -*-===//

#ifndef PGKP_DIALECT_IR_PGKPINTERFACES_TD
#define PGKP_DIALECT_IR_PGKPINTERFACES_TD

include "mlir/IR/OpBase.td"

def PGKP_PreparableOpInterface : OpInterface<"PreparableOpInterface"> {
  let description = [{
    An operation that runs a kernel which can be prepared beforehand. Passes
    that place prepares work on this interface only, so other dialects' launch
    operations join by attaching an external model.
  }];
  let cppNamespace = "::mlir::pgkp";
  let methods = [
    InterfaceMethod<[{
        Returns the symbol of the kernel that this operation runs.
      }],
      "::mlir::SymbolRefAttr", "getKernelRef">,
    InterfaceMethod<[{
        Returns the kernel's extents vector, as values or constants that are
        available at this operation.
      }],
      "::llvm::SmallVector<::mlir::OpFoldResult>", "getExtents">,
    InterfaceMethod<[{
        Builds, at the builder's insertion point, the operation that prepares
        this operation's kernel for the given extents vector, and returns it.
        `slack` is the expected time until the use, in seconds.
      }],
      "::mlir::Operation *", "buildPrepare",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::mlir::ValueRange":$extents, "double":$probability,
           "double":$slack, "::mlir::pgkp::Stage":$stage,
           "::mlir::pgkp::Provenance":$provenance)>,
    InterfaceMethod<[{
        Returns the operation that holds the kernel's source, or null where it
        is not in the module.
      }],
      "::mlir::Operation *", "getKernelSource",
      (ins "::mlir::SymbolTableCollection &":$symbolTables)>,
    InterfaceMethod<[{
        Returns the cost of one dispatch over the extents vector, or null where
        it is unknown.
      }],
      "::mlir::pgkp::CostAttr", "getCostHint",
      (ins "::mlir::SymbolTableCollection &":$symbolTables),
      /*methodBody=*/[{}], /*defaultImplementation=*/[{ return {}; }]>
  ];
}

#endif // PGKP_DIALECT_IR_PGKPINTERFACES_TD
