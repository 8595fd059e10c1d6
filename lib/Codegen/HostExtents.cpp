// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "HostExtents.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::pgkp::host;

Extents::Extents(func::FuncOp func) : func(func), ctx(func.getContext()) {
  unsigned count = 0;
  for (unsigned i = 0, e = func.getNumArguments(); i != e; ++i)
    if (auto map = func.getArgAttrOfType<AffineMapAttr>(i, kExtentsAttr))
      count = std::max(count, map.getValue().getNumSymbols());
  symbols.resize(count);
  auto bounds = func->getAttrOfType<ArrayAttr>(kBoundsAttr);
  if (!bounds)
    return;
  for (auto [bound, symbol] : llvm::zip(bounds, symbols)) {
    auto triple = cast<DenseI64ArrayAttr>(bound).asArrayRef();
    symbol = {triple[0], triple[1], triple[2]};
  }
}

AffineExpr Extents::exprOf(OpFoldResult index) {
  if (auto constant = getConstantIntValue(index))
    return getAffineConstantExpr(*constant, ctx);
  return exprOf(cast<Value>(index));
}

AffineExpr Extents::exprOf(Value index) {
  if (auto it = cache.find(index); it != cache.end())
    return it->second;
  AffineExpr expr = compute(index, /*bound=*/false);
  cache[index] = expr;
  return expr;
}

AffineExpr Extents::boundOf(Value index) {
  if (AffineExpr exact = exprOf(index))
    return exact;
  return compute(index, /*bound=*/true);
}

AffineExpr Extents::compute(Value index, bool bound) {
  if (auto constant = getConstantIntValue(index))
    return getAffineConstantExpr(*constant, ctx);
  Operation *def = index.getDefiningOp();
  if (!def)
    return {};
  auto get = [&](Value v) { return bound ? boundOf(v) : exprOf(v); };
  auto binary = [&](auto combine) -> AffineExpr {
    AffineExpr lhs = get(def->getOperand(0)), rhs = get(def->getOperand(1));
    return lhs && rhs ? combine(lhs, rhs) : AffineExpr();
  };
  if (auto dim = dyn_cast<memref::DimOp>(def)) {
    auto position = dim.getConstantIndex();
    return position ? sizeOf(dim.getSource(), *position) : AffineExpr();
  }
  if (auto apply = dyn_cast<affine::AffineApplyOp>(def)) {
    // Exact operands only: an upper bound would need the map to be monotonic.
    SmallVector<AffineExpr> operands;
    for (Value operand : apply.getMapOperands()) {
      operands.push_back(exprOf(operand));
      if (!operands.back())
        return {};
    }
    AffineMap map = apply.getAffineMap();
    return map.getResult(0).replaceDimsAndSymbols(
        ArrayRef(operands).take_front(map.getNumDims()),
        ArrayRef(operands).drop_front(map.getNumDims()));
  }
  if (auto min = dyn_cast<affine::AffineMinOp>(def)) {
    if (!bound)
      return {};
    // Any one operand of a minimum bounds it; a constant is the tightest that
    // is cheap to find.
    AffineExpr best;
    AffineMap map = min.getAffineMap();
    for (AffineExpr result : map.getResults()) {
      if (isa<AffineConstantExpr>(result))
        return result;
      SmallVector<AffineExpr> operands;
      for (Value operand : min.getMapOperands())
        operands.push_back(exprOf(operand));
      bool known = true;
      for (auto [position, operand] : llvm::enumerate(operands)) {
        unsigned n = map.getNumDims();
        bool used = position < n ? result.isFunctionOfDim(position)
                                 : result.isFunctionOfSymbol(position - n);
        if (operand)
          continue;
        known &= !used;
        operand = getAffineConstantExpr(0, ctx);
      }
      if (known)
        best = result.replaceDimsAndSymbols(
            ArrayRef(operands).take_front(map.getNumDims()),
            ArrayRef(operands).drop_front(map.getNumDims()));
    }
    return best;
  }
  if (isa<arith::AddIOp>(def))
    return binary([](AffineExpr a, AffineExpr b) { return a + b; });
  if (isa<arith::MulIOp>(def))
    return binary([](AffineExpr a, AffineExpr b) { return a * b; });
  if (bound)
    return {};
  if (isa<arith::SubIOp>(def))
    return binary([](AffineExpr a, AffineExpr b) { return a - b; });
  // Sizes are not negative, so signed and unsigned division agree.
  if (isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp>(def))
    return binary([](AffineExpr a, AffineExpr b) { return a.floorDiv(b); });
  if (isa<arith::CeilDivSIOp, arith::CeilDivUIOp>(def))
    return binary([](AffineExpr a, AffineExpr b) { return a.ceilDiv(b); });
  return {};
}

