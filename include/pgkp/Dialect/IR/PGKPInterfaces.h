// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PGKPInterfaces.h - Interfaces of the pgkp dialect --------*- C++ -*-===//

#ifndef PGKP_DIALECT_IR_PGKPINTERFACES_H
#define PGKP_DIALECT_IR_PGKPINTERFACES_H

#include "pgkp/Dialect/IR/PGKPAttrs.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"

#include "pgkp/Dialect/IR/PGKPInterfaces.h.inc"

#endif // PGKP_DIALECT_IR_PGKPINTERFACES_H
