// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PGKPDialect.h - The pgkp dialect -------------------------*- C++ -*-===//

#ifndef PGKP_DIALECT_IR_PGKPDIALECT_H
#define PGKP_DIALECT_IR_PGKPDIALECT_H

#include "mlir/IR/Dialect.h"

#include "pgkp/Dialect/IR/PGKPDialect.h.inc"

#endif // PGKP_DIALECT_IR_PGKPDIALECT_H
