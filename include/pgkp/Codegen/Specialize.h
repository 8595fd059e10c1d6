// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Specialize.h - Facts become IR ---------------------------*- C++ -*-===//

#ifndef PGKP_CODEGEN_SPECIALIZE_H
#define PGKP_CODEGEN_SPECIALIZE_H

#include "pgkp/Dialect/IR/PGKPOps.h"

namespace mlir {
namespace pgkp {

/// Discardable attribute of a kernel: the facts it was specialized for.
inline constexpr StringLiteral kFactsAttr = "pgkp.facts";

/// Specializes the kernel's body for the conjunction of `facts`; its signature
/// stays. Fails, with a diagnostic on the kernel, if a fact refers to an extent
/// that the kernel does not have, or if facts exclude each other.
LogicalResult specializeKernel(KernelOp kernel, ArrayRef<FactAttr> facts);

} // namespace pgkp
} // namespace mlir

#endif // PGKP_CODEGEN_SPECIALIZE_H
