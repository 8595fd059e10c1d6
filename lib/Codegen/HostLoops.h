// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file From linalg on memrefs to loops over 1-D vectors.
///
/// One emitter covers matrix products, row reductions, elementwise operations
/// and copies: a nest with one vector dimension, optionally a register block of
/// rows (and columns), packed panels and a blocked reduction. It needs only
/// that the payload maps over vectors, so it cannot fail half way; what does
/// not fit becomes scalar loops.
#ifndef PGKP_LIB_CODEGEN_HOSTLOOPS_H
#define PGKP_LIB_CODEGEN_HOSTLOOPS_H

#include "HostExtents.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::pgkp::host {

/// How one linalg operation becomes a loop nest.
struct NestPlan {
  enum class Mode {
    scalar,   ///< loops around the payload
    parallel, ///< vectors run along the innermost dimension of the result
    reduction ///< vectors run along a reduction and are summed up at its end
  };
  Mode mode = Mode::scalar;
  unsigned vectorDim = 0;
  /// Lanes of successive loops over the vector dimension, descending powers of
  /// two. What is left is masked at the last width, or scalar.
  SmallVector<int64_t, 3> widths;
  bool masked = true;
  /// Register block: `rows` iterations of `rowDim` (and in reduction mode
  /// `cols` of `colDim`) share their loads.
  std::optional<unsigned> rowDim, colDim;
  int64_t rows = 1, cols = 1;
  /// Walk all rows under one panel of the vector dimension, not the reverse.
  bool panelsOutside = false;
  /// Input operand whose panel is copied to contiguous scratch first.
  std::optional<unsigned> packed;
  /// Reduction steps per pass over the result (0: all in one pass).
  int64_t depthBlock = 0;
  /// Reduction steps per iteration of the innermost loop.
  int64_t unroll = 1;
};

/// Register lanes of the target and what tuning chose.
struct NestOptions {
  std::string script; ///< empty: by the rules
  int64_t rows = 0;   ///< 0: by the rules, as all below
  int64_t lanes = 0;
  int64_t cols = 0;
  int64_t depthBlock = 0;
  int64_t unroll = 0;
  int64_t rowLanes = 0;     ///< vector width of row kernels
  int64_t vectorBits = 256; ///< of the target's registers
  bool vectorize = true;
};

/// The rules: which nest suits this operation. Never fails; the answer is
/// legal.
NestPlan planNest(linalg::LinalgOp op, Extents &extents,
                  const NestOptions &options);

/// Replaces the operation by loops. `fill` is a scalar that the (single) result
/// is known to hold on entry, or null.
void emitNest(RewriterBase &rewriter, linalg::LinalgOp op, Extents &extents,
              const NestPlan &plan, Value fill);

} // namespace mlir::pgkp::host

#endif // PGKP_LIB_CODEGEN_HOSTLOOPS_H
