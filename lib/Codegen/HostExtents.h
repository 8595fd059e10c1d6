// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What is known of the sizes inside a bufferized kernel.
///
/// Every size is traced to an affine expression over the kernel's extents
/// (AffineSymbolExpr i = extent i). Facts of the kernel's class give divisors
/// and ranges, from which the loop emitter drops remainder loops, and the
/// workspace gets a size that the runtime can evaluate before the call.
#ifndef PGKP_LIB_CODEGEN_HOSTEXTENTS_H
#define PGKP_LIB_CODEGEN_HOSTEXTENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace mlir::pgkp::host {

/// Argument attribute: an affine map ()[extents] -> (sizes of the argument).
inline constexpr StringLiteral kExtentsAttr = "pgkp.extents";
/// Function attribute: an affine map ()[extents] -> (workspace bytes).
inline constexpr StringLiteral kWorkspaceAttr = "pgkp.workspace";
/// Function attribute: the rank of each kernel argument, -1 for a scalar.
inline constexpr StringLiteral kRanksAttr = "pgkp.ranks";
/// Function attribute: an array of arrays [divisor, low, high] per extent.
inline constexpr StringLiteral kBoundsAttr = "pgkp.bounds";

/// What a class says of one extent; [low, high] inclusive.
struct SymbolBounds {
  int64_t divisor = 1;
  int64_t low = 0;
  int64_t high = INT64_MAX;
};

class Extents {
public:
  explicit Extents(func::FuncOp func);

  /// The size of a memref's dimension, or null where it is not a function of
  /// the extents.
  AffineExpr sizeOf(Value memref, int64_t dim);
  AffineExpr exprOf(Value index);
  AffineExpr exprOf(OpFoldResult index);
  /// Like exprOf, but an upper bound is enough (tiles cut short by a minimum).
  AffineExpr boundOf(Value index);

  /// The largest known divisor of the expression's value; 0 for the constant 0.
  int64_t divisorOf(AffineExpr expr) const;
  /// Inclusive bounds that the facts imply; saturated.
  int64_t lowOf(AffineExpr expr) const { return rangeOf(expr).first; }
  int64_t highOf(AffineExpr expr) const { return rangeOf(expr).second; }

  unsigned getNumSymbols() const { return symbols.size(); }

private:
  std::pair<int64_t, int64_t> rangeOf(AffineExpr expr) const;
  AffineExpr compute(Value index, bool bound);

  func::FuncOp func;
  MLIRContext *ctx;
  SmallVector<SymbolBounds> symbols;
  llvm::DenseMap<Value, AffineExpr> cache;
};

} // namespace mlir::pgkp::host

#endif // PGKP_LIB_CODEGEN_HOSTEXTENTS_H
