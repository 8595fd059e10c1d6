// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Matrix products for every chip since sm_80: operands come by
/// asynchronous copies into a ring of stages in shared memory, warps multiply
/// with mma.sync (bf16, f16, tf32) or fma (f32). Rows of a tile lie in chunks
/// of 16 bytes, which are permuted within 128 bytes so that neither the copies
/// nor ldmatrix meet in a bank.
#include "NVVMProductEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::pgkp;
using namespace mlir::pgkp::nvvm;

namespace {

/// One operand's tile in a stage: `outer` rows of `inner` elements, in the
/// order of the operand's memory.
struct OperandTile {
  OpOperand *operand;
  bool isLhs;
  /// The depth is innermost in memory.
  bool alongDepth;
  unsigned outer, inner;
  unsigned elementBytes;
  unsigned start = 0; ///< in a stage, bytes

  /// The argument that the operand is, through reshapes; else null, and
  /// elements are computed.
  BlockArgument arg;
  /// i1, uniform: whole chunks can be copied. Null: never.
  Value aligned;

  unsigned rowBytes() const { return inner * elementBytes; }
  unsigned bytes() const { return outer * rowBytes(); }
  unsigned perChunk() const { return 16 / elementBytes; }
};

/// Where a thread's chunks of a tile come from and go to.
struct CopyPlan {
  SmallVector<Value> sources;      ///< bytes from the argument, at depth 0; i64
  SmallVector<Value> destinations; ///< bytes from the tile's start; i32
  SmallVector<Value> inside;       ///< i1, for all depths; null: always
  SmallVector<Value> depths;       ///< of a chunk's first element, i32
  Value perDepth;                  ///< bytes, i64
};

class MmaProduct : ProductEmitter {
public:
  MmaProduct(KernelEmitter &emitter, const NVVMMapping &mapping,
             const Product &product, const ProductTiles &tiles)
      : ProductEmitter(emitter, mapping, product), t(tiles) {}

  void emit();

private:
  OperandTile describe(OpOperand *operand, bool isLhs);
  /// The chunk of 16 bytes in which chunk `chunk` of row `row` lies.
  Value permute(const OperandTile &tile, Value row, Value chunk);
  Value permutation(const OperandTile &tile, Value row);

  CopyPlan planCopies(const OperandTile &tile, const ProductTile &at);
  void issue(const OperandTile &tile, const CopyPlan &plan,
             const ProductTile &at, Value depthTile, Value stage);
  void copyElements(const OperandTile &tile, const ProductTile &at,
                    Value depthTile, Value stage);

  void emitTile(const ProductTile &at);
  SmallVector<Value> multiply(Value stage, ArrayRef<Value> sums);
  SmallVector<Value> multiplyMma(Value stage, ArrayRef<Value> sums);
  SmallVector<Value> multiplyFma(Value stage, ArrayRef<Value> sums);
  Value tf32Word(Value stage, const OperandTile &tile, Value depth,
                 Value position);
  void storeSums(ArrayRef<Value> sums, unsigned pitch);

  unsigned numSums() const { return t.warpRows * t.warpColumns / 32; }
  bool usesMatrices(const OperandTile &tile) const {
    // ldmatrix transposes 16-bit elements only.
    return t.math == ProductMath::mma16 || tile.alongDepth;
  }

  ProductTiles t;
  OperandTile lhs, rhs;
  unsigned stageBytes = 0;
  Value shared, thread, lane, warpRow, warpColumn;
};

} // namespace

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// The argument whose contiguous elements are `v`'s, in order.
static BlockArgument throughReshapes(Value v) {
  while (Operation *op = v.getDefiningOp()) {
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(
            op))
      return {};
    v = op->getOperand(0);
  }
  return dyn_cast<BlockArgument>(v);
}

