// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pgkp/Analysis/RootAnalysis.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::pgkp;

//===----------------------------------------------------------------------===//
// Roots
//===----------------------------------------------------------------------===//

RootAnalysis::RootAnalysis(Operation *operation)
    : context(operation->getContext()) {
  auto function = cast<FunctionOpInterface>(operation);
  if (function.isExternal())
    return;
  // A kernel's symbols are its roots.
  if (auto kernel = dyn_cast<KernelOp>(operation)) {
    for (unsigned i = 0; i < kernel.getNumDims(); ++i)
      roots.push_back({kernel.getDimName(i).str(), Value(), -1,
                       /*isEntry=*/true});
    for (auto [i, argument] : llvm::enumerate(function.getArguments()))
      for (auto [dim, extent] : llvm::enumerate(kernel.getArgumentExtents(i))) {
        extents[{argument, dim}] = extent;
        if (std::optional<unsigned> symbol = extent.getSymbolIndex())
          if (!roots[*symbol].source) {
            roots[*symbol].source = argument;
            roots[*symbol].dim = dim;
          }
      }
    numEntryRoots = roots.size();
    return;
  }
  llvm::StringMap<unsigned> byName;
  for (auto [i, argument] : llvm::enumerate(function.getArguments())) {
    auto type = dyn_cast<ShapedType>(argument.getType());
    if (!type || !type.hasRank())
      continue;
    auto names =
        function.getArgAttrOfType<ArrayAttr>(i, PGKPDialect::kDimsAttr);
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (!type.isDynamicDim(dim))
        continue;
      std::string name;
      if (names && dim < int64_t(names.size()))
        if (auto attr = dyn_cast<StringAttr>(names[dim]))
          name = attr.str();
      if (name.empty())
        name = ("arg" + Twine(i) + "_d" + Twine(dim)).str();
      auto [it, isNew] = byName.try_emplace(name, roots.size());
      if (isNew)
        roots.push_back({name, argument, dim, /*isEntry=*/true});
      extents[{argument, dim}] = ExprAttr::getSymbol(context, it->second);
    }
  }
  numEntryRoots = roots.size();
}

ExprAttr RootAnalysis::addDataRoot(Value source, int64_t dim) {
  std::string name = ("data" + Twine(roots.size() - numEntryRoots)).str();
  roots.push_back({name, source, dim, /*isEntry=*/false});
  return ExprAttr::getSymbol(context, roots.size() - 1);
}

bool RootAnalysis::isKnownAtEntry(ExprAttr expr) const {
  return expr.getNumSymbols() <= numEntryRoots;
}

//===----------------------------------------------------------------------===//
// Index values
//===----------------------------------------------------------------------===//

ExprAttr RootAnalysis::getIndex(OpFoldResult index) {
  if (auto attr = dyn_cast<Attribute>(index))
    return ExprAttr::getConstant(context, cast<IntegerAttr>(attr).getInt());
  return getIndex(cast<Value>(index));
}

ExprAttr RootAnalysis::getIndex(Value index) {
  auto it = indices.find(index);
  if (it != indices.end())
    return it->second;
  ExprAttr expr = computeIndex(index);
  if (!expr)
    expr = addDataRoot(index, /*dim=*/-1);
  return indices[index] = expr;
}

