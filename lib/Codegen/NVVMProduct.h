// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Matrix products inside kernels: what they are, and how they are tiled.
#ifndef PGKP_LIB_CODEGEN_NVVMPRODUCT_H
#define PGKP_LIB_CODEGEN_NVVMPRODUCT_H

#include "NVVMKernelEmitter.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace mlir::pgkp::nvvm {

/// result[batch, rows, column] = init + sum over depth of lhs * rhs, where only
/// lhs has the rows and only rhs has the column. Batch dimensions may be in
/// both or in one.
struct Product {
  linalg::LinalgOp op;
  /// Loops of `op`, outermost first.
  SmallVector<unsigned> batch, rows;
  unsigned column = 0, depth = 0;
  OpOperand *lhs = nullptr, *rhs = nullptr;
  /// Of both operands: bf16, f16 or f32.
  FloatType elementType;
};

/// The operation as a product, if it is one. Its column is the innermost
/// dimension of the result.
std::optional<Product> matchProduct(linalg::LinalgOp op);

/// How the multiplications are done.
enum class ProductMath {
  mma16, ///< mma.sync m16n8k16 on bf16 or f16
  tf32,  ///< mma.sync m16n8k8 on f32, rounded to tf32
  fma,   ///< one f32 multiply-add a lane
};

/// Tiles of a product; extents in elements.
struct ProductTiles {
  ProductMath math = ProductMath::mma16;
  unsigned rows = 64, columns = 64, depth = 64; ///< of a block
  unsigned warpRows = 32, warpColumns = 32;     ///< of a warp
  unsigned stages = 4;
  /// Row tiles that neighbouring blocks walk before the next column tile.
  unsigned group = 8;

  unsigned warps() const { return rows / warpRows * (columns / warpColumns); }
  unsigned threads() const { return warps() * 32; }
};

/// Bounds of a product's sizes that hold for every launch; INT64_MAX: unknown.
struct ProductBounds {
  int64_t rows = INT64_MAX, columns = INT64_MAX, depth = INT64_MAX;
};

/// The tiles of `config`, or by rules where it says nothing. Emits an error at
/// `loc` for a configuration that cannot be built.
FailureOr<ProductTiles> chooseTiles(Location loc, const Product &product,
                                    const ProductBounds &bounds,
                                    ConfigAttr config);

/// Dynamic shared memory of a block, bytes.
unsigned sharedBytes(const Product &product, const ProductTiles &tiles);

} // namespace mlir::pgkp::nvvm

#endif // PGKP_LIB_CODEGEN_NVVMPRODUCT_H