OperandTile MmaProduct::describe(OpOperand *operand, bool isLhs) {
  OperandTile tile;
  tile.operand = operand;
  tile.isLhs = isLhs;
  tile.elementBytes = product.elementType.getWidth() / 8;
  AffineMap map = product.op.getMatchingIndexingMap(operand);
  unsigned last = cast<AffineDimExpr>(map.getResults().back()).getPosition();
  tile.alongDepth = last != product.column &&
                    !(isLhs && llvm::is_contained(product.rows, last));
  unsigned across = isLhs ? t.rows : t.columns;
  tile.outer = tile.alongDepth ? across : t.depth;
  tile.inner = tile.alongDepth ? t.depth : across;
  // Along the rows of the left operand chunks need one row dimension; along
  // a batch dimension there are none.
  bool chunks = last == product.depth || last == product.column ||
                (product.rows.size() == 1 && last == product.rows[0]);
  BlockArgument arg = throughReshapes(operand->get());
  unsigned firstDestination = e.sig.dims.size() - e.sig.numResults;
  if (chunks && arg && arg.getOwner() == e.sig.body &&
      arg.getArgNumber() < firstDestination) {
    tile.arg = arg;
    tile.aligned = e.isAligned(
        arg, e.dimOf(operand->get(), map.getNumResults() - 1), tile.perChunk());
  }
  return tile;
}

Value MmaProduct::permutation(const OperandTile &tile, Value row) {
  if (!usesMatrices(tile) && t.math == ProductMath::tf32)
    return d.shl(d.band(row, 3), 1); // lanes read 4 rows at 8 columns
  if (tile.rowBytes() >= 128)
    return d.band(row, 7);
  if (tile.rowBytes() == 64)
    return d.band(d.shr(row, 1), 3);
  return d.band(d.shr(row, 2), 1);
}

Value MmaProduct::permute(const OperandTile &tile, Value row, Value chunk) {
  return d.bxor(chunk, permutation(tile, row));
}

CopyPlan MmaProduct::planCopies(const OperandTile &tile,
                                const ProductTile &at) {
  CopyPlan plan;
  unsigned chunksPerRow = tile.inner / tile.perChunk();
  unsigned chunks = tile.outer * chunksPerRow;
  unsigned passes = llvm::divideCeil(chunks, t.threads());
  AffineMap map = product.op.getMatchingIndexingMap(tile.operand);
  SmallVector<Value> strides(sizes.size());
  Value stride = e.constant(1);
  for (unsigned i = map.getNumResults(); i-- > 0;) {
    unsigned dim = cast<AffineDimExpr>(map.getResult(i)).getPosition();
    strides[dim] = stride;
    stride = e.mul(stride, sizes[dim]);
  }
  e.moveToScopeEnd();
  /// Elements from the argument's start to loop indices; unset ones are 0.
  auto offsetOf = [&](ArrayRef<Value> ivs) {
    Value offset = e.constant(0);
    for (auto [iv, s] : llvm::zip_equal(ivs, strides))
      if (iv && s)
        offset = e.add(offset, e.mul(iv, s));
    e.moveToScopeEnd();
    return offset;
  };
  Value limit = tile.isLhs ? at.rowLimit : at.columnLimit;
  for (unsigned pass = 0; pass < passes; ++pass) {
    Value place = d.add(thread, pass * t.threads());
    Value row = d.div(place, chunksPerRow);
    Value chunk = d.rem(place, chunksPerRow);
    Value first = d.mul(chunk, tile.perChunk());
    Value across = tile.alongDepth ? row : first;
    Value depth = tile.alongDepth ? first : row;
    Value origin = tile.isLhs ? at.firstRow : at.firstColumn;
    Value position = d.add(origin, d.toIndex(across));
    SmallVector<Value> ivs =
        tile.isLhs ? loopIndex(at, position, Value(), d.toIndex(depth))
                   : loopIndex(at, Value(), position, d.toIndex(depth));
    plan.sources.push_back(d.mul(d.toI64(offsetOf(ivs)), tile.elementBytes));
    plan.depths.push_back(depth);
    plan.destinations.push_back(d.add(d.mul(row, tile.rowBytes()),
                                      d.mul(permute(tile, row, chunk), 16)));
    Value inside = d.lt(across, limit);
    if ((pass + 1) * t.threads() > chunks)
      inside = d.both(inside, d.lt(row, tile.outer));
    plan.inside.push_back(inside);
  }
  plan.perDepth = d.mul(d.toI64(strides[product.depth]), tile.elementBytes);
  return plan;
}

