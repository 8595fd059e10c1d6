// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "HostLoops.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::pgkp::host;

namespace {

using Values = SmallVector<Value>;

/// How many elements one evaluation of the payload covers: `count` lanes, of
/// which `mask` (if any) are live; 0: one scalar.
struct Lanes {
  int64_t count = 0;
  Value mask;
};

arith::CmpIPredicate swapPredicate(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::slt:
    return P::sgt;
  case P::sle:
    return P::sge;
  case P::sgt:
    return P::slt;
  case P::sge:
    return P::sle;
  case P::ult:
    return P::ugt;
  case P::ule:
    return P::uge;
  case P::ugt:
    return P::ult;
  case P::uge:
    return P::ule;
  case P::eq:
  case P::ne:
    return predicate;
  }
  llvm_unreachable("a predicate of its own");
}

arith::CmpIPredicate toSigned(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::ult:
    return P::slt;
  case P::ule:
    return P::sle;
  case P::ugt:
    return P::sgt;
  case P::uge:
    return P::sge;
  default:
    return predicate;
  }
}

class NestEmitter {
public:
  NestEmitter(RewriterBase &b, linalg::LinalgOp op, Extents &extents,
              const NestPlan &plan, Value fill)
      : b(b), op(op), loc(op.getLoc()), extents(extents), plan(plan),
        fill(fill), maps(op.getIndexingMapsArray()) {
    for (auto [dim, kind] : llvm::enumerate(op.getIteratorTypesArray()))
      if (kind == utils::IteratorType::reduction)
        reductions.push_back(dim);
    numInputs = op.getNumDpsInputs();
  }

  void emit();

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value add(Value lhs, int64_t rhs) {
    if (rhs == 0)
      return lhs;
    if (auto constant = getConstantIntValue(lhs))
      return index(*constant + rhs);
    return arith::AddIOp::create(b, loc, lhs, index(rhs));
  }
  void findSizes();
  bool usesDim(unsigned operand, unsigned dim) {
    return maps[operand].isFunctionOfDim(dim);
  }
  bool usesReduction(unsigned operand) {
    return llvm::any_of(reductions,
                        [&](unsigned dim) { return usesDim(operand, dim); });
  }

  /// A counted loop; a trip count known to be 0 or 1 leaves no loop behind.
  Values loop(Value begin, Value end, int64_t step, ValueRange init,
              function_ref<Values(Value, ValueRange)> body);
  void loop(Value begin, Value end, int64_t step,
            function_ref<void(Value)> body) {
    loop(begin, end, step, {}, [&](Value iv, ValueRange) {
      body(iv);
      return Values();
    });
  }
  /// The end of the part of `dim` that whole steps of `width` cover. \returns
  /// it and whether something may be left after it.
  std::pair<Value, bool> split(unsigned dim, int64_t width);

  void forOuter(Values &ivs, ArrayRef<unsigned> dims,
                function_ref<void(Values &)> body);
  void forBlocks(Values &ivs, std::optional<unsigned> dim, int64_t count,
                 function_ref<void(Values &, int64_t)> body);
  void forVectors(Values &ivs, function_ref<void(Values &, Lanes)> body);
  /// Loops over `dims` around `body`, carrying accumulators.
  Values forReductions(Values &ivs, ArrayRef<unsigned> dims,
                       Values accumulators,
                       function_ref<Values(Values &, ValueRange)> body);

  Values indices(unsigned operand, ArrayRef<Value> ivs);
  Value load(unsigned operand, ArrayRef<Value> ivs, Lanes lanes);
  void store(unsigned operand, Value value, ArrayRef<Value> ivs, Lanes lanes);
  Value toLanes(Value value, int64_t count);
  Value compareWithLane(Operation &nested, IRMapping &mapping,
                        ArrayRef<Value> ivs, Lanes lanes);
  Values evaluate(ArrayRef<Value> arguments, ArrayRef<Value> ivs, Lanes lanes);
  Value combine(Value accumulator, Value value);

