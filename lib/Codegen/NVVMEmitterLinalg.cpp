// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Elements of linalg operations; reductions.
#include "NVVMEmitter.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::pgkp;
using namespace mlir::pgkp::nvvm;

//===----------------------------------------------------------------------===//
// Linalg operations
//===----------------------------------------------------------------------===//

Value KernelEmitter::loopSize(linalg::LinalgOp op, unsigned dim) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (auto position =
            map.getResultPosition(getAffineDimExpr(dim, b.getContext())))
      return dimOf(operand.get(), *position);
  }
  return fail(op, "size of loop " + Twine(dim) + " is not known",
              b.getIndexType());
}

SmallVector<Value> KernelEmitter::computeLinalg(linalg::LinalgOp op,
                                                unsigned result,
                                                ArrayRef<Value> index) {
  Type elementType = getElementTypeOrSelf(op->getResult(result).getType());
  unsigned numLoops = op.getNumLoops();
  SmallVector<Value> ivs(numLoops);
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
  for (auto [expr, i] : llvm::zip_equal(map.getResults(), index))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      ivs[dim.getPosition()] = i;
    else if (!isa<AffineConstantExpr>(expr))
      return SmallVector<Value>(
          op->getNumResults(),
          fail(op, "result map is not a projected permutation", elementType));

  SmallVector<unsigned> reduced;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (unsigned d = 0; d < numLoops; ++d) {
    if (ivs[d])
      continue;
    if (iterators[d] != utils::IteratorType::reduction)
      return SmallVector<Value>(
          op->getNumResults(),
          fail(op,
               "loop " + Twine(d) + " is parallel but not in the result's map",
               elementType));
    reduced.push_back(d);
  }

  // Values that the accumulators start from; only where the body reads them.
  // Other results than the wanted one come along where their indices are
  // known, because the body may read their accumulators.
  SmallVector<Value> inits;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    SmallVector<Value> initIndex;
    bool indexed = true;
    for (AffineExpr expr : op.getMatchingIndexingMap(&init).getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (dim && !ivs[dim.getPosition()])
        indexed = false;
      else
        initIndex.push_back(dim ? ivs[dim.getPosition()] : constant(0));
    }
    if (!indexed)
      return SmallVector<Value>(
          op->getNumResults(),
          fail(op,
               "results with different maps are not supported in a kernel "
               "for NVVM",
               elementType));
    bool read = !op.getMatchingBlockArgument(&init).use_empty();
    inits.push_back(read || !reduced.empty() ? evaluate(init.get(), initIndex)
                                             : Value());
  }
  if (reduced.empty())
    return inlineBody(op, ivs, inits);

  if (probe) {
    int64_t length = 1;
    for (unsigned d : reduced) {
      auto size = constantOf(loopSize(op, d));
      length = size && length != ShapedType::kDynamic ? length * *size
                                                      : ShapedType::kDynamic;
    }
    probe->push_back(
        {op, unsigned(scopes.size() - 1), length, SmallVector<Value>(index)});
  }

  bool uniform = !probe && llvm::all_of(scopes, [](auto &scope) {
    return scope->uniform;
  });
  if (uniform) {
    SmallVector<Operation *> combiners;
    for (unsigned i = 0; i < op->getNumResults(); ++i) {
      SmallVector<Operation *> ops;
      if (matchReduction(op.getRegionOutputArgs(), i, ops) && ops.size() == 1 &&
          arith::getNeutralElement(ops.front()))
        combiners.push_back(ops.front());
    }
    if (combiners.size() == op->getNumResults())
      return blockReduction(op, ivs, reduced, inits, combiners);
  }
  return sequentialReduction(op, ivs, reduced, inits);
}

