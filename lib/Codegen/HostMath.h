// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef PGKP_LIB_CODEGEN_HOSTMATH_H
#define PGKP_LIB_CODEGEN_HOSTMATH_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::pgkp::host {

/// Replaces math operations by polynomials and what they need (f32; narrower
/// types compute in f32). Largest errors over the usual ranges: exp, log and
/// rsqrt 1 ulp, tanh and erf 5 ulp; sin and cos are usable for |x| < 100 only.
/// What has no expansion stays and fails when the artifact is linked.
LogicalResult approximateMath(func::FuncOp function);

} // namespace mlir::pgkp::host

#endif // PGKP_LIB_CODEGEN_HOSTMATH_H