  void emitParallel(Values &ivs);
  void emitParallelBlock(Values &ivs, int64_t rows, Lanes lanes);
  void emitReductionBlock(Values &ivs, int64_t rows, int64_t cols);
  void allocatePanel();
  void packPanel(Values &ivs, Lanes lanes);

  RewriterBase &b;
  linalg::LinalgOp op;
  Location loc;
  Extents &extents;
  const NestPlan &plan;
  Value fill;
  SmallVector<AffineMap> maps;
  SmallVector<unsigned> reductions;
  unsigned numInputs;
  Values sizes;
  SmallVector<AffineExpr> sizeExprs;
  Value panel;
  Operation *combiner = nullptr; ///< in reduction mode
  /// With a blocked reduction: where the current pass starts, and its length
  /// (0: up to the end).
  Value depthBegin;
  int64_t depthSteps = 0;
};

void NestEmitter::findSizes() {
  unsigned numLoops = op.getNumLoops();
  sizes.assign(numLoops, Value());
  sizeExprs.assign(numLoops, AffineExpr());
  for (auto [operand, map] : llvm::enumerate(maps)) {
    Value memref = op->getOperand(operand);
    auto type = dyn_cast<MemRefType>(memref.getType());
    if (!type)
      continue;
    for (auto [position, result] : llvm::enumerate(map.getResults())) {
      auto dimExpr = dyn_cast<AffineDimExpr>(result);
      if (!dimExpr)
        continue;
      unsigned dim = dimExpr.getPosition();
      AffineExpr expr = extents.sizeOf(memref, position);
      bool isConstant = expr && isa<AffineConstantExpr>(expr);
      bool better = !sizes[dim] ||
                    (isConstant && !getConstantIntValue(sizes[dim])) ||
                    (expr && !sizeExprs[dim]);
      if (!better)
        continue;
      sizeExprs[dim] = expr;
      sizes[dim] =
          isConstant
              ? index(cast<AffineConstantExpr>(expr).getValue())
              : memref::DimOp::create(b, loc, memref, position).getResult();
    }
  }
}

Values NestEmitter::loop(Value begin, Value end, int64_t step, ValueRange init,
                         function_ref<Values(Value, ValueRange)> body) {
  auto low = getConstantIntValue(begin), high = getConstantIntValue(end);
  if (low && high) {
    if (*high <= *low)
      return Values(init);
    if (*high - *low <= step)
      return body(begin, init);
  }
  auto loop = scf::ForOp::create(b, loc, begin, end, index(step), init);
  OpBuilder::InsertionGuard guard(b);
  if (init.empty())
    b.setInsertionPoint(loop.getBody()->getTerminator());
  else
    b.setInsertionPointToStart(loop.getBody());
  Values results = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!init.empty())
    scf::YieldOp::create(b, loc, results);
  return Values(loop.getResults());
}

std::pair<Value, bool> NestEmitter::split(unsigned dim, int64_t width) {
  Value size = sizes[dim];
  if (auto constant = getConstantIntValue(size))
    return {index(*constant - *constant % width), *constant % width != 0};
  if (AffineExpr expr = sizeExprs[dim]) {
    if (extents.divisorOf(expr) % width == 0)
      return {size, false};
    if (extents.highOf(expr) < width)
      return {index(0), true};
  }
  Value rest = arith::RemUIOp::create(b, loc, size, index(width));
  return {arith::SubIOp::create(b, loc, size, rest), true};
}

void NestEmitter::forOuter(Values &ivs, ArrayRef<unsigned> dims,
                           function_ref<void(Values &)> body) {
  if (dims.empty())
    return body(ivs);
  loop(index(0), sizes[dims.front()], 1, [&](Value iv) {
    ivs[dims.front()] = iv;
    forOuter(ivs, dims.drop_front(), body);
  });
}

