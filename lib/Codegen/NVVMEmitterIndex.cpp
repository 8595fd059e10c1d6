// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Loop nest under construction and index arithmetic.
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
// Scopes
//===----------------------------------------------------------------------===//

void KernelEmitter::pushScope(Operation *holder, Block *block, bool uniform,
                              bool conditional) {
  auto scope = std::make_unique<Scope>();
  scope->block = block;
  scope->uniform = uniform;
  scope->conditional = conditional;
  if (!scopes.empty()) {
    scope->outerInner = scopes.back()->inner;
    scopes.back()->inner = holder;
  }
  scopes.push_back(std::move(scope));
  moveToScopeEnd();
}

void KernelEmitter::popScope() {
  Operation *holder = scopes.back()->block->getParentOp();
  Operation *outerInner = scopes.back()->outerInner;
  scopes.pop_back();
  scopes.back()->inner = outerInner;
  b.setInsertionPointAfter(holder);
}

void KernelEmitter::moveToScopeEnd() {
  Scope &scope = *scopes.back();
  if (scope.inner)
    b.setInsertionPoint(scope.inner);
  else if (scope.block->mightHaveTerminator())
    b.setInsertionPoint(scope.block->getTerminator());
  else
    b.setInsertionPointToEnd(scope.block);
}

unsigned KernelEmitter::depthOf(Value v) const {
  for (unsigned i = scopes.size(); i-- > 0;)
    if (scopes[i]->block == v.getParentBlock())
      return i;
  return scopes.size() - 1;
}

unsigned KernelEmitter::conditionalDepth() const {
  for (unsigned i = scopes.size(); i-- > 0;)
    if (scopes[i]->conditional)
      return i;
  return 0;
}

Value KernelEmitter::fail(Operation *op, const Twine &message, Type type) {
  if (!failed)
    emitError(op->getLoc(), message);
  failed = true;
  if (type.isIndex())
    return constant(0);
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

//===----------------------------------------------------------------------===//
// Index arithmetic
//===----------------------------------------------------------------------===//

Value KernelEmitter::constant(int64_t value) {
  Value &known = constants[value];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(scopes.front()->block);
    known = arith::ConstantIndexOp::create(b, loc, value);
  }
  return known;
}

std::optional<int64_t> KernelEmitter::constantOf(Value v) const {
  return getConstantIntValue(v);
}

template <typename OpTy> Value KernelEmitter::indexOp(Value lhs, Value rhs) {
  unsigned depth = std::max(depthOf(lhs), depthOf(rhs));
  // A division stays under its condition: the divisor may be 0 elsewhere.
  if (std::is_same_v<OpTy, arith::DivUIOp> ||
      std::is_same_v<OpTy, arith::RemUIOp>)
    depth = std::max(depth, conditionalDepth());
  return atDepth(depth, [&]() -> Value {
    std::vector<const void *> key = {
        OperationName(OpTy::getOperationName(), b.getContext())
            .getAsOpaquePointer(),
        lhs.getAsOpaquePointer(), rhs.getAsOpaquePointer()};
    SmallVector<Value> &known = scopes.back()->known[key];
    if (known.empty())
      known.push_back(OpTy::create(b, loc, lhs, rhs));
    return known.front();
  });
}

Value KernelEmitter::add(Value lhs, Value rhs) {
  auto l = constantOf(lhs), r = constantOf(rhs);
  if (l && r)
    return constant(*l + *r);
  if (l == 0)
    return rhs;
  if (r == 0)
    return lhs;
  Value sum = indexOp<arith::AddIOp>(lhs, rhs);
  // A lane stays one where its base stays a multiple.
  if (auto *at = laneOf(lhs); at && r && *r % laneCount == 0) {
    auto [base, number] = *at;
    lanes.try_emplace(sum, std::make_pair(add(base, rhs), number));
  }
  return sum;
}

Value KernelEmitter::sub(Value lhs, Value rhs) {
  auto l = constantOf(lhs), r = constantOf(rhs);
  if (l && r)
    return constant(*l - *r);
  if (r == 0)
    return lhs;
  return indexOp<arith::SubIOp>(lhs, rhs);
}

Value KernelEmitter::mul(Value lhs, Value rhs) {
  auto l = constantOf(lhs), r = constantOf(rhs);
  if (l && r)
    return constant(*l * *r);
  if (l == 0 || r == 0)
    return constant(0);
  if (l == 1)
    return rhs;
  if (r == 1)
    return lhs;
  return indexOp<arith::MulIOp>(lhs, rhs);
}

/// Both operands are sizes or indices, never negative.
Value KernelEmitter::divide(Value lhs, Value rhs) {
  auto l = constantOf(lhs), r = constantOf(rhs);
  if (l && r && *r != 0)
    return constant(*l / *r);
  if (r == 1)
    return lhs;
  return indexOp<arith::DivUIOp>(lhs, rhs);
}

Value KernelEmitter::remainder(Value lhs, Value rhs) {
  auto l = constantOf(lhs), r = constantOf(rhs);
  if (l && r && *r != 0)
    return constant(*l % *r);
  if (r == 1)
    return constant(0);
  return indexOp<arith::RemUIOp>(lhs, rhs);
}

