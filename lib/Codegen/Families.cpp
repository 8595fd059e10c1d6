// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pgkp/Codegen/Families.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::pgkp;

StringRef mlir::pgkp::stringifyFamily(Family family) {
  switch (family) {
  case Family::matmul:
    return "matmul";
  case Family::batch_matmul:
    return "batch_matmul";
  case Family::row:
    return "row";
  case Family::elementwise:
    return "elementwise";
  case Family::copy:
    return "copy";
  case Family::other:
    return "other";
  }
  return "other";
}

/// Two inputs meet in the sum, and a parallel dimension is spared by one.
static bool isContraction(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() == 0 || op.getNumDpsInits() != 1 ||
      op.getNumDpsInputs() < 2)
    return false;
  unsigned reducing = 0;
  bool shares = false;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    bool reduces = false, spares = false;
    for (auto [dim, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
      bool used = map.isFunctionOfDim(dim);
      if (kind == utils::IteratorType::reduction)
        reduces |= used;
      else
        spares |= !used;
    }
    reducing += reduces;
    shares |= reduces && spares;
  }
  return reducing >= 2 && shares;
}

static linalg::LinalgOp findContraction(KernelOp kernel) {
  linalg::LinalgOp found;
  kernel.walk([&](linalg::LinalgOp op) {
    if (!isContraction(op))
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

Family mlir::pgkp::getFamily(KernelOp kernel) {
  if (kernel.isExternal())
    return Family::other;
  if (linalg::LinalgOp op = findContraction(kernel))
    return op.getNumParallelLoops() > 2 ? Family::batch_matmul : Family::matmul;
  bool reduces = false, computes = false, moves = false;
  kernel.walk([&](Operation *op) {
    if (isa<linalg::SoftmaxOp>(op))
      reduces = true;
    if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
      reduces |= structured.getNumReductionLoops() > 0;
      moves = true;
      Block *body = structured.getBlock();
      computes |= body && llvm::hasSingleElement(*body) == false;
    } else if (isa<tensor::ConcatOp, tensor::PadOp, tensor::InsertSliceOp,
                   tensor::ExtractSliceOp>(op)) {
      moves = true;
    }
  });
  if (reduces)
    return Family::row;
  if (computes)
    return Family::elementwise;
  return moves ? Family::copy : Family::other;
}

//===----------------------------------------------------------------------===//
// Configurations
//===----------------------------------------------------------------------===//

namespace {
/// Inclusive bounds of an extent.
struct Bounds {
  int64_t low = 0;
  int64_t high = INT64_MAX;
};

/// Rows, columns and depth of a contraction: `rows` are spared by the operand
/// that has the columns.
struct Problem {
  Bounds rows, columns, depth;
  /// The column operand runs along the depth in memory.
  bool transposed = false;
};
} // namespace

static Bounds getRange(KernelOp kernel, Value value, unsigned dim,
                       ArrayRef<FactAttr> facts) {
  auto type = cast<ShapedType>(value.getType());
  if (!type.isDynamicDim(dim))
    return {type.getDimSize(dim), type.getDimSize(dim)};
  while (auto cast = value.getDefiningOp<tensor::CastOp>())
    value = cast.getSource();
  Bounds range;
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner()->getParentOp() != kernel)
    return range;
  auto symbol =
      kernel.getArgumentExtents(argument.getArgNumber())[dim].getSymbolIndex();
  if (!symbol)
    return range;
  for (FactAttr fact : facts) {
    if (fact.getDim() != *symbol)
      continue;
    if (fact.getKind() == FactKind::Divisible) {
      range.low = std::max<int64_t>(range.low, 0);
      continue;
    }
    range.low = std::max(range.low, fact.getLo());
    range.high = std::min(range.high, fact.getHi());
  }
  return range;
}

static Problem getProblem(KernelOp kernel, linalg::LinalgOp op,
                          ArrayRef<FactAttr> facts) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  auto kinds = op.getIteratorTypesArray();
  unsigned numInputs = op.getNumDpsInputs();
  SmallVector<Bounds> sizes(op.getNumLoops());
  for (auto [operand, map] : llvm::enumerate(maps))
    for (auto [position, result] : llvm::enumerate(map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(result)) {
        Bounds range =
            getRange(kernel, op->getOperand(operand), position, facts);
        Bounds &known = sizes[dim.getPosition()];
        known.low = std::max(known.low, range.low);
        known.high = std::min(known.high, range.high);
      }
  Problem problem;
  std::optional<unsigned> column;
  if (maps[numInputs].getNumResults() > 0)
    if (auto last =
            dyn_cast<AffineDimExpr>(maps[numInputs].getResults().back()))
      column = last.getPosition();
  for (auto [dim, kind] : llvm::enumerate(kinds)) {
    if (kind == utils::IteratorType::reduction) {
      problem.depth = sizes[dim];
      continue;
    }
    if (column == dim) {
      problem.columns = sizes[dim];
      continue;
    }
    for (unsigned operand = 0; operand < numInputs; ++operand)
      if (column && maps[operand].isFunctionOfDim(*column) &&
          !maps[operand].isFunctionOfDim(dim))
        problem.rows = sizes[dim];
  }
  for (unsigned operand = 0; operand < numInputs; ++operand)
    if (column && maps[operand].isFunctionOfDim(*column)) {
      auto last = dyn_cast<AffineDimExpr>(maps[operand].getResults().back());
      problem.transposed |= last && last.getPosition() != *column;
    }
  return problem;
}

static ConfigAttr
makeConfig(MLIRContext *ctx, StringRef script,
           ArrayRef<std::pair<StringRef, int64_t>> values = {}) {
  Builder b(ctx);
  SmallVector<NamedAttribute> items;
  if (!script.empty())
    items.push_back(b.getNamedAttr("script", b.getStringAttr(script)));
  for (auto [name, value] : values)
    items.push_back(b.getNamedAttr(name, b.getI64IntegerAttr(value)));
  return ConfigAttr::get(ctx, b.getDictionaryAttr(items));
}

static bool isProduct(Family family) {
  return family == Family::matmul || family == Family::batch_matmul;
}

static ConfigAttr chooseForProduct(MLIRContext *ctx, const Problem &problem,
                                   int64_t rows) {
  if (problem.transposed)
    return rows < 8 ? makeConfig(ctx, "dot", {{"mr", 2}, {"nc", 4}})
                    : makeConfig(ctx, "packed");
  int64_t area;
  bool large =
      problem.columns.high == INT64_MAX || problem.depth.high == INT64_MAX ||
      llvm::MulOverflow(problem.columns.high, problem.depth.high, area) ||
      area >= 192 * 192;
  if (!large)
    return rows <= 1 ? makeConfig(ctx, "gemv", {{"mr", 1}, {"nr", 64}})
                     : makeConfig(ctx, "direct");
  // A few rows of a large operand at a time: its columns are a page apart, and
  // a panel of them would miss the first level cache and the TLB.
  if (rows <= 1)
    return makeConfig(ctx, "skinny", {{"kc", 8}, {"mr", 1}, {"nr", 64}});
  if (rows < 48)
    return makeConfig(
        ctx, "skinny",
        {{"kc", 8}, {"mr", std::min<int64_t>(rows, 4)}, {"nr", 16}});
  return makeConfig(ctx, "packed");
}

ConfigAttr mlir::pgkp::chooseConfig(KernelOp kernel, ArrayRef<FactAttr> facts) {
  MLIRContext *ctx = kernel.getContext();
  Family family = getFamily(kernel);
  if (family == Family::row)
    return makeConfig(ctx, "", {{"v", 32}});
  if (!isProduct(family))
    return makeConfig(ctx, "", {{"v", 16}});
  Problem problem = getProblem(kernel, findContraction(kernel), facts);
  return chooseForProduct(ctx, problem, problem.rows.high);
}

FewRows mlir::pgkp::chooseConfigForFewRows(KernelOp kernel,
                                           ArrayRef<FactAttr> facts) {
  if (!isProduct(getFamily(kernel)))
    return {};
  MLIRContext *ctx = kernel.getContext();
  Problem problem = getProblem(kernel, findContraction(kernel), facts);
  int64_t mostRows = problem.transposed ? 7 : 31;
  if (problem.rows.low > mostRows || problem.rows.high <= mostRows)
    return {};
  ConfigAttr few = chooseForProduct(ctx, problem, mostRows);
  if (few == chooseForProduct(ctx, problem, problem.rows.high))
    return {};
  return {few, mostRows};
}

ArrayAttr mlir::pgkp::getConfigSpace(KernelOp kernel) {
  MLIRContext *ctx = kernel.getContext();
  // The rules, applied to the facts of the class at hand.
  SmallVector<Attribute> space = {makeConfig(ctx, "auto")};
  auto add = [&](ConfigAttr config) {
    if (!llvm::is_contained(space, config))
      space.push_back(config);
  };
  switch (getFamily(kernel)) {
  case Family::matmul:
  case Family::batch_matmul: {
    bool transposed =
        getProblem(kernel, findContraction(kernel), {}).transposed;
    for (int64_t rows : {6, 4})
      add(makeConfig(ctx, "packed", {{"mr", rows}, {"nr", 16}}));
    if (transposed) {
      add(makeConfig(ctx, "dot", {{"mr", 2}, {"nc", 4}}));
      add(makeConfig(ctx, "dot", {{"mr", 1}, {"nc", 8}}));
      break;
    }
    for (int64_t rows : {6, 4, 2})
      add(makeConfig(ctx, "direct", {{"mr", rows}, {"nr", 16}}));
    add(makeConfig(ctx, "direct", {{"mr", 2}, {"nr", 32}}));
    for (int64_t depth : {8, 16, 32})
      add(makeConfig(ctx, "skinny", {{"kc", depth}, {"mr", 4}, {"nr", 16}}));
    for (int64_t lanes : {64, 32})
      add(makeConfig(ctx, "gemv", {{"mr", 1}, {"nr", lanes}}));
    break;
  }
  case Family::row:
    for (int64_t lanes : {32, 16, 8, 64})
      add(makeConfig(ctx, "", {{"v", lanes}}));
    break;
  default:
    for (int64_t lanes : {16, 8, 32})
      add(makeConfig(ctx, "", {{"v", lanes}}));
  }
  return ArrayAttr::get(ctx, space);
}