void NestEmitter::forBlocks(Values &ivs, std::optional<unsigned> dim,
                            int64_t count,
                            function_ref<void(Values &, int64_t)> body) {
  if (!dim)
    return body(ivs, 1);
  auto constant = getConstantIntValue(sizes[*dim]);
  if (constant && *constant > 0 && *constant < count)
    count = *constant;
  auto [end, rest] = split(*dim, count);
  loop(index(0), end, count, [&](Value iv) {
    ivs[*dim] = iv;
    body(ivs, count);
  });
  if (!rest)
    return;
  // A remainder that is known is one smaller block; others take blocks of a
  // third, then go row by row.
  if (constant) {
    ivs[*dim] = end;
    return body(ivs, *constant % count);
  }
  if (int64_t smaller = count / 3; smaller > 1) {
    Value left = arith::SubIOp::create(b, loc, sizes[*dim], end);
    left = arith::RemUIOp::create(b, loc, left, index(smaller));
    Value next = arith::SubIOp::create(b, loc, sizes[*dim], left);
    loop(end, next, smaller, [&](Value iv) {
      ivs[*dim] = iv;
      body(ivs, smaller);
    });
    end = next;
  }
  loop(end, sizes[*dim], 1, [&](Value iv) {
    ivs[*dim] = iv;
    body(ivs, 1);
  });
}

void NestEmitter::forVectors(Values &ivs,
                             function_ref<void(Values &, Lanes)> body) {
  if (plan.mode == NestPlan::Mode::scalar)
    return body(ivs, Lanes{});
  unsigned dim = plan.vectorDim;
  Value begin = index(0);
  for (int64_t width : plan.widths) {
    auto [end, rest] = split(dim, width);
    loop(begin, end, width, [&](Value iv) {
      ivs[dim] = iv;
      body(ivs, Lanes{width, {}});
    });
    begin = end;
    if (!rest)
      return;
  }
  if (!plan.masked) {
    loop(begin, sizes[dim], 1, [&](Value iv) {
      ivs[dim] = iv;
      body(ivs, Lanes{});
    });
    return;
  }
  int64_t width = plan.widths.back();
  loop(begin, sizes[dim], width, [&](Value iv) {
    ivs[dim] = iv;
    Value live = arith::SubIOp::create(b, loc, sizes[dim], iv);
    Value mask = vector::CreateMaskOp::create(
        b, loc, VectorType::get(width, b.getI1Type()), live);
    body(ivs, Lanes{width, mask});
  });
}

Values
NestEmitter::forReductions(Values &ivs, ArrayRef<unsigned> dims,
                           Values accumulators,
                           function_ref<Values(Values &, ValueRange)> body) {
  if (dims.empty())
    return body(ivs, accumulators);
  unsigned dim = dims.front();
  auto step = [&](Value iv, ValueRange carried) {
    ivs[dim] = iv;
    return forReductions(ivs, dims.drop_front(), Values(carried), body);
  };
  auto unrolled = [&](Value iv, ValueRange carried, int64_t count) {
    Values current(carried);
    for (int64_t i = 0; i < count; ++i)
      current = step(add(iv, i), current);
    return current;
  };
  if (depthSteps)
    return unrolled(depthBegin, accumulators, depthSteps);
  Value begin = depthBegin ? depthBegin : index(0);
  if (dims.size() > 1 || plan.unroll <= 1 || depthBegin)
    return loop(begin, sizes[dim], 1, accumulators, step);
  auto [end, rest] = split(dim, plan.unroll);
  accumulators = loop(begin, end, plan.unroll, accumulators,
                      [&](Value iv, ValueRange carried) {
                        return unrolled(iv, carried, plan.unroll);
                      });
  return rest ? loop(end, sizes[dim], 1, accumulators, step) : accumulators;
}

Values NestEmitter::indices(unsigned operand, ArrayRef<Value> ivs) {
  Values result;
  for (AffineExpr expr : maps[operand].getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      result.push_back(ivs[dim.getPosition()]);
      continue;
    }
    if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
      result.push_back(index(constant.getValue()));
      continue;
    }
    // Dimensions that the expression does not use may still be unset.
    Values operands(ivs);
    for (Value &value : operands)
      if (!value)
        value = index(0);
    AffineMap map = AffineMap::get(maps[operand].getNumDims(), 0, expr);
    result.push_back(affine::makeComposedAffineApply(
        b, loc, map, getAsOpFoldResult(operands)));
  }
  return result;
}