ExprAttr RootAnalysis::computeIndex(Value index) {
  APInt constant;
  if (matchPattern(index, m_ConstantInt(&constant)))
    return constant.isSignedIntN(64)
               ? ExprAttr::getConstant(context, constant.getSExtValue())
               : ExprAttr();
  Operation *op = index.getDefiningOp();
  if (!op)
    return {};
  auto lhs = [&] { return getIndex(op->getOperand(0)); };
  auto rhs = [&] { return getIndex(op->getOperand(1)); };
  auto affine = [&](AffineMap map, ValueRange operands) {
    SmallVector<ExprAttr> dims, symbols, results;
    for (auto [i, operand] : llvm::enumerate(operands))
      (i < map.getNumDims() ? dims : symbols).push_back(getIndex(operand));
    for (AffineExpr expr : map.getResults())
      results.push_back(ExprAttr::getFromAffineExpr(expr, dims, symbols));
    return results;
  };
  return llvm::TypeSwitch<Operation *, ExprAttr>(op)
      .Case<tensor::DimOp, memref::DimOp>([&](auto dim) -> ExprAttr {
        std::optional<int64_t> position = dim.getConstantIndex();
        auto type = cast<ShapedType>(dim.getSource().getType());
        if (!position || !type.hasRank() || *position < 0 ||
            *position >= type.getRank())
          return {};
        return getExtent(dim.getSource(), *position);
      })
      .Case([&](arith::AddIOp) {
        return ExprAttr::getSum(context, {lhs(), rhs()});
      })
      .Case([&](arith::SubIOp) {
        ExprAttr minusOne = ExprAttr::getConstant(context, -1);
        return ExprAttr::getSum(
            context, {lhs(), ExprAttr::getProduct(context, {minusOne, rhs()})});
      })
      .Case([&](arith::MulIOp) {
        return ExprAttr::getProduct(context, {lhs(), rhs()});
      })
      // Extents are not negative, so truncation is floor.
      .Case<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp>(
          [&](auto) { return ExprAttr::getFloorDiv(lhs(), rhs()); })
      .Case<arith::CeilDivUIOp, arith::CeilDivSIOp>(
          [&](auto) { return ExprAttr::getCeilDiv(lhs(), rhs()); })
      .Case<arith::RemUIOp, arith::RemSIOp>(
          [&](auto) { return ExprAttr::getMod(lhs(), rhs()); })
      .Case<arith::MinSIOp, arith::MinUIOp>([&](auto) {
        return ExprAttr::getMin(context, {lhs(), rhs()});
      })
      .Case<arith::MaxSIOp, arith::MaxUIOp>([&](auto) {
        return ExprAttr::getMax(context, {lhs(), rhs()});
      })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp>(
          [&](auto) { return lhs(); })
      .Case([&](affine::AffineApplyOp apply) {
        return affine(apply.getAffineMap(), apply.getMapOperands()).front();
      })
      .Case([&](affine::AffineMinOp min) {
        auto results = affine(min.getAffineMap(), min.getOperands());
        return llvm::is_contained(results, ExprAttr())
                   ? ExprAttr()
                   : ExprAttr::getMin(context, results);
      })
      .Case([&](affine::AffineMaxOp max) {
        auto results = affine(max.getAffineMap(), max.getOperands());
        return llvm::is_contained(results, ExprAttr())
                   ? ExprAttr()
                   : ExprAttr::getMax(context, results);
      })
      .Default(ExprAttr());
}

//===----------------------------------------------------------------------===//
// Extents
//===----------------------------------------------------------------------===//

SmallVector<ExprAttr> RootAnalysis::getShape(Value shaped) {
  SmallVector<ExprAttr> shape;
  int64_t rank = cast<ShapedType>(shaped.getType()).getRank();
  for (int64_t dim = 0; dim < rank; ++dim)
    shape.push_back(getExtent(shaped, dim));
  return shape;
}

ExprAttr RootAnalysis::getExtent(Value shaped, int64_t dim) {
  auto type = cast<ShapedType>(shaped.getType());
  if (!type.isDynamicDim(dim))
    return ExprAttr::getConstant(context, type.getDimSize(dim));
  auto it = extents.find({shaped, dim});
  if (it != extents.end())
    return it->second;
  ExprAttr expr = computeExtent(shaped, dim);
  if (!expr)
    expr = addDataRoot(shaped, dim);
  return extents[{shaped, dim}] = expr;
}

ExprAttr RootAnalysis::computeCarried(Value initial, Value carried,
                                      Value yielded, int64_t dim) {
  // Suppose it, and take everything back if an iteration contradicts.
  ExprAttr expr = getExtent(initial, dim);
  auto savedIndices = indices;
  auto savedExtents = extents;
  size_t savedRoots = roots.size();
  extents[{carried, dim}] = expr;
  if (getExtent(yielded, dim) == expr)
    return expr;
  indices = std::move(savedIndices);
  extents = std::move(savedExtents);
  roots.resize(savedRoots);
  return {};
}

