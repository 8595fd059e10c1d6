// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "NVVMProduct.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::pgkp;
using namespace mlir::pgkp::nvvm;

/// Shared memory of a block on every chip since sm_80, bytes: 100 KiB less the
/// part that the driver takes.
static constexpr unsigned kSharedLimit = 99 * 1024;

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

/// The region argument behind widening conversions, or null.
static BlockArgument throughExtension(Value v) {
  while (auto ext = v.getDefiningOp<arith::ExtFOp>())
    v = ext.getIn();
  return dyn_cast<BlockArgument>(v);
}

/// True for `yield acc + x * y` with x, y the two inputs, possibly widened.
static bool multipliesAndAdds(Block &body) {
  Value yielded = body.getTerminator()->getOperand(0);
  while (auto trunc = yielded.getDefiningOp<arith::TruncFOp>())
    yielded = trunc.getIn();
  auto sum = yielded.getDefiningOp<arith::AddFOp>();
  if (!sum)
    return false;
  for (unsigned i = 0; i < 2; ++i) {
    BlockArgument accumulator = throughExtension(sum->getOperand(i));
    auto product = sum->getOperand(1 - i).getDefiningOp<arith::MulFOp>();
    // bf16 products may be widened before they are added.
    if (auto ext = sum->getOperand(1 - i).getDefiningOp<arith::ExtFOp>())
      product = ext.getIn().getDefiningOp<arith::MulFOp>();
    if (!accumulator || accumulator != body.getArgument(2) || !product)
      continue;
    BlockArgument x = throughExtension(product.getLhs());
    BlockArgument y = throughExtension(product.getRhs());
    return x && y && x != y && x != accumulator && y != accumulator &&
           x.getOwner() == &body && y.getOwner() == &body;
  }
  return false;
}

std::optional<Product> mlir::pgkp::nvvm::matchProduct(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 ||
      op.getNumReductionLoops() != 1 || op->getNumResults() != 1)
    return std::nullopt;
  Product product;
  product.op = op;
  OpOperand *inputs[2] = {op.getDpsInputOperand(0), op.getDpsInputOperand(1)};
  AffineMap maps[3] = {op.getMatchingIndexingMap(inputs[0]),
                       op.getMatchingIndexingMap(inputs[1]),
                       op.getMatchingIndexingMap(op.getDpsInitOperand(0))};
  for (AffineMap map : maps)
    if (!map.isProjectedPermutation() || map.getNumResults() == 0)
      return std::nullopt;
  Type types[2];
  for (unsigned i = 0; i < 2; ++i) {
    if (!isa<RankedTensorType>(inputs[i]->get().getType()))
      return std::nullopt;
    types[i] = getElementTypeOrSelf(inputs[i]->get().getType());
  }
  Type sumType = getElementTypeOrSelf(op->getResult(0).getType());
  if (types[0] != types[1] ||
      !(types[0].isF32() || types[0].isBF16() || types[0].isF16()) ||
      !(sumType.isF32() || sumType == types[0]) ||
      !multipliesAndAdds(*op.getBlock()))
    return std::nullopt;
  product.elementType = cast<FloatType>(types[0]);

  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  for (auto [dim, kind] : llvm::enumerate(kinds))
    if (kind == utils::IteratorType::reduction)
      product.depth = dim;
  auto column = dyn_cast<AffineDimExpr>(maps[2].getResults().back());
  if (!column)
    return std::nullopt;
  product.column = column.getPosition();
  unsigned right = maps[1].isFunctionOfDim(product.column) ? 1 : 0;
  if (maps[1 - right].isFunctionOfDim(product.column) ||
      !maps[right].isFunctionOfDim(product.column))
    return std::nullopt;
  product.lhs = inputs[1 - right];
  product.rhs = inputs[right];
  for (unsigned i = 0; i < 2; ++i)
    if (!maps[i].isFunctionOfDim(product.depth))
      return std::nullopt;
  // In the order of the result, so that neighbouring rows are neighbours there.
  for (AffineExpr expr : maps[2].getResults()) {
    unsigned dim = cast<AffineDimExpr>(expr).getPosition();
    if (dim == product.column)
      continue;
    bool inLhs = maps[1 - right].isFunctionOfDim(dim);
    bool inRhs = maps[right].isFunctionOfDim(dim);
    (inLhs && !inRhs ? product.rows : product.batch).push_back(dim);
  }
  return product;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