Value NestEmitter::load(unsigned operand, ArrayRef<Value> ivs, Lanes lanes) {
  Value source = op->getOperand(operand);
  auto type = dyn_cast<MemRefType>(source.getType());
  if (!type)
    return source;
  if (lanes.count == 0 || !usesDim(operand, plan.vectorDim))
    return memref::LoadOp::create(b, loc, source, indices(operand, ivs));
  auto vectorType = VectorType::get(lanes.count, type.getElementType());
  if (plan.packed == operand) {
    Values position;
    for (unsigned dim : reductions)
      if (usesDim(operand, dim))
        position.push_back(ivs[dim]);
    position.push_back(index(0));
    return vector::LoadOp::create(b, loc, vectorType, panel, position);
  }
  if (!lanes.mask)
    return vector::LoadOp::create(b, loc, vectorType, source,
                                  indices(operand, ivs));
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType));
  return vector::MaskedLoadOp::create(b, loc, vectorType, source,
                                      indices(operand, ivs), lanes.mask, zero);
}

void NestEmitter::store(unsigned operand, Value value, ArrayRef<Value> ivs,
                        Lanes lanes) {
  Value target = op->getOperand(operand);
  Values position = indices(operand, ivs);
  if (lanes.count == 0) {
    memref::StoreOp::create(b, loc, value, target, position);
    return;
  }
  value = toLanes(value, lanes.count);
  if (lanes.mask)
    vector::MaskedStoreOp::create(b, loc, target, position, lanes.mask, value);
  else
    vector::StoreOp::create(b, loc, value, target, position);
}

Value NestEmitter::toLanes(Value value, int64_t count) {
  if (count == 0 || isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(
      b, loc, VectorType::get(count, value.getType()), value);
}

/// A comparison of the vector dimension's own index with a uniform one, as in a
/// causal mask, in 32-bit lane numbers: 64-bit lanes would take four times the
/// registers. Null if `nested` is no such comparison.
Value NestEmitter::compareWithLane(Operation &nested, IRMapping &mapping,
                                   ArrayRef<Value> ivs, Lanes lanes) {
  auto compare = dyn_cast<arith::CmpIOp>(nested);
  if (!compare || !compare.getLhs().getType().isIndex())
    return {};
  auto isLane = [&](Value value) {
    auto index = value.getDefiningOp<linalg::IndexOp>();
    return index && index.getDim() == plan.vectorDim;
  };
  arith::CmpIPredicate predicate = compare.getPredicate();
  Value other = compare.getRhs();
  if (!isLane(compare.getLhs())) {
    if (!isLane(compare.getRhs()))
      return {};
    other = compare.getLhs();
    predicate = swapPredicate(predicate);
  }
  Value bound = mapping.lookupOrDefault(other);
  if (isa<VectorType>(bound.getType()))
    return {};
  // lane + iv < bound is lane < bound - iv; outside [-1, lanes] all lanes
  // agree.
  Value distance = arith::SubIOp::create(b, loc, bound, ivs[plan.vectorDim]);
  distance = arith::MaxSIOp::create(b, loc, distance, index(-1));
  distance = arith::MinSIOp::create(b, loc, distance, index(lanes.count));
  bool isUnsigned = predicate >= arith::CmpIPredicate::ult;
  if (isUnsigned) {
    // A bound with the top bit set is above every index.
    Value high = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, bound,
                                       index(0));
    distance =
        arith::SelectOp::create(b, loc, high, index(lanes.count), distance);
    predicate = toSigned(predicate);
  }
  Type i32 = b.getI32Type();
  auto type = VectorType::get(lanes.count, i32);
  Value narrow = arith::IndexCastOp::create(b, loc, i32, distance);
  auto steps = llvm::to_vector(llvm::seq<int32_t>(0, lanes.count));
  Value lane =
      arith::ConstantOp::create(b, loc, DenseIntElementsAttr::get(type, steps));
  return arith::CmpIOp::create(b, loc, predicate, lane,
                               toLanes(narrow, lanes.count));
}

