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

/// The configuration to compile first for a class, by rules: few rows of a
/// large product are "skinny", a single row of a small one is a "gemv", else
/// "direct" or "packed" by operand size. Sizes of register blocks that it
/// leaves open follow from the target. The answer need not be in the
/// configuration space.
ConfigAttr chooseConfig(KernelOp kernel, ArrayRef<FactAttr> facts);

/// What the rules say where there are at most `mostRows` rows.
struct FewRows {
  ConfigAttr config; ///< null: the class has no such rows, or the same rules
  int64_t mostRows = 0;
};
/// For code that decides when it runs, as the class leaves the rows open: the
/// wrong script costs a factor.
FewRows chooseConfigForFewRows(KernelOp kernel, ArrayRef<FactAttr> facts);

} // namespace pgkp
} // namespace mlir

#endif // PGKP_CODEGEN_FAMILIES_H