static unsigned elementBytes(const Product &product) {
  return FloatType(product.elementType).getWidth() / 8;
}

unsigned mlir::pgkp::nvvm::sharedBytes(const Product &product,
                                       const ProductTiles &tiles) {
  unsigned stage =
      (tiles.rows + tiles.columns) * tiles.depth * elementBytes(product);
  // The results pass through the same memory, in rows padded by 16 bytes.
  unsigned results = tiles.rows * (tiles.columns * 4 + 16);
  return std::max(tiles.stages * stage, results);
}

static ProductTiles tilesByRule(const Product &product,
                                const ProductBounds &bounds) {
  ProductTiles tiles;
  if (product.elementType.isF32()) {
    tiles.math = ProductMath::fma;
    tiles.depth = 16;
    tiles.stages = 3;
    if (bounds.rows <= 16) {
      tiles.rows = tiles.warpRows = 16;
      tiles.depth = 32;
      tiles.stages = 4;
    }
  } else if (bounds.rows <= 16) {
    tiles.rows = tiles.warpRows = 16;
    tiles.warpColumns = 16;
    tiles.stages = 6;
  } else if (bounds.rows > 512 && bounds.rows != INT64_MAX) {
    tiles.rows = tiles.columns = 128;
    tiles.warpRows = tiles.warpColumns = 64;
    tiles.depth = 32;
  }
  if (bounds.columns <= 32) {
    tiles.columns = 32;
    tiles.warpColumns = std::min(tiles.warpColumns, 32u);
  }
  return tiles;
}

FailureOr<ProductTiles>
mlir::pgkp::nvvm::chooseTiles(Location loc, const Product &product,
                              const ProductBounds &bounds, ConfigAttr config) {
  ProductTiles tiles = tilesByRule(product, bounds);
  bool own = config && config.getString("family") == "mma";
  if (own) {
    auto set = [&](StringRef name, unsigned &value) {
      if (std::optional<int64_t> given = config.getInt(name))
        value = *given > 0 && *given <= 4096 ? *given : 0;
    };
    set("bm", tiles.rows);
    set("bn", tiles.columns);
    set("bk", tiles.depth);
    set("wm", tiles.warpRows);
    set("wn", tiles.warpColumns);
    set("stages", tiles.stages);
    set("group", tiles.group);
    if (config.getString("math") == "tf32" && product.elementType.isF32())
      tiles.math = ProductMath::tf32;
  }
  unsigned rowStep = tiles.math == ProductMath::fma ? 4 : 16;
  unsigned columnStep = tiles.math == ProductMath::fma ? 32 : 16;
  bool fits =
      tiles.group && tiles.stages >= 2 && tiles.stages <= 16 &&
      tiles.warpRows && tiles.warpColumns && tiles.rows && tiles.columns &&
      tiles.depth && llvm::isPowerOf2_32(tiles.rows) &&
      llvm::isPowerOf2_32(tiles.columns) && llvm::isPowerOf2_32(tiles.depth) &&
      tiles.rows <= 256 && tiles.columns <= 256 && tiles.depth <= 128 &&
      tiles.rows >= 16 && tiles.columns >= 32 && tiles.depth >= 16 &&
      tiles.rows % tiles.warpRows == 0 &&
      tiles.columns % tiles.warpColumns == 0 && tiles.warpRows % rowStep == 0 &&
      tiles.warpColumns % columnStep == 0 &&
      tiles.warpRows * tiles.warpColumns <= 4096 && tiles.threads() <= 512 &&
      sharedBytes(product, tiles) <= kSharedLimit;
  if (!fits)
    return emitError(loc, "configuration ")
           << (config ? Attribute(config) : Attribute())
           << " cannot be built: expected tiles of powers of two that warps "
              "divide, 2 to 16 stages, and at most "
           << kSharedLimit << " bytes of shared memory";
  return tiles;
}