/// The payload for one row: scalars stay scalars until they meet a vector.
Values NestEmitter::evaluate(ArrayRef<Value> arguments, ArrayRef<Value> ivs,
                             Lanes lanes) {
  IRMapping mapping;
  Block *body = op.getBlock();
  for (auto [argument, value] : llvm::zip(body->getArguments(), arguments))
    mapping.map(argument, value);
  auto indexAt = [&](unsigned dim) -> Value {
    if (lanes.count == 0 || dim != plan.vectorDim)
      return ivs[dim];
    auto type = VectorType::get(lanes.count, b.getIndexType());
    auto steps = llvm::to_vector(llvm::seq<int64_t>(0, lanes.count));
    Value offsets = arith::ConstantOp::create(
        b, loc, DenseIntElementsAttr::get(type, steps));
    Value base = vector::BroadcastOp::create(b, loc, type, ivs[dim]);
    return arith::AddIOp::create(b, loc, base, offsets);
  };
  for (Operation &nested : body->without_terminator()) {
    if (auto indexOp = dyn_cast<linalg::IndexOp>(nested)) {
      mapping.map(indexOp.getResult(), indexAt(indexOp.getDim()));
      continue;
    }
    bool isVector = llvm::any_of(nested.getOperands(), [&](Value operand) {
      return isa<VectorType>(mapping.lookupOrDefault(operand).getType());
    });
    if (!isVector) {
      Operation *copy = b.clone(nested, mapping);
      SmallVector<linalg::IndexOp> inner;
      copy->walk([&](linalg::IndexOp indexOp) { inner.push_back(indexOp); });
      for (linalg::IndexOp indexOp : inner)
        b.replaceOp(indexOp, indexAt(indexOp.getDim()));
      continue;
    }
    if (Value narrow = compareWithLane(nested, mapping, ivs, lanes)) {
      mapping.map(nested.getResult(0), narrow);
      continue;
    }
    if (&nested == combiner) {
      Value accumulator = op.getRegionOutputArgs().front();
      Value other = nested.getOperand(0) == accumulator ? nested.getOperand(1)
                                                        : nested.getOperand(0);
      mapping.map(
          nested.getResult(0),
          combine(mapping.lookup(accumulator),
                  toLanes(mapping.lookupOrDefault(other), lanes.count)));
      continue;
    }
    Values operands;
    for (Value operand : nested.getOperands())
      operands.push_back(
          toLanes(mapping.lookupOrDefault(operand), lanes.count));
    SmallVector<Type> types;
    for (Type type : nested.getResultTypes())
      types.push_back(VectorType::get(lanes.count, type));
    OperationState state(loc, nested.getName().getStringRef(), operands, types,
                         nested.getAttrs());
    Operation *copy = b.create(state);
    for (auto [from, to] : llvm::zip(nested.getResults(), copy->getResults()))
      mapping.map(from, to);
  }
  Values results;
  for (Value value : body->getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(value));
  return results;
}

/// The reduction's own combiner applied to two accumulators.
Value NestEmitter::combine(Value accumulator, Value value) {
  bool isVector = isa<VectorType>(accumulator.getType());
  OperationState state(loc, combiner->getName().getStringRef(),
                       {accumulator, value}, {accumulator.getType()},
                       combiner->getAttrs());
  // vmaxps(x, acc) keeps acc where x is not a number, as the payload demands;
  // llvm.maxnum would add a compare and a blend per step.
  if (isVector && isa<arith::MaxNumFOp, arith::MinNumFOp>(combiner)) {
    auto predicate = isa<arith::MaxNumFOp>(combiner)
                         ? arith::CmpFPredicate::OGT
                         : arith::CmpFPredicate::OLT;
    Value better = arith::CmpFOp::create(b, loc, predicate, value, accumulator);
    return arith::SelectOp::create(b, loc, better, value, accumulator);
  }
  return b.create(state)->getResult(0);
}

//===----------------------------------------------------------------------===//
// Vectors along a parallel dimension
//===----------------------------------------------------------------------===//