ExprAttr RootAnalysis::computeExtent(Value shaped, int64_t dim) {
  if (auto argument = dyn_cast<BlockArgument>(shaped)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop)
      return {};
    OpOperand *initial = loop.getTiedLoopInit(argument);
    return initial
               ? computeCarried(initial->get(), argument,
                                loop.getTiedLoopYieldedValue(argument)->get(),
                                dim)
               : ExprAttr();
  }
  auto result = cast<OpResult>(shaped);
  Operation *op = result.getOwner();
  return llvm::TypeSwitch<Operation *, ExprAttr>(op)
      .Case([&](tensor::EmptyOp empty) {
        return getIndex(empty.getDynamicSize(dim));
      })
      .Case<tensor::GenerateOp, tensor::SplatOp>([&](auto generate) {
        auto type = cast<RankedTensorType>(generate.getType());
        return getIndex(
            Value(generate.getOperands()[generate->getNumOperands() -
                                         type.getNumDynamicDims() +
                                         type.getDynamicDimIndex(dim)]));
      })
      .Case([&](tensor::CastOp cast) -> ExprAttr {
        if (!isa<RankedTensorType>(cast.getSource().getType()))
          return {};
        return getExtent(cast.getSource(), dim);
      })
      .Case([&](tensor::CollapseShapeOp collapse) {
        SmallVector<ExprAttr> factors;
        for (int64_t i : collapse.getReassociationIndices()[dim])
          factors.push_back(getExtent(collapse.getSrc(), i));
        return ExprAttr::getProduct(context, factors);
      })
      .Case([&](tensor::ExpandShapeOp expand) {
        return getIndex(expand.getMixedOutputShape()[dim]);
      })
      .Case([&](tensor::ConcatOp concat) -> ExprAttr {
        if (dim != int64_t(concat.getDim())) {
          // All inputs agree here; a static one says most.
          for (Value input : concat.getInputs())
            if (!cast<RankedTensorType>(input.getType()).isDynamicDim(dim))
              return getExtent(input, dim);
          return getExtent(concat.getInputs().front(), dim);
        }
        SmallVector<ExprAttr> terms;
        for (Value input : concat.getInputs())
          terms.push_back(getExtent(input, dim));
        return ExprAttr::getSum(context, terms);
      })
      .Case([&](tensor::PadOp pad) {
        return ExprAttr::getSum(context,
                                {getIndex(pad.getMixedLowPad()[dim]),
                                 getExtent(pad.getSource(), dim),
                                 getIndex(pad.getMixedHighPad()[dim])});
      })
      .Case([&](tensor::ExtractSliceOp slice) {
        llvm::SmallBitVector dropped = slice.getDroppedDims();
        int64_t source = -1;
        for (int64_t kept = -1; kept < dim;)
          if (!dropped.test(++source))
            ++kept;
        return getIndex(slice.getMixedSizes()[source]);
      })
      .Case([&](tensor::InsertSliceOp insert) {
        return getExtent(insert.getDest(), dim);
      })
      .Case([&](scf::IfOp branch) -> ExprAttr {
        unsigned number = result.getResultNumber();
        ExprAttr taken = getExtent(branch.thenYield().getOperand(number), dim);
        return taken == getExtent(branch.elseYield().getOperand(number), dim)
                   ? taken
                   : ExprAttr();
      })
      .Case([&](scf::ForOp loop) {
        BlockArgument carried = loop.getTiedLoopRegionIterArg(result);
        return computeCarried(loop.getTiedLoopInit(result)->get(), carried,
                              loop.getTiedLoopYieldedValue(carried)->get(),
                              dim);
      })
      .Case([&](DestinationStyleOpInterface destination) {
        return getExtent(destination.getTiedOpOperand(result)->get(), dim);
      })
      .Default(ExprAttr());
}

