// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The tensor half of host code generation: a kernel as a function on
/// memrefs whose body is still tensors, simplified and fused over rows.
#ifndef PGKP_LIB_CODEGEN_HOSTTENSORS_H
#define PGKP_LIB_CODEGEN_HOSTTENSORS_H

#include "pgkp/Dialect/IR/PGKPOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::pgkp::host {

/// A private function after the kernel with the kernel's body: memref arguments
/// with their extents attached, a workspace last, results stored into the
/// destinations. Null, with a diagnostic, for a type that has no memory layout.
func::FuncOp createHostFunction(KernelOp kernel);

/// Named operations, concatenations and paddings become generics, slices and
/// fills; elementwise chains become one operation.
LogicalResult simplifyTensors(func::FuncOp function);

/// Runs row reductions and what depends on them one row at a time, so that
/// temporaries are rows. Does nothing where the body has no such shape.
void fuseRows(func::FuncOp function);

/// Gives every use of a fill a fill of its own. Results that start from one
/// shared fill would be built in one destination, each over the other.
void separateFills(func::FuncOp function);

} // namespace mlir::pgkp::host

#endif // PGKP_LIB_CODEGEN_HOSTTENSORS_H