void NestEmitter::allocatePanel() {
  SmallVector<int64_t> shape;
  Values dynamic;
  for (unsigned dim : reductions) {
    if (!usesDim(*plan.packed, dim))
      continue;
    auto constant = getConstantIntValue(sizes[dim]);
    shape.push_back(constant ? *constant : ShapedType::kDynamic);
    if (!constant)
      dynamic.push_back(sizes[dim]);
  }
  shape.push_back(plan.widths.front());
  auto source = cast<MemRefType>(op->getOperand(*plan.packed).getType());
  panel = memref::AllocOp::create(
      b, loc, MemRefType::get(shape, source.getElementType()), dynamic);
}

void NestEmitter::packPanel(Values &ivs, Lanes lanes) {
  unsigned operand = *plan.packed;
  Value source = op->getOperand(operand);
  auto type = cast<MemRefType>(source.getType());
  SmallVector<unsigned> depth;
  for (unsigned dim : reductions)
    if (usesDim(operand, dim))
      depth.push_back(dim);
  auto last = cast<AffineDimExpr>(maps[operand].getResults().back());
  auto panelAt = [&](Values &at, Value lane) {
    Values position;
    for (unsigned dim : depth)
      position.push_back(at[dim]);
    position.push_back(lane);
    return position;
  };
  if (last.getPosition() == plan.vectorDim) {
    auto vectorType = VectorType::get(lanes.count, type.getElementType());
    forOuter(ivs, depth, [&](Values &at) {
      Value values;
      if (lanes.mask) {
        Value zero =
            arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType));
        values = vector::MaskedLoadOp::create(
            b, loc, vectorType, source, indices(operand, at), lanes.mask, zero);
      } else {
        values = vector::LoadOp::create(b, loc, vectorType, source,
                                        indices(operand, at));
      }
      vector::StoreOp::create(b, loc, values, panel, panelAt(at, index(0)));
    });
    return;
  }
  // The panel's lanes are strided in memory: read along the reduction.
  Value first = ivs[plan.vectorDim], count = index(lanes.count);
  if (lanes.mask)
    count = arith::SubIOp::create(b, loc, sizes[plan.vectorDim], first);
  loop(index(0), count, 1, [&](Value lane) {
    Values at(ivs);
    at[plan.vectorDim] = arith::AddIOp::create(b, loc, first, lane);
    forOuter(at, depth, [&](Values &inner) {
      Value value =
          memref::LoadOp::create(b, loc, source, indices(operand, inner));
      memref::StoreOp::create(b, loc, value, panel, panelAt(inner, lane));
    });
  });
}

void NestEmitter::emitParallelBlock(Values &ivs, int64_t rows, Lanes lanes) {
  unsigned numOutputs = op.getNumDpsInits();
  Values rowIvs;
  for (int64_t row = 0; row < rows; ++row)
    rowIvs.push_back(plan.rowDim ? add(ivs[*plan.rowDim], row) : Value());
  auto atRow = [&](ArrayRef<Value> base, int64_t row) {
    Values result(base);
    if (plan.rowDim)
      result[*plan.rowDim] = rowIvs[row];
    return result;
  };
  SmallVector<Values> inputs(rows, Values(numInputs));
  auto loadInputs = [&](Values &at, bool inReduction) {
    for (unsigned operand = 0; operand < numInputs; ++operand) {
      if (usesReduction(operand) != inReduction)
        continue;
      bool perRow = plan.rowDim && usesDim(operand, *plan.rowDim);
      for (int64_t row = 0; row < rows; ++row)
        inputs[row][operand] = row && !perRow
                                   ? inputs[0][operand]
                                   : load(operand, atRow(at, row), lanes);
    }
  };
  loadInputs(ivs, /*inReduction=*/false);

  Values accumulators;
  for (int64_t row = 0; row < rows; ++row)
    for (unsigned output = 0; output < numOutputs; ++output) {
      unsigned operand = numInputs + output;
      Value start;
      if (fill)
        start = fill;
      else if (!reductions.empty() ||
               op.payloadUsesValueFromOperand(&op->getOpOperand(operand)))
        start = load(operand, atRow(ivs, row), lanes);
      else
        start = arith::ConstantOp::create(
            b, loc,
            b.getZeroAttr(getElementTypeOrSelf(op->getOperand(operand))));
      accumulators.push_back(toLanes(start, lanes.count));
    }
  accumulators = forReductions(
      ivs, reductions, accumulators, [&](Values &at, ValueRange carried) {
        loadInputs(at, /*inReduction=*/true);
        Values results;
        for (int64_t row = 0; row < rows; ++row) {
          Values arguments(inputs[row]);
          llvm::append_range(arguments,
                             carried.slice(row * numOutputs, numOutputs));
          for (Value value : evaluate(arguments, atRow(at, row), lanes))
            results.push_back(toLanes(value, lanes.count));
        }
        return results;
      });
  for (int64_t row = 0; row < rows; ++row)
    for (unsigned output = 0; output < numOutputs; ++output)
      store(numInputs + output, accumulators[row * numOutputs + output],
            atRow(ivs, row), lanes);
}

