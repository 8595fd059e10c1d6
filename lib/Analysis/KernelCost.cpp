// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pgkp/Analysis/KernelCost.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "pgkp/Analysis/RootAnalysis.h"

using namespace mlir;
using namespace mlir::pgkp;

/// Floating-point operations in a loop body.
static int64_t countFlops(Block &body) {
  int64_t count = 0;
  body.walk([&](Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    if ((dialect == "arith" || dialect == "math") && op->getNumResults() == 1 &&
        isa<FloatType>(op->getResult(0).getType()) && op->getNumOperands() > 0)
      ++count;
  });
  return count;
}

CostAttr mlir::pgkp::computeCost(KernelOp kernel) {
  if (kernel.isExternal())
    return {};
  MLIRContext *context = kernel.getContext();
  RootAnalysis roots(kernel);

  SmallVector<ExprAttr> flops, bytes;
  bool known = true;
  kernel.walk([&](linalg::LinalgOp op) {
    if (isa<linalg::FillOp>(op))
      return;
    int64_t perPoint = countFlops(op->getRegion(0).front());
    if (perPoint == 0)
      return;
    SmallVector<ExprAttr> factors(op.getNumLoops());
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<RankedTensorType>(operand.get().getType()))
        continue;
      AffineMap map = op.getMatchingIndexingMap(&operand);
      for (auto [i, expr] : llvm::enumerate(map.getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(expr))
          if (!factors[dim.getPosition()])
            factors[dim.getPosition()] = roots.getExtent(operand.get(), i);
    }
    for (ExprAttr factor : factors)
      known &= factor && roots.isKnownAtEntry(factor);
    if (!known)
      return;
    factors.push_back(ExprAttr::getConstant(context, perPoint));
    flops.push_back(ExprAttr::getProduct(context, factors));
  });
  if (!known)
    return {};

  for (auto [i, argument] : llvm::enumerate(kernel.getArguments())) {
    Type element = getElementTypeOrSelf(argument.getType());
    ExprAttr size = ExprAttr::getConstant(
        context,
        element.isIntOrFloat() ? (element.getIntOrFloatBitWidth() + 7) / 8 : 8);
    auto add = [&](SmallVector<ExprAttr> shape) {
      shape.push_back(size);
      bytes.push_back(ExprAttr::getProduct(context, shape));
    };
    // Of a table that is only sliced, the slices are read.
    SmallVector<SmallVector<ExprAttr>> slices;
    for (Operation *user : argument.getUsers()) {
      if (isa<tensor::DimOp>(user))
        continue;
      auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
      if (!slice || slice.getSource() != argument) {
        slices.clear();
        break;
      }
      slices.push_back(roots.getShape(slice.getResult()));
      if (!llvm::all_of(slices.back(), [&](ExprAttr extent) {
            return roots.isKnownAtEntry(extent);
          })) {
        slices.clear();
        break;
      }
    }
    if (slices.empty())
      add(kernel.getArgumentExtents(i));
    for (SmallVector<ExprAttr> &slice : slices)
      add(slice);
  }
  auto sum = [&](ArrayRef<ExprAttr> terms) {
    return terms.empty() ? ExprAttr::getConstant(context, 0)
                         : ExprAttr::getSum(context, terms);
  };
  return CostAttr::get(context, sum(flops), sum(bytes));
}
