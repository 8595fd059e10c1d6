// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PGKPOps.h - Operations of the pgkp dialect ---------------*- C++ -*-===//

#ifndef PGKP_DIALECT_IR_PGKPOPS_H
#define PGKP_DIALECT_IR_PGKPOPS_H

#include "pgkp/Dialect/IR/PGKPAttrs.h"
#include "pgkp/Dialect/IR/PGKPDialect.h"
#include "pgkp/Dialect/IR/PGKPInterfaces.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir {
namespace pgkp {

/// The runtime's preparation state, as a resource of side effects.
struct PreparationResource
    : public SideEffects::Resource::Base<PreparationResource> {
  StringRef getName() final { return "Preparation"; }
};

/// Whether the function is an entry: public, with a body and at least one
/// tensor or memref argument.
bool isEntry(FunctionOpInterface function);

/// The names of an entry's roots in the order in which pgkp.observe takes them:
/// pgkp.roots if present, else the names in pgkp.dims by first appearance.
SmallVector<StringRef> getRootNames(FunctionOpInterface entry);

} // namespace pgkp
} // namespace mlir

#define GET_OP_CLASSES
#include "pgkp/Dialect/IR/PGKPOps.h.inc"

#endif // PGKP_DIALECT_IR_PGKPOPS_H