void NestEmitter::emitParallel(Values &ivs) {
  auto nest = [&] {
    if (plan.panelsOutside) {
      forVectors(ivs, [&](Values &at, Lanes lanes) {
        if (plan.packed && lanes.count)
          packPanel(at, lanes);
        forBlocks(at, plan.rowDim, plan.rows, [&](Values &in, int64_t rows) {
          emitParallelBlock(in, rows, lanes);
        });
      });
      return;
    }
    forBlocks(ivs, plan.rowDim, plan.rows, [&](Values &at, int64_t rows) {
      forVectors(at, [&](Values &in, Lanes lanes) {
        emitParallelBlock(in, rows, lanes);
      });
    });
  };
  if (plan.depthBlock == 0)
    return nest();
  auto [end, rest] = split(reductions.front(), plan.depthBlock);
  loop(index(0), end, plan.depthBlock, [&](Value iv) {
    depthBegin = iv;
    depthSteps = plan.depthBlock;
    nest();
  });
  if (!rest)
    return;
  depthBegin = end;
  depthSteps = 0;
  nest();
}

//===----------------------------------------------------------------------===//
// Vectors along a reduction
//===----------------------------------------------------------------------===//

void NestEmitter::emitReductionBlock(Values &ivs, int64_t rows, int64_t cols) {
  unsigned output = numInputs, dim = plan.vectorDim;
  int64_t width = plan.widths.front();
  Type element = getElementTypeOrSelf(op->getOperand(output));
  auto at = [&](ArrayRef<Value> base, int64_t row, int64_t col) {
    Values result(base);
    if (plan.rowDim)
      result[*plan.rowDim] = add(base[*plan.rowDim], row);
    if (plan.colDim)
      result[*plan.colDim] = add(base[*plan.colDim], col);
    return result;
  };
  int64_t cells = rows * cols;
  SmallVector<Values> inputs(cells, Values(numInputs));
  auto loadInputs = [&](Values &base, Lanes lanes, bool inReduction) {
    for (unsigned operand = 0; operand < numInputs; ++operand) {
      if (usesReduction(operand) != inReduction)
        continue;
      bool perRow = plan.rowDim && usesDim(operand, *plan.rowDim);
      bool perCol = plan.colDim && usesDim(operand, *plan.colDim);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t col = 0; col < cols; ++col) {
          int64_t like = (perRow ? row : 0) * cols + (perCol ? col : 0);
          int64_t cell = row * cols + col;
          inputs[cell][operand] =
              like != cell ? inputs[like][operand]
                           : load(operand, at(base, row, col), lanes);
        }
    }
  };
  loadInputs(ivs, Lanes{}, /*inReduction=*/false);

  SmallVector<Operation *> combiners;
  matchReduction(op.getRegionOutputArgs(), 0, combiners);
  combiner = combiners.front(); // the plan checked that there is just one
  TypedAttr neutralAttr;
  if (isa<arith::MaxNumFOp, arith::MinNumFOp>(combiner)) {
    // Infinities, not NaN: accumulators meet a number at the end anyway.
    auto floatType = cast<FloatType>(element);
    neutralAttr = b.getFloatAttr(
        floatType, APFloat::getInf(floatType.getFloatSemantics(),
                                   isa<arith::MaxNumFOp>(combiner)));
  } else {
    neutralAttr = *arith::getNeutralElement(combiner);
  }
  Value neutral = arith::ConstantOp::create(b, loc, neutralAttr);

  // Vector accumulators, then scalar ones for a tail that cannot be masked.
  auto step = [&](Values &base, ValueRange carried, Lanes lanes) {
    loadInputs(base, lanes, /*inReduction=*/true);
    Values results;
    for (int64_t cell = 0; cell < cells; ++cell) {
      Values arguments(inputs[cell]);
      Value old = carried[cell];
      arguments.push_back(old);
      Values ivsAt = at(base, cell / cols, cell % cols);
      Value next =
          toLanes(evaluate(arguments, ivsAt, lanes).front(), lanes.count);
      if (lanes.mask)
        next = arith::SelectOp::create(b, loc, lanes.mask, next, old);
      results.push_back(next);
    }
    return results;
  };

  SmallVector<unsigned> outer;
  for (unsigned reduction : reductions)
    if (reduction != dim)
      outer.push_back(reduction);
  auto [end, rest] = split(dim, width);
  bool scalarTail = rest && !plan.masked;
  Values start(cells, toLanes(neutral, width));
  if (scalarTail)
    start.append(cells, neutral);
  Values sums =
      forReductions(ivs, outer, start, [&](Values &base, ValueRange carried) {
        Values vectors = loop(index(0), end, width, carried.take_front(cells),
                              [&](Value iv, ValueRange inner) {
                                base[dim] = iv;
                                return step(base, inner, Lanes{width, {}});
                              });
        if (!rest)
          return vectors;
        if (scalarTail) {
          Values scalars = loop(end, sizes[dim], 1, carried.drop_front(cells),
                                [&](Value iv, ValueRange inner) {
                                  base[dim] = iv;
                                  return step(base, inner, Lanes{});
                                });
          llvm::append_range(vectors, scalars);
          return vectors;
        }
        return loop(
            end, sizes[dim], width, vectors, [&](Value iv, ValueRange inner) {
              base[dim] = iv;
              Value live = arith::SubIOp::create(b, loc, sizes[dim], iv);
              Value mask = vector::CreateMaskOp::create(
                  b, loc, VectorType::get(width, b.getI1Type()), live);
              return step(base, inner, Lanes{width, mask});
            });
      });
  vector::CombiningKind kind = *linalg::getCombinerOpKind(combiner);
  for (int64_t cell = 0; cell < cells; ++cell) {
    Values where = at(ivs, cell / cols, cell % cols);
    Value sum = vector::ReductionOp::create(b, loc, kind, sums[cell]);
    if (scalarTail)
      sum = combine(sum, sums[cells + cell]);
    Value begin = fill ? fill : load(output, where, Lanes{});
    store(output, combine(begin, sum), where, Lanes{});
  }
}

void NestEmitter::emit() {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  findSizes();
  SmallVector<unsigned> outer;
  for (auto [dim, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (kind == utils::IteratorType::reduction || plan.rowDim == dim ||
        plan.colDim == dim)
      continue;
    if (plan.mode == NestPlan::Mode::parallel && plan.vectorDim == dim)
      continue;
    outer.push_back(dim);
  }
  if (plan.packed)
    allocatePanel();
  Values ivs(op.getNumLoops());
  forOuter(ivs, outer, [&](Values &at) {
    if (plan.mode != NestPlan::Mode::reduction)
      return emitParallel(at);
    forBlocks(at, plan.rowDim, plan.rows, [&](Values &inRow, int64_t rows) {
      forBlocks(inRow, plan.colDim, plan.cols, [&](Values &in, int64_t cols) {
        emitReductionBlock(in, rows, cols);
      });
    });
  });
  b.eraseOp(op);
}

} // namespace

void mlir::pgkp::host::emitNest(RewriterBase &rewriter, linalg::LinalgOp op,
                                Extents &extents, const NestPlan &plan,
                                Value fill) {
  NestEmitter(rewriter, op, extents, plan, fill).emit();
}