SmallVector<Value> KernelEmitter::sequentialReduction(
    linalg::LinalgOp op, MutableArrayRef<Value> ivs, ArrayRef<unsigned> reduced,
    ArrayRef<Value> inits) {
  SmallVector<scf::ForOp> loops;
  SmallVector<Value> accumulators(inits);
  SmallVector<Value> sizes;
  for (unsigned d : reduced)
    sizes.push_back(loopSize(op, d));
  moveToScopeEnd();
  for (auto [d, size] : llvm::zip_equal(reduced, sizes)) {
    auto loop = scf::ForOp::create(b, loc, constant(0), size, constant(1),
                                   accumulators);
    loops.push_back(loop);
    pushScope(loop, loop.getBody(), /*uniform=*/false);
    ivs[d] = loop.getInductionVar();
    accumulators.assign(loop.getRegionIterArgs().begin(),
                        loop.getRegionIterArgs().end());
  }
  SmallVector<Value> yielded = inlineBody(op, ivs, accumulators);
  for (scf::ForOp loop : llvm::reverse(loops)) {
    b.setInsertionPointToEnd(loop.getBody());
    scf::YieldOp::create(b, loc, yielded);
    yielded.assign(loop.getResults().begin(), loop.getResults().end());
    popScope();
  }
  return yielded;
}

/// Each thread reduces every `threads`-th element from the neutral element on;
/// then the block combines the partial results, and every thread gets them.
SmallVector<Value>
KernelEmitter::blockReduction(linalg::LinalgOp op, MutableArrayRef<Value> ivs,
                              ArrayRef<unsigned> reduced, ArrayRef<Value> inits,
                              ArrayRef<Operation *> combiners) {
  SmallVector<Value> sizes;
  Value total = constant(1);
  for (unsigned d : reduced) {
    sizes.push_back(loopSize(op, d));
    total = mul(total, sizes.back());
  }
  Value start = threadId();
  moveToScopeEnd();
  SmallVector<Value> neutral;
  for (Operation *combiner : combiners)
    neutral.push_back(
        arith::ConstantOp::create(b, loc, *arith::getNeutralElement(combiner)));
  auto loop =
      scf::ForOp::create(b, loc, start, total, constant(threads), neutral);
  pushScope(loop, loop.getBody(), /*uniform=*/false);
  for (auto [d, v] :
       llvm::zip_equal(reduced, delinearize(loop.getInductionVar(), sizes)))
    ivs[d] = v;
  SmallVector<Value> accumulators(loop.getRegionIterArgs());
  SmallVector<Value> yielded = inlineBody(op, ivs, accumulators);
  b.setInsertionPointToEnd(loop.getBody());
  scf::YieldOp::create(b, loc, yielded);
  popScope();

  SmallVector<Value> totals;
  for (auto [i, combiner] : llvm::enumerate(combiners))
    totals.push_back(combine(combiner, inits[i],
                             reduceOverBlock(loop.getResult(i), combiner)));
  return totals;
}

Value KernelEmitter::reduceOverBlock(Value partial, Operation *combiner) {
  Value array = sharedArray(partial.getType());
  Value self = threadId();
  Type type = partial.getType();
  moveToScopeEnd();
  store(partial, array, self, kSharedSpace);
  NVVM::Barrier0Op::create(b, loc);
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    Value active = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                         self, constant(half));
    auto ifOp = scf::IfOp::create(b, loc, active, /*withElseRegion=*/false);
    b.setInsertionPointToStart(ifOp.thenBlock());
    Value other = arith::AddIOp::create(b, loc, self, constant(half));
    Value sum = combine(combiner, load(array, self, type, kSharedSpace),
                        load(array, other, type, kSharedSpace));
    store(sum, array, self, kSharedSpace);
    b.setInsertionPointAfter(ifOp);
    NVVM::Barrier0Op::create(b, loc);
  }
  Value total = load(array, constant(0), type, kSharedSpace);
  // The array is used again by the next reduction.
  NVVM::Barrier0Op::create(b, loc);
  return total;
}

Value KernelEmitter::combine(Operation *combiner, Value lhs, Value rhs) {
  IRMapping map;
  map.map(combiner->getOperand(0), lhs);
  map.map(combiner->getOperand(1), rhs);
  return b.clone(*combiner, map)->getResult(0);
}

