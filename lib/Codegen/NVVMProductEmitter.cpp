// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "NVVMProductEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::pgkp;
using namespace mlir::pgkp::nvvm;

ProductEmitter::ProductEmitter(KernelEmitter &emitter,
                               const NVVMMapping &mapping,
                               const Product &product)
    : e(emitter), b(emitter.b), loc(emitter.loc), d(emitter.b, emitter.loc),
      mapping(mapping), product(product) {
  for (unsigned dim = 0; dim < this->product.op.getNumLoops(); ++dim)
    sizes.push_back(e.loopSize(this->product.op, dim));
  auto multiply = [&](ArrayRef<unsigned> dims, SmallVector<Value> &parts) {
    Value all = e.constant(1);
    for (unsigned dim : dims) {
      parts.push_back(sizes[dim]);
      all = e.mul(all, sizes[dim]);
    }
    return all;
  };
  numRows = multiply(product.rows, rowSizes);
  numBatches = multiply(product.batch, batchSizes);
  numColumns = sizes[product.column];
  numDepth = sizes[product.depth];
  e.moveToScopeEnd();
}

void ProductEmitter::forI32(Value first, Value end, int64_t step, bool uniform,
                            function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, loc, first, end, d.i32(step));
  e.pushScope(loop, loop.getBody(), uniform);
  body(loop.getInductionVar());
  e.popScope();
}

void ProductEmitter::ifThen(Value condition, bool uniform,
                            function_ref<void()> body,
                            function_ref<void()> otherwise) {
  auto ifOp = scf::IfOp::create(b, loc, condition, bool(otherwise));
  e.pushScope(ifOp, ifOp.thenBlock(), uniform, /*conditional=*/true);
  body();
  e.popScope();
  if (!otherwise)
    return;
  e.pushScope(ifOp, ifOp.elseBlock(), uniform, /*conditional=*/true);
  otherwise();
  e.popScope();
}

/// Tiles in bands of `group` row tiles: blocks that run together share columns
/// of the right operand in the cache.
void ProductEmitter::forEachTile(unsigned rows, unsigned columns,
                                 unsigned group,
                                 function_ref<void(const ProductTile &)> body) {
  auto index = [&](int64_t v) {
    return Value(arith::ConstantIndexOp::create(b, loc, v));
  };
  Value rowTiles = d.ceilDiv(numRows, rows);
  Value columnTiles = d.ceilDiv(numColumns, columns);
  Value tiles = d.mul(rowTiles, columnTiles);
  Value total = d.mul(tiles, numBatches);
  Value first = d.toIndex(NVVM::BlockIdXOp::create(b, loc, b.getI32Type()));
  Value step = d.toIndex(NVVM::GridDimXOp::create(b, loc, b.getI32Type()));
  auto loop = scf::ForOp::create(b, loc, first, total, step);
  e.pushScope(loop, loop.getBody(), /*uniform=*/true);
  Value number = loop.getInductionVar();
  ProductTile tile;
  Value batch = product.batch.empty() ? index(0) : d.div(number, tiles);
  Value inBatch = product.batch.empty() ? number : d.rem(number, tiles);
  tile.batch = e.delinearize(batch, batchSizes);
  e.moveToScopeEnd();
  Value band = d.mul(columnTiles, group);
  Value firstRowTile = d.mul(d.div(inBatch, band), group);
  Value inBand = d.rem(inBatch, band);
  Value bandRows = d.min(d.sub(rowTiles, firstRowTile), group);
  Value rowTile = d.add(firstRowTile, d.rem(inBand, bandRows));
  Value columnTile = d.div(inBand, bandRows);
  tile.firstRow = d.mul(rowTile, rows);
  tile.firstColumn = d.mul(columnTile, columns);
  tile.rowLimit = d.toI32(d.min(d.sub(numRows, tile.firstRow), rows));
  tile.columnLimit =
      d.toI32(d.min(d.sub(numColumns, tile.firstColumn), columns));
  body(tile);
  e.popScope();
}

SmallVector<Value> ProductEmitter::loopIndex(const ProductTile &tile, Value row,
                                             Value column, Value depth) {
  SmallVector<Value> ivs(sizes.size());
  for (auto [dim, i] : llvm::zip_equal(product.batch, tile.batch))
    ivs[dim] = i;
  if (row)
    for (auto [dim, i] :
         llvm::zip_equal(product.rows, e.delinearize(row, rowSizes)))
      ivs[dim] = i;
  ivs[product.column] = column;
  ivs[product.depth] = depth;
  return ivs;
}

Value ProductEmitter::evaluateOperand(OpOperand *operand, ArrayRef<Value> ivs) {
  SmallVector<Value> index;
  for (AffineExpr expr :
       product.op.getMatchingIndexingMap(operand).getResults())
    index.push_back(ivs[cast<AffineDimExpr>(expr).getPosition()]);
  return e.evaluate(operand->get(), index);
}

void ProductEmitter::storeElements(const ProductTile &tile, Value row,
                                   Value column, Value sums, unsigned lanes) {
  SmallVector<Value> words;
  for (unsigned i = 0; i < lanes; i += 4) {
    unsigned count = std::min(lanes - i, 4u);
    Type type = count == 1 ? Type(b.getF32Type())
                           : Type(VectorType::get(count, b.getF32Type()));
    Value word = d.load(d.offset(sums, i * 4), type, count == 1 ? 4 : 16);
    if (count == 1)
      words.push_back(word);
    else
      llvm::append_range(words, d.elements(word));
  }
  Value result = product.op->getResult(0);
  Type sumType = getElementTypeOrSelf(result.getType());
  AffineMap map =
      product.op.getMatchingIndexingMap(product.op.getDpsInitOperand(0));
  SmallVector<Value> ivs = loopIndex(tile, row, column, Value());
  SmallVector<Value> index;
  for (AffineExpr expr : map.getResults())
    index.push_back(ivs[cast<AffineDimExpr>(expr).getPosition()]);
  e.storeLanes(
      mapping, index, lanes, [&](unsigned lane, ArrayRef<Value> laneIndex) {
        Value sum = words[lane];
        Value init = product.op.getDpsInitOperand(0)->get();
        if (!e.isZero(init)) {
          Value start = e.evaluate(init, laneIndex);
          if (start.getType() != sum.getType())
            start = arith::ExtFOp::create(b, loc, sum.getType(), start);
          sum = arith::AddFOp::create(b, loc, start, sum);
        }
        if (sumType != sum.getType())
          sum = arith::TruncFOp::create(b, loc, sumType, sum);
        e.define(result, laneIndex, sum);
      });
}

void ProductEmitter::storeTile(const ProductTile &tile, unsigned rows,
                               unsigned columns, Value sums, unsigned pitch,
                               Value thread, unsigned threads) {
  auto loop = [&](unsigned lanes) {
    forI32(thread, d.i32(rows * columns / lanes), threads, /*uniform=*/false,
           [&](Value place) {
             Value row = d.div(place, columns / lanes);
             Value column = d.mul(d.rem(place, columns / lanes), lanes);
             Value inside = d.both(d.lt(row, tile.rowLimit),
                                   d.lt(column, tile.columnLimit));
             ifThen(inside, /*uniform=*/false, [&] {
               Value at =
                   d.offset(sums, d.add(d.mul(row, pitch), d.mul(column, 4)));
               storeElements(tile, d.add(tile.firstRow, d.toIndex(row)),
                             d.add(tile.firstColumn, d.toIndex(column)), at,
                             lanes);
             });
           });
  };
  e.wideOrNarrow(mapping, loop);
}

Value ProductEmitter::dynamicShared() { return e.dynamicShared(); }