AffineExpr Extents::sizeOf(Value memref, int64_t dim) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(dim))
    return getAffineConstantExpr(type.getDimSize(dim), ctx);
  if (auto argument = dyn_cast<BlockArgument>(memref)) {
    if (argument.getOwner() != &func.getBody().front())
      return {};
    auto map = func.getArgAttrOfType<AffineMapAttr>(argument.getArgNumber(),
                                                    kExtentsAttr);
    return map ? map.getValue().getResult(dim) : AffineExpr();
  }
  Operation *def = memref.getDefiningOp();
  if (auto cast = dyn_cast<memref::CastOp>(def))
    return sizeOf(cast.getSource(), dim);
  if (auto subview = dyn_cast<memref::SubViewOp>(def)) {
    llvm::SmallBitVector dropped = subview.getDroppedDims();
    int64_t kept = 0;
    for (auto [position, size] : llvm::enumerate(subview.getMixedSizes())) {
      if (dropped.test(position))
        continue;
      if (kept++ == dim)
        return exprOf(size);
    }
    return {};
  }
  if (auto expand = dyn_cast<memref::ExpandShapeOp>(def))
    return exprOf(getMixedValues(expand.getStaticOutputShape(),
                                 expand.getOutputShape(), ctx)[dim]);
  if (auto collapse = dyn_cast<memref::CollapseShapeOp>(def)) {
    AffineExpr product = getAffineConstantExpr(1, ctx);
    for (int64_t position : collapse.getReassociationIndices()[dim]) {
      AffineExpr size = sizeOf(collapse.getSrc(), position);
      if (!size)
        return {};
      product = product * size;
    }
    return product;
  }
  if (isa<memref::AllocOp, memref::ViewOp>(def)) {
    unsigned position = type.getDynamicDimIndex(dim);
    if (auto alloc = dyn_cast<memref::AllocOp>(def))
      return exprOf(alloc.getDynamicSizes()[position]);
    return exprOf(mlir::cast<memref::ViewOp>(def).getSizes()[position]);
  }
  return {};
}

int64_t Extents::divisorOf(AffineExpr expr) const {
  switch (expr.getKind()) {
  case AffineExprKind::Constant:
    return std::abs(cast<AffineConstantExpr>(expr).getValue());
  case AffineExprKind::SymbolId: {
    unsigned position = cast<AffineSymbolExpr>(expr).getPosition();
    return position < symbols.size() ? symbols[position].divisor : 1;
  }
  case AffineExprKind::DimId:
    return 1;
  default:
    break;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = divisorOf(binary.getLHS()), rhs = divisorOf(binary.getRHS());
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return std::gcd(lhs, rhs);
  case AffineExprKind::Mul: {
    int64_t product;
    return llvm::MulOverflow(lhs, rhs, product) ? std::max(lhs, rhs) : product;
  }
  case AffineExprKind::FloorDiv:
  case AffineExprKind::CeilDiv: {
    auto by = dyn_cast<AffineConstantExpr>(binary.getRHS());
    return by && by.getValue() > 0 && lhs % by.getValue() == 0
               ? lhs / by.getValue()
               : 1;
  }
  default:
    return 1;
  }
}

std::pair<int64_t, int64_t> Extents::rangeOf(AffineExpr expr) const {
  constexpr int64_t kMax = INT64_MAX;
  switch (expr.getKind()) {
  case AffineExprKind::Constant: {
    int64_t value = cast<AffineConstantExpr>(expr).getValue();
    return {value, value};
  }
  case AffineExprKind::SymbolId: {
    unsigned position = cast<AffineSymbolExpr>(expr).getPosition();
    if (position >= symbols.size())
      return {0, kMax};
    return {symbols[position].low, symbols[position].high};
  }
  case AffineExprKind::DimId:
    return {INT64_MIN, kMax};
  default:
    break;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  auto [lowL, highL] = rangeOf(binary.getLHS());
  auto [lowR, highR] = rangeOf(binary.getRHS());
  auto mul = [](int64_t a, int64_t b) {
    int64_t product;
    return llvm::MulOverflow(a, b, product) ? kMax : product;
  };
  auto add = [](int64_t a, int64_t b) {
    int64_t sum;
    return llvm::AddOverflow(a, b, sum) ? (a > 0 ? kMax : INT64_MIN) : sum;
  };
  // Only what sizes need: differences and negative factors say nothing.
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    if (lowL == INT64_MIN || lowR == INT64_MIN)
      return {INT64_MIN, kMax};
    return {add(lowL, lowR), add(highL, highR)};
  case AffineExprKind::Mul:
    if (lowL < 0 || lowR < 0)
      return {INT64_MIN, kMax};
    return {mul(lowL, lowR), highL == 0 || highR == 0 ? 0 : mul(highL, highR)};
  case AffineExprKind::FloorDiv:
    if (lowL < 0 || lowR <= 0)
      return {INT64_MIN, kMax};
    return {highR == kMax ? 0 : lowL / highR,
            highL == kMax ? kMax : highL / lowR};
  default:
    return {INT64_MIN, kMax};
  }
}