Value KernelEmitter::linearize(ArrayRef<Value> index, ArrayRef<Value> sizes) {
  SmallVector<Value> usedIndex, usedSizes;
  for (auto [i, s] : llvm::zip_equal(index, sizes)) {
    if (constantOf(s) == 1)
      continue;
    usedIndex.push_back(i);
    usedSizes.push_back(s);
  }
  if (usedIndex.empty())
    return constant(0);
  if (usedIndex.size() == 1)
    return usedIndex.front();
  auto *at = laneOf(usedIndex.back());
  bool isLane = at && isLaneMultiple(usedSizes.back());
  if (isLane && at->second > 0) {
    auto [base, number] = *at;
    usedIndex.back() = base;
    Value first = linearize(usedIndex, usedSizes);
    Value linear = lane(first, number);
    usedIndex.back() = lane(base, number);
    parts.try_emplace(linear, std::make_pair(usedIndex, usedSizes));
    return linear;
  }
  unsigned depth = 0;
  for (Value v : usedIndex)
    depth = std::max(depth, depthOf(v));
  for (Value v : usedSizes)
    depth = std::max(depth, depthOf(v));
  // The size of the first dimension does not enter.
  std::vector<const void *> key = {&parts};
  for (Value v : usedIndex)
    key.push_back(v.getAsOpaquePointer());
  for (Value v : ArrayRef<Value>(usedSizes).drop_front())
    key.push_back(v.getAsOpaquePointer());
  SmallVector<Value> &known = scopes[depth]->known[key];
  if (known.empty()) {
    Value linear = usedIndex.front();
    for (unsigned i = 1; i < usedIndex.size(); ++i)
      linear = add(mul(linear, usedSizes[i]), usedIndex[i]);
    parts.try_emplace(linear, std::make_pair(usedIndex, usedSizes));
    // `add` may have grown the map, but references into it stay valid.
    known.push_back(linear);
  }
  if (isLane)
    lane(known.front(), 0);
  return known.front();
}

SmallVector<Value> KernelEmitter::delinearize(Value linear,
                                              ArrayRef<Value> sizes) {
  SmallVector<unsigned> used;
  for (auto [i, s] : llvm::enumerate(sizes))
    if (constantOf(s) != 1)
      used.push_back(i);
  SmallVector<Value> index(sizes.size(), constant(0));
  if (used.empty())
    return index;
  if (used.size() == 1) {
    index[used.front()] = linear;
    return index;
  }
  // Undo an earlier linearization of the same shape instead of dividing.
  auto it = parts.find(linear);
  if (it != parts.end() && it->second.first.size() == used.size()) {
    bool same = true;
    for (unsigned i = 1; i < used.size(); ++i)
      same &= it->second.second[i] == sizes[used[i]];
    if (same) {
      for (auto [i, v] : llvm::zip_equal(used, it->second.first))
        index[i] = v;
      return index;
    }
  }
  if (auto *at = laneOf(linear);
      at && at->first != linear && isLaneMultiple(sizes[used.back()])) {
    auto [base, number] = *at;
    index = delinearize(base, sizes);
    index[used.back()] = lane(index[used.back()], number);
    return index;
  }
  Value rest = linear;
  for (unsigned i = used.size() - 1; i > 0; --i) {
    index[used[i]] = remainder(rest, sizes[used[i]]);
    rest = divide(rest, sizes[used[i]]);
  }
  index[used.front()] = rest;
  if (laneOf(linear) && isLaneMultiple(sizes[used.back()]))
    lane(index[used.back()], 0);
  // So that a flat access with these indices uses the number as it is.
  SmallVector<Value> usedIndex, usedSizes;
  unsigned depth = 0;
  std::vector<const void *> key = {&parts};
  for (unsigned i : used) {
    usedIndex.push_back(index[i]);
    usedSizes.push_back(sizes[i]);
    depth = std::max({depth, depthOf(index[i]), depthOf(sizes[i])});
    key.push_back(index[i].getAsOpaquePointer());
  }
  for (Value v : ArrayRef<Value>(usedSizes).drop_front())
    key.push_back(v.getAsOpaquePointer());
  SmallVector<Value> &known = scopes[depth]->known[key];
  if (known.empty())
    known.push_back(linear);
  return index;
}

Value KernelEmitter::affine(AffineExpr expr, ArrayRef<Value> dims) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto c = dyn_cast<AffineConstantExpr>(expr))
    return constant(c.getValue());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  if (expr.getKind() == AffineExprKind::Add)
    return add(affine(binary.getLHS(), dims), affine(binary.getRHS(), dims));
  if (expr.getKind() == AffineExprKind::Mul)
    return mul(affine(binary.getLHS(), dims), affine(binary.getRHS(), dims));
  unsigned depth = 0;
  expr.walk([&](AffineExpr e) {
    if (auto dim = dyn_cast<AffineDimExpr>(e))
      depth = std::max(depth, depthOf(dims[dim.getPosition()]));
  });
  return atDepth(depth, [&]() -> Value {
    return affine::expandAffineExpr(b, loc, expr, dims, {});
  });
}

Value KernelEmitter::fromFoldResult(OpFoldResult value) {
  if (auto attr = dyn_cast<Attribute>(value))
    return constant(cast<IntegerAttr>(attr).getInt());
  return scalarOf(cast<Value>(value));
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

Value KernelEmitter::lane(Value base, unsigned number) {
  if (laneCount == 1)
    return base;
  Value v = number == 0 ? base : add(base, constant(number));
  lanes.try_emplace(v, std::make_pair(base, number));
  return v;
}

const std::pair<Value, unsigned> *KernelEmitter::laneOf(Value index) const {
  if (laneCount == 1)
    return nullptr;
  auto it = lanes.find(index);
  return it == lanes.end() ? nullptr : &it->second;
}

bool KernelEmitter::isLaneMultiple(Value size) const {
  if (auto c = constantOf(size))
    return *c % laneCount == 0;
  return laneMultiples.contains(size);
}