/// Copies tile `depthTile` along the depth into the stage at `stage`. What is
/// outside of the operand becomes zero.
void MmaProduct::issue(const OperandTile &tile, const CopyPlan &plan,
                       const ProductTile &at, Value depthTile, Value stage) {
  if (!tile.aligned)
    return copyElements(tile, at, depthTile, stage);
  auto chunks = [&] {
    Value firstDepth = d.mul(depthTile, t.depth);
    Value advance = d.mul(d.toI64(firstDepth), plan.perDepth);
    Value depthLimit = d.sub(d.toI32(numDepth), firstDepth);
    auto known = e.constantOf(numDepth);
    bool whole = known && *known % t.depth == 0;
    unsigned chunks = tile.outer * (tile.inner / tile.perChunk());
    for (unsigned pass = 0; pass < plan.sources.size(); ++pass) {
      Value inside = plan.inside[pass];
      if (!whole)
        inside = d.both(inside, d.lt(plan.depths[pass], depthLimit));
      Value source = d.offset(e.function.getArgument(tile.arg.getArgNumber()),
                              d.add(plan.sources[pass], advance));
      Value to = d.offset(d.offset(stage, tile.start), plan.destinations[pass]);
      auto copy = [&] {
        d.copyAsync(to, source, d.select(inside, 16, 0, b.getI32Type()));
      };
      if ((pass + 1) * t.threads() > chunks)
        ifThen(d.lt(d.add(thread, pass * t.threads()), chunks),
               /*uniform=*/false, copy);
      else
        copy();
    }
  };
  ifThen(tile.aligned, /*uniform=*/true, chunks,
         [&] { copyElements(tile, at, depthTile, stage); });
}

/// The same element by element, for operands that are computed or whose rows
/// do not start at multiples of 16 bytes.
void MmaProduct::copyElements(const OperandTile &tile, const ProductTile &at,
                              Value depthTile, Value stage) {
  Value firstDepth = d.mul(depthTile, t.depth);
  forI32(thread, d.i32(tile.outer * tile.inner), t.threads(),
         /*uniform=*/false, [&](Value place) {
           Value row = d.div(place, tile.inner);
           Value column = d.rem(place, tile.inner);
           Value across = tile.alongDepth ? row : column;
           Value depth = d.add(tile.alongDepth ? column : row, firstDepth);
           Value inside =
               d.both(d.lt(across, tile.isLhs ? at.rowLimit : at.columnLimit),
                      d.lt(depth, d.toI32(numDepth)));
           Value element = e.select(
               inside, product.elementType,
               [&]() -> Value {
                 Value origin = tile.isLhs ? at.firstRow : at.firstColumn;
                 Value position = d.add(origin, d.toIndex(across));
                 SmallVector<Value> ivs =
                     tile.isLhs
                         ? loopIndex(at, position, Value(), d.toIndex(depth))
                         : loopIndex(at, Value(), position, d.toIndex(depth));
                 return evaluateOperand(tile.operand, ivs);
               },
               [&]() -> Value {
                 return arith::ConstantOp::create(
                     b, loc, b.getZeroAttr(product.elementType));
               });
           Value chunk = d.div(column, tile.perChunk());
           Value bytes =
               d.add(d.mul(permute(tile, row, chunk), 16),
                     d.mul(d.rem(column, tile.perChunk()), tile.elementBytes));
           Value to = d.offset(d.offset(stage, tile.start),
                               d.add(d.mul(row, tile.rowBytes()), bytes));
           d.store(element, to, tile.elementBytes);
         });
}

//===----------------------------------------------------------------------===//
// Multiplication
//===----------------------------------------------------------------------===//

SmallVector<Value> MmaProduct::multiply(Value stage, ArrayRef<Value> sums) {
  return t.math == ProductMath::fma ? multiplyFma(stage, sums)
                                    : multiplyMma(stage, sums);
}

/// One 32-bit element of a tile whose depth is not innermost.
Value MmaProduct::tf32Word(Value stage, const OperandTile &tile, Value depth,
                           Value position) {
  Value bytes = d.add(d.mul(depth, tile.rowBytes()),
                      d.add(d.mul(permute(tile, depth, d.shr(position, 2)), 16),
                            d.mul(d.band(position, 3), 4)));
  return d.load(d.offset(d.offset(stage, tile.start), bytes), b.getI32Type(),
                4);
}