/// The body with the loop indices `ivs`; returns what it yields.
SmallVector<Value> KernelEmitter::inlineBody(linalg::LinalgOp op,
                                             ArrayRef<Value> ivs,
                                             ArrayRef<Value> accumulators) {
  IRMapping map;
  for (OpOperand *input : op.getDpsInputOperands()) {
    BlockArgument arg = op.getMatchingBlockArgument(input);
    if (arg.use_empty())
      continue;
    if (!isa<RankedTensorType>(input->get().getType())) {
      map.map(arg, scalarOf(input->get()));
      continue;
    }
    SmallVector<Value> index;
    for (AffineExpr expr : op.getMatchingIndexingMap(input).getResults())
      index.push_back(affine(expr, ivs));
    map.map(arg, evaluate(input->get(), index));
  }
  for (auto [i, arg] : llvm::enumerate(op.getRegionOutputArgs()))
    if (accumulators[i])
      map.map(arg, accumulators[i]);
  moveToScopeEnd();
  bodyLoc = op.getLoc();
  return inlineBlock(*op.getBlock(), map, ivs);
}

SmallVector<Value> KernelEmitter::inlineBlock(Block &block, IRMapping &map,
                                              ArrayRef<Value> ivs) {
  for (Operation &op : block.without_terminator())
    inlineOp(op, map, ivs);
  SmallVector<Value> results;
  for (Value v : block.getTerminator()->getOperands()) {
    Value known = map.lookupOrNull(v);
    results.push_back(known ? known : scalarOf(v));
  }
  return results;
}

void KernelEmitter::inlineOp(Operation &op, IRMapping &map,
                             ArrayRef<Value> ivs) {
  auto lookup = [&](Value v) -> Value {
    if (Value known = map.lookupOrNull(v))
      return known;
    return scalarOf(v);
  };
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    SmallVector<Value> index;
    for (Value i : extract.getIndices())
      index.push_back(lookup(i));
    map.map(extract.getResult(), evaluate(extract.getTensor(), index));
    return;
  }
  if (auto indexOp = dyn_cast<linalg::IndexOp>(op)) {
    map.map(indexOp.getResult(), ivs[indexOp.getDim()]);
    return;
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    if (auto i = dim.getConstantIndex()) {
      map.map(dim.getResult(), dimOf(dim.getSource(), *i));
      return;
    }
  }
  if (!isMemoryEffectFree(&op) ||
      llvm::any_of(op.getOperandTypes(), llvm::IsaPred<ShapedType>)) {
    for (Value result : op.getResults())
      map.map(result, fail(&op,
                           "'" + op.getName().getStringRef() +
                               "' is not supported in a kernel for NVVM",
                           result.getType()));
    return;
  }
  IRMapping operands;
  for (Value operand : op.getOperands())
    operands.map(operand, lookup(operand));
  moveToScopeEnd();
  Operation *copy = b.cloneWithoutRegions(op, operands);
  if (isa<UnknownLoc>(copy->getLoc())) // bodies of named operations
    copy->setLoc(bodyLoc);
  map.map(op.getResults(), copy->getResults());
  for (auto [from, to] : llvm::zip_equal(op.getRegions(), copy->getRegions())) {
    if (from.empty())
      continue;
    if (!from.hasOneBlock()) {
      fail(&op, "control flow inside a body is not supported",
           b.getIndexType());
      return;
    }
    Block *block = &to.emplaceBlock();
    for (BlockArgument arg : from.getArguments())
      map.map(arg, block->addArgument(arg.getType(), arg.getLoc()));
    pushScope(copy, block, /*uniform=*/false, /*conditional=*/true);
    for (Operation &inner : from.front().without_terminator())
      inlineOp(inner, map, ivs);
    Operation *terminator = from.front().getTerminator();
    IRMapping last;
    for (Value operand : terminator->getOperands())
      last.map(operand, lookup(operand));
    b.setInsertionPointToEnd(block);
    b.clone(*terminator, last);
    popScope();
  }
  moveToScopeEnd();
}