//===----------------------------------------------------------------------===//
// Expressions and IR
//===----------------------------------------------------------------------===//

Value mlir::pgkp::createRootRead(OpBuilder &builder, Location loc,
                                 const Root &root) {
  if (root.dim < 0) {
    // What was read through a cast is known by the integer behind it.
    if (root.source.getType().isIndex())
      return root.source;
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                      root.source);
  }
  if (isa<MemRefType>(root.source.getType()))
    return memref::DimOp::create(builder, loc, root.source, root.dim);
  return tensor::DimOp::create(builder, loc, root.source, root.dim);
}

Value mlir::pgkp::materializeExpr(OpBuilder &builder, Location loc,
                                  ExprAttr expr,
                                  function_ref<Value(unsigned)> symbol) {
  if (std::optional<int64_t> constant = expr.getConstantValue())
    return arith::ConstantIndexOp::create(builder, loc, *constant);
  if (std::optional<unsigned> index = expr.getSymbolIndex())
    return symbol(*index);
  SmallVector<Value> operands;
  for (ExprAttr operand : expr.getOperands())
    operands.push_back(materializeExpr(builder, loc, operand, symbol));
  Value result = operands.front();
  for (Value operand : ArrayRef(operands).drop_front()) {
    switch (expr.getKind()) {
    case ExprKind::Sum:
      result = arith::AddIOp::create(builder, loc, result, operand);
      break;
    case ExprKind::Product:
      result = arith::MulIOp::create(builder, loc, result, operand);
      break;
    case ExprKind::FloorDiv:
      result = arith::FloorDivSIOp::create(builder, loc, result, operand);
      break;
    case ExprKind::CeilDiv:
      result = arith::CeilDivSIOp::create(builder, loc, result, operand);
      break;
    case ExprKind::Mod:
      result = arith::RemSIOp::create(builder, loc, result, operand);
      break;
    case ExprKind::Min:
      result = arith::MinSIOp::create(builder, loc, result, operand);
      break;
    case ExprKind::Max:
      result = arith::MaxSIOp::create(builder, loc, result, operand);
      break;
    case ExprKind::Symbol:
    case ExprKind::Constant:
      llvm_unreachable("handled above");
    }
  }
  return result;
}

/// Matches \p expr itself, or rebuilds it from operands that match.
static ExprAttr rewriteDirectly(ExprAttr expr, ArrayRef<ExprAttr> symbols) {
  MLIRContext *context = expr.getContext();
  if (expr.isConstant())
    return expr;
  for (auto [i, symbol] : llvm::enumerate(symbols))
    if (symbol == expr)
      return ExprAttr::getSymbol(context, i);
  if (expr.isSymbol())
    return {};
  SmallVector<ExprAttr> operands;
  for (ExprAttr operand : expr.getOperands()) {
    operands.push_back(rewriteDirectly(operand, symbols));
    if (!operands.back())
      return {};
  }
  return ExprAttr::get(context, expr.getKind(), expr.getValue(), operands);
}

ExprAttr mlir::pgkp::rewriteOverSymbols(ExprAttr expr,
                                        ArrayRef<ExprAttr> symbols) {
  if (ExprAttr direct = rewriteDirectly(expr, symbols))
    return direct;
  // expr = symbol - (symbol - expr), where the difference matches.
  MLIRContext *context = expr.getContext();
  ExprAttr minusOne = ExprAttr::getConstant(context, -1);
  auto negate = [&](ExprAttr operand) {
    return ExprAttr::getProduct(context, {minusOne, operand});
  };
  for (auto [i, symbol] : llvm::enumerate(symbols)) {
    ExprAttr rest = ExprAttr::getSum(context, {symbol, negate(expr)});
    if (ExprAttr difference = rewriteDirectly(rest, symbols))
      return ExprAttr::getSum(
          context, {ExprAttr::getSymbol(context, i), negate(difference)});
  }
  return {};
}