SmallVector<Value> MmaProduct::multiplyMma(Value stage, ArrayRef<Value> start) {
  bool narrow = t.math == ProductMath::mma16;
  NVVM::MMATypes type = !narrow                        ? NVVM::MMATypes::tf32
                        : product.elementType.isBF16() ? NVVM::MMATypes::bf16
                                                       : NVVM::MMATypes::f16;
  unsigned step = narrow ? 16 : 8; // depth of an instruction: two chunks
  unsigned rowTiles = t.warpRows / 16, columnTiles = t.warpColumns / 8;
  Value low = d.band(lane, 7), bit3 = d.band(d.shr(lane, 3), 1),
        bit4 = d.shr(lane, 4);

  // Four matrices each: 16 x 16 of the left operand, in the order of the
  // instruction's registers; of the right one two columns of two.
  auto loadLhs = [&](unsigned k, unsigned i) -> SmallVector<Value> {
    Value base = d.offset(stage, lhs.start);
    if (lhs.alongDepth) {
      Value row = d.add(d.add(low, d.mul(bit3, 8)), warpRow);
      Value chunk = d.bxor(d.bxor(bit4, permutation(lhs, low)), k * 2);
      Value at =
          d.offset(base, d.add(d.mul(row, lhs.rowBytes()), d.mul(chunk, 16)));
      return d.loadMatrices(d.offset(at, i * 16 * lhs.rowBytes()), false);
    }
    if (usesMatrices(lhs)) {
      Value row = d.add(low, d.mul(bit4, 8));
      Value chunk = d.bxor(d.bxor(bit3, permutation(lhs, low)),
                           d.add(d.shr(warpRow, 3), i * 2));
      Value at =
          d.offset(base, d.add(d.mul(row, lhs.rowBytes()), d.mul(chunk, 16)));
      return d.loadMatrices(d.offset(at, k * 16 * lhs.rowBytes()), true);
    }
    SmallVector<Value> words;
    for (unsigned q = 0; q < 4; ++q)
      words.push_back(tf32Word(
          stage, lhs, d.add(d.band(lane, 3), k * 8 + (q / 2) * 4),
          d.add(d.add(warpRow, d.shr(lane, 2)), i * 16 + (q % 2) * 8)));
    return words;
  };
  auto loadRhs = [&](unsigned k, unsigned j) -> SmallVector<Value> {
    Value base = d.offset(stage, rhs.start);
    if (rhs.alongDepth) {
      Value row = d.add(d.add(low, d.mul(bit4, 8)), warpColumn);
      Value chunk = d.bxor(d.bxor(bit3, permutation(rhs, low)), k * 2);
      Value at =
          d.offset(base, d.add(d.mul(row, rhs.rowBytes()), d.mul(chunk, 16)));
      return d.loadMatrices(d.offset(at, j * 16 * rhs.rowBytes()), false);
    }
    if (usesMatrices(rhs)) {
      Value row = d.add(low, d.mul(bit3, 8));
      Value chunk = d.bxor(d.bxor(bit4, permutation(rhs, low)),
                           d.add(d.shr(warpColumn, 3), j * 2));
      Value at =
          d.offset(base, d.add(d.mul(row, rhs.rowBytes()), d.mul(chunk, 16)));
      return d.loadMatrices(d.offset(at, k * 16 * rhs.rowBytes()), true);
    }
    SmallVector<Value> words;
    for (unsigned q = 0; q < 4; ++q)
      words.push_back(tf32Word(
          stage, rhs, d.add(d.band(lane, 3), k * 8 + (q % 2) * 4),
          d.add(d.add(warpColumn, d.shr(lane, 2)), j * 16 + (q / 2) * 8)));
    return words;
  };

  SmallVector<Value> sums(start);
  using Fragments = SmallVector<SmallVector<Value>>;
  auto load = [&](unsigned k, Fragments &left, Fragments &right) {
    for (unsigned i = 0; i < rowTiles; ++i)
      left.push_back(loadLhs(k, i));
    for (unsigned j = 0; j < columnTiles / 2; ++j)
      right.push_back(loadRhs(k, j));
  };
  Fragments left, right;
  load(0, left, right);
  for (unsigned k = 0; k < t.depth / step; ++k) {
    // The next step's fragments are on their way while this one multiplies.
    Fragments nextLeft, nextRight;
    if (k + 1 < t.depth / step)
      load(k + 1, nextLeft, nextRight);
    for (unsigned j = 0; j < columnTiles; ++j)
      for (unsigned n = 0; n < rowTiles; ++n) {
        // Back and forth, so that a fragment is used twice in a row.
        unsigned i = j % 2 == 0 ? n : rowTiles - 1 - n;
        unsigned at = (i * columnTiles + j) * 4;
        SmallVector<Value> result = d.mma(
            type, left[i], ArrayRef<Value>(right[j / 2]).slice((j % 2) * 2, 2),
            ArrayRef<Value>(sums).slice(at, 4));
        llvm::copy(result, sums.begin() + at);
      }
    left = std::move(nextLeft);
    right = std::move(nextRight);
  }
  return sums;
}

