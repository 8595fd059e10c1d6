// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Families.h - Kernel families and their configurations ----*- C++ -*-===//

#ifndef PGKP_CODEGEN_FAMILIES_H
#define PGKP_CODEGEN_FAMILIES_H

#include "pgkp/Dialect/IR/PGKPOps.h"

namespace mlir {
namespace pgkp {

/// What decides how a kernel is generated and tuned.
enum class Family {
  matmul,       ///< a contraction over one row, column and depth dimension
  batch_matmul, ///< a contraction with further (batch) dimensions
  row,          ///< reductions along rows with elementwise operations
  elementwise,  ///< loops without reductions that compute
  copy,         ///< data movement only
  other
};

StringRef stringifyFamily(Family family);

/// The family of the kernel's body: the first that applies in the order of the
/// enum. A declaration is `other`.
Family getFamily(KernelOp kernel);

/// The host configurations worth trying, an array of #pgkp.config. The first is
/// {script = "auto"}, chooseConfig applied to the class at hand: never bad.
ArrayAttr getConfigSpace(KernelOp kernel);

/// The configuration to compile first for a class, by rules: a single row is a
/// "gemv", few rows are "skinny", else "direct" or "packed" by operand size.
/// The answer need not be in the configuration space.
ConfigAttr chooseConfig(KernelOp kernel, ArrayRef<FactAttr> facts);

} // namespace pgkp
} // namespace mlir

#endif // PGKP_CODEGEN_FAMILIES_H
