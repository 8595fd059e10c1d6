// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "HostTensors.h"
#include "HostExtents.h"

#include "pgkp/Codegen/Specialize.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <numeric>

using namespace mlir;
using namespace mlir::pgkp;
using namespace mlir::pgkp::host;

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// An extent expression as an affine one; null for what affine cannot say.
static AffineExpr toAffine(ExprAttr expr) {
  if (auto constant = expr.getConstantValue())
    return getAffineConstantExpr(*constant, expr.getContext());
  if (auto symbol = expr.getSymbolIndex())
    return getAffineSymbolExpr(*symbol, expr.getContext());
  return {};
}

/// Replaces uses of a destination that only shape a result, so that
/// bufferization sees a value nobody reads and builds the result in place.
static void forgetDestination(RewriterBase &b, Value destination) {
  for (OpOperand &use : llvm::make_early_inc_range(destination.getUses())) {
    auto op = dyn_cast<linalg::LinalgOp>(use.getOwner());
    if (!op || !op.isDpsInit(&use) || op.payloadUsesValueFromOperand(&use))
      continue;
    b.setInsertionPoint(op);
    auto type = cast<RankedTensorType>(destination.getType());
    Value empty = tensor::EmptyOp::create(
        b, op.getLoc(), tensor::getMixedSizes(b, op.getLoc(), destination),
        type.getElementType());
    if (empty.getType() != type)
      empty = tensor::CastOp::create(b, op.getLoc(), type, empty);
    b.modifyOpInPlace(op, [&] { use.set(empty); });
  }
}

func::FuncOp mlir::pgkp::host::createHostFunction(KernelOp kernel) {
  MLIRContext *ctx = kernel.getContext();
  IRRewriter b(ctx);
  b.setInsertionPointAfter(kernel);
  Location loc = kernel.getLoc();

  SmallVector<Type> types;
  for (auto [position, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      if (!tensor.getElementType().isIntOrIndexOrFloat()) {
        kernel.emitOpError("argument #")
            << position << " has type " << type
            << "; expected elements that are integers, indices or floats";
        return {};
      }
      types.push_back(
          MemRefType::get(tensor.getShape(), tensor.getElementType()));
    } else {
      types.push_back(type); // a scalar, as the kernel's verifier demands
    }
  }
  types.push_back(MemRefType::get(ShapedType::kDynamic, b.getI8Type()));

  auto function = func::FuncOp::create(b, loc, kernel.getSymName(),
                                       b.getFunctionType(types, TypeRange()));
  function.setPrivate();
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);

  IRMapping mapping;
  unsigned numSymbols = kernel.getNumDims();
  unsigned numInputs = kernel.getNumInputs();
  SmallVector<Value> destinations;
  for (auto [position, argument] :
       llvm::enumerate(kernel.getBody().front().getArguments())) {
    Value value = entry->getArgument(position);
    if (auto tensor = dyn_cast<RankedTensorType>(argument.getType())) {
      SmallVector<AffineExpr> sizes;
      for (ExprAttr extent : kernel.getArgumentExtents(position))
        sizes.push_back(toAffine(extent));
      function.setArgAttr(
          position, kExtentsAttr,
          AffineMapAttr::get(AffineMap::get(0, numSymbols, sizes, ctx)));
      value =
          bufferization::ToTensorOp::create(b, loc, tensor, value,
                                            /*restrict=*/true,
                                            /*writable=*/position >= numInputs);
    }
    if (position >= numInputs)
      destinations.push_back(entry->getArgument(position));
    mapping.map(argument, value);
  }
  for (Operation &op : kernel.getBody().front().without_terminator())
    b.clone(op, mapping);

  Operation *terminator = kernel.getBody().front().getTerminator();
  for (auto [result, destination] :
       llvm::zip(terminator->getOperands(), destinations)) {
    auto store = bufferization::MaterializeInDestinationOp::create(
        b, loc, mapping.lookup(result), destination);
    store.setRestrict(true);
    store.setWritable(true);
  }
  func::ReturnOp::create(b, loc);

  SmallVector<Attribute> bounds;
  SmallVector<SymbolBounds> symbols(numSymbols);
  if (auto facts = kernel->getAttrOfType<ArrayAttr>(kFactsAttr))
    for (FactAttr fact : facts.getAsRange<FactAttr>()) {
      SymbolBounds &symbol = symbols[fact.getDim()];
      if (fact.getKind() == FactKind::Divisible) {
        symbol.divisor = std::lcm(symbol.divisor, fact.getValue());
        continue;
      }
      symbol.low = std::max(symbol.low, fact.getLo());
      symbol.high = std::min(symbol.high, fact.getHi());
    }
  for (const SymbolBounds &symbol : symbols)
    bounds.push_back(
        DenseI64ArrayAttr::get(ctx, {symbol.divisor, symbol.low, symbol.high}));
  function->setAttr(kBoundsAttr, b.getArrayAttr(bounds));
  SmallVector<int64_t> ranks;
  for (Type type : kernel.getArgumentTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    ranks.push_back(tensor ? tensor.getRank() : -1);
  }
  function->setAttr(kRanksAttr, b.getDenseI64ArrayAttr(ranks));
  return function;
}

//===----------------------------------------------------------------------===//
// Simplification
//===----------------------------------------------------------------------===//

static bool isContraction(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() == 0 || op.getNumDpsInits() != 1)
    return false;
  // Some input spares some parallel dimension, and two inputs meet in the sum.
  unsigned reducing = 0;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    for (auto [dim, kind] : llvm::enumerate(op.getIteratorTypesArray()))
      if (kind == utils::IteratorType::reduction && map.isFunctionOfDim(dim)) {
        ++reducing;
        break;
      }
  }
  return reducing >= 2;
}