/// A warp is 4 x 8 lanes. A lane has the rows lane/8 + 4i, and of each group of
/// 32 columns four: neighbours where the columns are innermost in memory, else
/// every eighth.
SmallVector<Value> MmaProduct::multiplyFma(Value stage, ArrayRef<Value> start) {
  SmallVector<Value> sums(start);
  unsigned rowCount = t.warpRows / 4, columnCount = t.warpColumns / 8;
  Value laneRow = d.shr(lane, 3), laneColumn = d.band(lane, 7);
  auto vec = VectorType::get(4, b.getF32Type());
  Value left = d.offset(stage, lhs.start), right = d.offset(stage, rhs.start);
  for (unsigned k0 = 0; k0 < t.depth; k0 += 4) {
    SmallVector<SmallVector<Value>> x(4), y(4); // by depth
    for (unsigned i = 0; i < rowCount; ++i) {
      Value row = d.add(d.add(warpRow, laneRow), i * 4);
      if (lhs.alongDepth) {
        Value chunk = permute(lhs, row, d.i32(k0 / 4));
        Value at =
            d.offset(left, d.add(d.mul(row, lhs.rowBytes()), d.mul(chunk, 16)));
        for (auto [k, v] : llvm::enumerate(d.elements(d.load(at, vec, 16))))
          x[k].push_back(v);
        continue;
      }
      for (unsigned k = 0; k < 4; ++k) {
        Value chunk = permute(lhs, d.i32(k0 + k), d.shr(row, 2));
        Value at = d.offset(
            left, d.add(d.add(d.mul(chunk, 16), d.mul(d.band(row, 3), 4)),
                        (k0 + k) * lhs.rowBytes()));
        x[k].push_back(d.load(at, b.getF32Type(), 4));
      }
    }
    for (unsigned j = 0; j < columnCount; ++j) {
      if (rhs.alongDepth) {
        Value column = d.add(d.add(warpColumn, laneColumn), j * 8);
        Value chunk = permute(rhs, column, d.i32(k0 / 4));
        Value at = d.offset(
            right, d.add(d.mul(column, rhs.rowBytes()), d.mul(chunk, 16)));
        for (auto [k, v] : llvm::enumerate(d.elements(d.load(at, vec, 16))))
          y[k].push_back(v);
        continue;
      }
      if (j % 4 != 0)
        continue;
      for (unsigned k = 0; k < 4; ++k) {
        Value chunk =
            permute(rhs, d.i32(k0 + k),
                    d.add(d.add(d.shr(warpColumn, 2), laneColumn), j * 2));
        Value at =
            d.offset(right, d.add(d.mul(chunk, 16), (k0 + k) * rhs.rowBytes()));
        llvm::append_range(y[k], d.elements(d.load(at, vec, 16)));
      }
    }
    for (unsigned k = 0; k < 4; ++k)
      for (unsigned i = 0; i < rowCount; ++i)
        for (unsigned j = 0; j < columnCount; ++j) {
          Value &sum = sums[i * columnCount + j];
          sum = LLVM::FMAOp::create(b, loc, x[k][i], y[k][j], sum);
        }
  }
  return sums;
}

/// The warps' sums to shared memory, as f32 in the order of the result.
void MmaProduct::storeSums(ArrayRef<Value> sums, unsigned pitch) {
  if (t.math == ProductMath::fma) {
    unsigned columnCount = t.warpColumns / 8;
    for (unsigned i = 0; i < t.warpRows / 4; ++i) {
      Value row = d.add(d.add(warpRow, d.shr(lane, 3)), i * 4);
      Value at = d.offset(shared, d.mul(row, pitch));
      Value laneColumn = d.band(lane, 7);
      for (unsigned j = 0; j < columnCount; ++j) {
        ArrayRef<Value> rest = sums.drop_front(i * columnCount + j);
        if (rhs.alongDepth) {
          Value column = d.add(d.add(warpColumn, laneColumn), j * 8);
          d.store(rest.front(), d.offset(at, d.mul(column, 4)), 4);
        } else if (j % 4 == 0) {
          Value column = d.add(d.add(warpColumn, d.mul(laneColumn, 4)), j * 8);
          d.store(d.vector(rest.take_front(4)), d.offset(at, d.mul(column, 4)),
                  16);
        }
      }
    }
    return;
  }
  unsigned columnTiles = t.warpColumns / 8;
  Value row = d.add(warpRow, d.shr(lane, 2));
  Value column = d.add(warpColumn, d.mul(d.band(lane, 3), 2));
  Value at = d.offset(shared, d.add(d.mul(row, pitch), d.mul(column, 4)));
  for (unsigned i = 0; i < t.warpRows / 16; ++i)
    for (unsigned j = 0; j < columnTiles; ++j)
      for (unsigned half = 0; half < 2; ++half)
        d.store(d.vector(sums.slice((i * columnTiles + j) * 4 + half * 2, 2)),
                d.offset(at, (i * 16 + half * 8) * pitch + j * 32), 8);
}

