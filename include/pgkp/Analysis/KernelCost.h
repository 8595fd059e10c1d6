// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// What one dispatch of a kernel costs.
#ifndef PGKP_ANALYSIS_KERNELCOST_H
#define PGKP_ANALYSIS_KERNELCOST_H

#include "pgkp/Dialect/IR/PGKPOps.h"

namespace mlir::pgkp {

/// Floating-point operations (loop trip counts times operations in the body)
/// and bytes of arguments read and written, over the kernel's symbols. Null for
/// a declaration and where a loop's extent does not follow from the symbols.
CostAttr computeCost(KernelOp kernel);

} // namespace mlir::pgkp

#endif // PGKP_ANALYSIS_KERNELCOST_H
