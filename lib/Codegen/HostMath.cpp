// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Mathematical functions as arithmetic: host artifacts call no libm.
#include "HostMath.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

LogicalResult mlir::pgkp::host::approximateMath(func::FuncOp function) {
  MLIRContext *ctx = function.getContext();
  // First what has no polynomial of its own, in terms of what has.
  {
    RewritePatternSet patterns(ctx);
    math::populateExpansionPatterns(patterns, {"sinh", "cosh", "tan", "asinh",
                                               "acosh", "atanh", "exp2", "powf",
                                               "fpowi", "rsqrt", "clampf"});
    if (failed(applyPatternsGreedily(function, std::move(patterns))))
      return function.emitOpError("cannot be expanded to arithmetic");
  }
  RewritePatternSet patterns(ctx);
  populateMathPolynomialApproximationPatterns(patterns);
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  arith::populateExpandBFloat16Patterns(patterns);
  if (failed(applyPatternsGreedily(function, std::move(patterns))))
    return function.emitOpError("cannot be expanded to arithmetic");
  return success();
}