//===----------------------------------------------------------------------===//
// The pipeline
//===----------------------------------------------------------------------===//

void MmaProduct::emitTile(const ProductTile &at) {
  Value depthTiles = d.toI32(d.ceilDiv(numDepth, t.depth));
  CopyPlan plans[2];
  const OperandTile *operands[2] = {&lhs, &rhs};
  for (unsigned i = 0; i < 2; ++i)
    if (operands[i]->aligned)
      plans[i] = planCopies(*operands[i], at);
  auto fetch = [&](Value depthTile, Value stage) {
    ifThen(d.lt(depthTile, depthTiles), /*uniform=*/true, [&] {
      for (unsigned i = 0; i < 2; ++i)
        issue(*operands[i], plans[i], at, depthTile, stage);
    });
    d.commitCopies();
  };
  forI32(d.i32(0), d.i32(t.stages - 1), 1, /*uniform=*/true, [&](Value stage) {
    fetch(stage, d.offset(shared, d.mul(stage, stageBytes)));
  });

  SmallVector<Value> init(numSums(), d.zeroF32());
  init.push_back(d.i32(0));
  init.push_back(d.i32((t.stages - 1) * stageBytes));
  auto loop = scf::ForOp::create(b, loc, d.i32(0), depthTiles, d.i32(1), init);
  e.pushScope(loop, loop.getBody(), /*uniform=*/true);
  b.setInsertionPointToEnd(loop.getBody());
  ValueRange args = loop.getRegionIterArgs();
  Value reading = args[numSums()], writing = args[numSums() + 1];
  // The stage is complete, and everybody is done with the one before it,
  // which is the next to be written.
  d.waitCopies(t.stages - 2);
  d.barrier();
  fetch(d.add(loop.getInductionVar(), t.stages - 1), d.offset(shared, writing));
  SmallVector<Value> next =
      multiply(d.offset(shared, reading),
               SmallVector<Value>(args.take_front(numSums())));
  auto advance = [&](Value stage) {
    Value following = d.add(stage, stageBytes);
    return d.select(d.eq(following, t.stages * stageBytes), 0, following,
                    b.getI32Type());
  };
  next.push_back(advance(reading));
  next.push_back(advance(writing));
  scf::YieldOp::create(b, loc, next);
  e.popScope();

  d.waitCopies(0);
  d.barrier();
  unsigned pitch = t.columns * 4 + 16;
  storeSums(SmallVector<Value>(loop.getResults().take_front(numSums())), pitch);
  d.barrier();
  storeTile(at, t.rows, t.columns, shared, pitch, thread, t.threads());
  d.barrier(); // the next tile's copies go to the same memory
}

void MmaProduct::emit() {
  lhs = describe(product.lhs, true);
  rhs = describe(product.rhs, false);
  e.moveToScopeEnd();
  rhs.start = lhs.bytes();
  stageBytes = lhs.bytes() + rhs.bytes();
  shared = dynamicShared();
  thread = d.threadId();
  lane = d.band(thread, 31);
  Value warp = d.shr(thread, 5);
  warpRow = d.mul(d.rem(warp, t.rows / t.warpRows), t.warpRows);
  warpColumn = d.mul(d.div(warp, t.rows / t.warpRows), t.warpColumns);
  forEachTile(t.rows, t.columns, t.group,
              [&](const ProductTile &at) { emitTile(at); });
}

void mlir::pgkp::nvvm::emitMmaProduct(KernelEmitter &emitter,
                                      const NVVMMapping &mapping,
                                      const Product &product,
                                      const ProductTiles &tiles) {
  MmaProduct(emitter, mapping, product, tiles).emit();
}