/// Fuses a producer only where nothing is computed twice: one use, and the
/// consumer reads each element once.
static bool shouldFuse(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
  auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  if (!producer || !consumer || !operand->get().hasOneUse())
    return false;
  AffineMap map = consumer.getMatchingIndexingMap(operand);
  return map.isPermutation() && !isContraction(consumer);
}

LogicalResult mlir::pgkp::host::simplifyTensors(func::FuncOp function) {
  MLIRContext *ctx = function.getContext();
  IRRewriter b(ctx);

  SmallVector<linalg::AggregatedOpInterface> aggregated;
  function.walk(
      [&](linalg::AggregatedOpInterface op) { aggregated.push_back(op); });
  for (linalg::AggregatedOpInterface op : aggregated) {
    b.setInsertionPoint(op);
    FailureOr<SmallVector<Value>> values = op.decomposeOperation(b);
    if (failed(values))
      return op.emitOpError("cannot be decomposed for the host");
    b.replaceOp(op, *values);
  }

  {
    RewritePatternSet patterns(ctx);
    tensor::populateDecomposeTensorConcatPatterns(patterns);
    linalg::populateDecomposePadPatterns(patterns);
    if (failed(applyPatternsGreedily(function, std::move(patterns))))
      return function.emitOpError("cannot be simplified for the host");
  }

  SmallVector<linalg::LinalgOp> named;
  function.walk([&](linalg::LinalgOp op) {
    if (!isa<linalg::GenericOp, linalg::FillOp>(op))
      named.push_back(op);
  });
  for (linalg::LinalgOp op : named) {
    b.setInsertionPoint(op);
    // What has no generic form stays; the loop emitter takes any of them.
    (void)linalg::generalizeNamedOp(b, op);
  }

  for (auto store :
       llvm::make_early_inc_range(function.getOps<bufferization::ToTensorOp>()))
    if (store.getWritable())
      forgetDestination(b, store.getResult());

  RewritePatternSet patterns(ctx);
  linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  for (StringRef name : {"linalg", "tensor", "arith", "affine", "memref"})
    if (Dialect *dialect = ctx->getLoadedDialect(name))
      dialect->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName op : ctx->getRegisteredOperations())
    if (isa<linalg::LinalgDialect, tensor::TensorDialect, arith::ArithDialect,
            affine::AffineDialect>(op.getDialect()))
      op.getCanonicalizationPatterns(patterns, ctx);
  if (failed(applyPatternsGreedily(function, std::move(patterns))))
    return function.emitOpError("cannot be simplified for the host");
  return success();
}

void mlir::pgkp::host::separateFills(func::FuncOp function) {
  SmallVector<linalg::FillOp> fills;
  function.walk([&](linalg::FillOp fill) { fills.push_back(fill); });
  for (linalg::FillOp fill : fills) {
    if (fill->getNumResults() != 1)
      continue;
    OpBuilder b(fill);
    for (OpOperand &use : llvm::make_early_inc_range(llvm::drop_begin(
             fill->getResult(0).getUses(), fill->use_empty() ? 0 : 1)))
      use.set(b.clone(*fill)->getResult(0));
  }
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void mlir::pgkp::host::fuseRows(func::FuncOp function) {
  // The last operation decides; others are pulled into its loops.
  linalg::GenericOp last;
  unsigned rowRank = 0;
  for (auto op : function.getBody().front().getOps<linalg::GenericOp>()) {
    last = op;
    if (isContraction(op))
      continue;
    // Row reductions run over the innermost dimensions.
    unsigned reduced = op.getNumReductionLoops();
    for (auto [dim, kind] : llvm::enumerate(op.getIteratorTypesArray()))
      if (kind == utils::IteratorType::reduction &&
          dim + reduced < op.getNumLoops())
        return;
    rowRank = std::max(rowRank, reduced);
  }
  if (!last || rowRank == 0 ||
      last.getNumParallelLoops() != last.getNumLoops() ||
      last.getNumLoops() <= rowRank || last.getNumDpsInits() != 1 ||
      !last.getIndexingMapsArray().back().isIdentity())
    return;

  IRRewriter b(function.getContext());
  SmallVector<OpFoldResult> tiles(last.getNumLoops() - rowRank,
                                  b.getIndexAttr(1));
  tiles.append(rowRank, b.getIndexAttr(0));
  scf::SCFTileAndFuseOptions options;
  options.tilingOptions.setTileSizes(tiles);
  options.setFusionControlFn(
      [](tensor::ExtractSliceOp, OpResult producer,
         bool) -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
        auto op = dyn_cast<linalg::LinalgOp>(producer.getOwner());
        if (op && isContraction(op))
          return std::nullopt;
        return scf::SCFTileAndFuseOptions::ControlFnResult{};
      });
  b.setInsertionPoint(last);
  FailureOr<scf::SCFTileAndFuseResult> result =
      scf::tileConsumerAndFuseProducersUsingSCF(
          b, cast<TilingInterface>(last.getOperation()), options);
  if (failed(result))
    return;
  for (OpResult value : last->getResults())
    if (Value replacement = result->replacements.lookup(value))
      b.replaceAllUsesWith(value, replacement);
  // A slice of a buffer yet to be is a smaller buffer: temporaries become rows.
  RewritePatternSet patterns(function.getContext());
  tensor::populateFoldTensorEmptyPatterns(patterns);
  (void)applyPatternsGreedily(function, std::move(patterns));
}
