// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "HostLoops.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::pgkp::host;

namespace {

/// Facts about one operation that the rules ask for.
class Shape {
public:
  Shape(linalg::LinalgOp op, Extents &extents)
      : op(op), extents(extents), maps(op.getIndexingMapsArray()),
        kinds(op.getIteratorTypesArray()) {
    sizes.assign(op.getNumLoops(), AffineExpr());
    for (auto [operand, map] : llvm::enumerate(maps)) {
      if (!isa<MemRefType>(op->getOperand(operand).getType()))
        continue;
      for (auto [position, result] : llvm::enumerate(map.getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(result)) {
          AffineExpr size = extents.sizeOf(op->getOperand(operand), position);
          AffineExpr &known = sizes[dim.getPosition()];
          if (!known || isa_and_nonnull<AffineConstantExpr>(size))
            known = size ? size : known;
        }
    }
  }

  bool isReduction(unsigned dim) const {
    return kinds[dim] == utils::IteratorType::reduction;
  }
  bool uses(unsigned operand, unsigned dim) const {
    return maps[operand].isFunctionOfDim(dim);
  }
  std::optional<int64_t> constantSize(unsigned dim) const {
    if (auto constant = dyn_cast_or_null<AffineConstantExpr>(sizes[dim]))
      return constant.getValue();
    return std::nullopt;
  }
  int64_t highest(unsigned dim) const {
    return sizes[dim] ? extents.highOf(sizes[dim]) : INT64_MAX;
  }
  int64_t lowest(unsigned dim) const {
    return sizes[dim] ? extents.lowOf(sizes[dim]) : 0;
  }
  bool divides(unsigned dim, int64_t width) const {
    return sizes[dim] && extents.divisorOf(sizes[dim]) % width == 0;
  }

  /// Neighbours along `dim` are neighbours in memory.
  bool isContiguous(unsigned operand, unsigned dim) const {
    auto type = dyn_cast<MemRefType>(op->getOperand(operand).getType());
    if (!type || type.getRank() == 0)
      return false;
    unsigned bits =
        type.getElementType().isIndex() ? 64 : type.getElementTypeBitWidth();
    if (bits % 8 != 0 || !llvm::isPowerOf2_32(bits))
      return false;
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(type.getStridesAndOffset(strides, offset)) ||
        strides.back() != 1)
      return false;
    for (AffineExpr result : maps[operand].getResults().drop_back())
      if (result.isFunctionOfDim(dim))
        return false;
    AffineExpr last = maps[operand].getResults().back();
    AffineExpr rest =
        simplifyAffineExpr(last - getAffineDimExpr(dim, op.getContext()),
                           maps[operand].getNumDims(), 0);
    return !rest.isFunctionOfDim(dim);
  }

  /// Whether the payload maps over vectors along `dim`.
  bool payloadMaps(unsigned dim) const {
    llvm::DenseSet<Value> varying;
    Block *body = op.getBlock();
    for (auto [operand, argument] : llvm::enumerate(body->getArguments()))
      if (uses(operand, dim))
        varying.insert(argument);
    for (OpOperand &init : op.getDpsInitsMutable())
      varying.insert(body->getArgument(init.getOperandNumber()));
    for (Operation &nested : body->without_terminator()) {
      if (auto index = dyn_cast<linalg::IndexOp>(nested)) {
        if (index.getDim() == dim)
          varying.insert(index.getResult());
        continue;
      }
      bool varies = llvm::any_of(nested.getOperands(), [&](Value operand) {
        return varying.contains(operand);
      });
      if (nested.getNumRegions() != 0)
        return false;
      if (!varies)
        continue;
      if (!OpTrait::hasElementwiseMappableTraits(&nested))
        return false;
      for (Value result : nested.getResults()) {
        if (!result.getType().isIntOrIndexOrFloat())
          return false;
        varying.insert(result);
      }
    }
    return true;
  }

  /// Whether lanes beyond the end may run on zeros without a fault, and whether
  /// the target masks accesses of these widths in one instruction.
  bool mayMask(unsigned dim) const {
    for (unsigned operand = 0; operand < maps.size(); ++operand) {
      auto type = dyn_cast<MemRefType>(op->getOperand(operand).getType());
      if (!type || !uses(operand, dim))
        continue;
      Type element = type.getElementType();
      unsigned bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
      if (bits != 32 && bits != 64)
        return false;
    }
    for (Operation &nested : op.getBlock()->without_terminator())
      if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
              arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(
              nested))
        return false;
    return true;
  }

  unsigned widestBits() const {
    unsigned bits = 8;
    for (Value operand : op->getOperands()) {
      Type element = getElementTypeOrSelf(operand);
      bits = std::max(bits,
                      element.isIndex() ? 64 : element.getIntOrFloatBitWidth());
    }
    return bits;
  }

  mutable linalg::LinalgOp op;
  Extents &extents;
  SmallVector<AffineMap> maps;
  SmallVector<utils::IteratorType> kinds;
  SmallVector<AffineExpr> sizes;
};

/// The preferred width, narrowed to the type and to what the extent allows.
int64_t narrowWidth(const Shape &shape, unsigned dim, int64_t preferred) {
  int64_t width = shape.widestBits() == 64 ? std::max<int64_t>(preferred / 2, 4)
                                           : preferred;
  int64_t highest = shape.highest(dim);
  while (width > 2 && width / 2 >= highest)
    width /= 2;
  return width;
}

/// Widths of successive loops along a parallel dimension: wide, then the widest
/// that leaves nothing over, or else a narrow one before the tail.
SmallVector<int64_t, 3> chooseWidths(const Shape &shape, unsigned dim,
                                     int64_t preferred) {
  int64_t width = narrowWidth(shape, dim, preferred);
  SmallVector<int64_t, 3> widths = {width};
  if (shape.divides(dim, width))
    return widths;
  for (int64_t narrower = width / 2; narrower >= 8; narrower /= 2)
    if (shape.divides(dim, narrower)) {
      widths.push_back(narrower);
      return widths;
    }
  if (width >= 32)
    widths.push_back(8);
  return widths;
}

/// The width along a reduction: one loop and perhaps a tail, as accumulators of
/// several widths would have to be joined.
int64_t chooseReductionWidth(const Shape &shape, unsigned dim,
                             int64_t preferred) {
  int64_t width = narrowWidth(shape, dim, preferred);
  for (int64_t narrower : {width, width / 2})
    if (narrower >= 8 && shape.divides(dim, narrower))
      return narrower;
  return width;
}

bool hasSimpleCombiner(linalg::LinalgOp op) {
  if (op.getNumDpsInits() != 1)
    return false;
  SmallVector<Operation *> combiners;
  if (!matchReduction(op.getRegionOutputArgs(), 0, combiners) ||
      combiners.size() != 1)
    return false;
  Operation *combiner = combiners.front();
  if (!linalg::getCombinerOpKind(combiner))
    return false;
  return isa<arith::MaxNumFOp, arith::MinNumFOp>(combiner) ||
         arith::getNeutralElement(combiner).has_value();
}

/// Legality of vectors along parallel dimension `dim`. \returns the inputs that
/// would have to be packed, or nothing if the nest is not legal.
std::optional<SmallVector<unsigned>> checkParallel(const Shape &shape,
                                                   unsigned dim) {
  linalg::LinalgOp op = shape.op;
  for (OpOperand &init : op.getDpsInitsMutable())
    if (!shape.isContiguous(init.getOperandNumber(), dim))
      return std::nullopt;
  if (!shape.payloadMaps(dim))
    return std::nullopt;
  SmallVector<unsigned> strided;
  for (unsigned operand = 0; operand < op.getNumDpsInputs(); ++operand)
    if (shape.uses(operand, dim) && !shape.isContiguous(operand, dim))
      strided.push_back(operand);
  return strided;
}

bool checkReduction(const Shape &shape, unsigned dim) {
  linalg::LinalgOp op = shape.op;
  if (!hasSimpleCombiner(op) || !shape.payloadMaps(dim))
    return false;
  for (unsigned operand = 0; operand < op.getNumDpsInputs(); ++operand)
    if (shape.uses(operand, dim) && !shape.isContiguous(operand, dim))
      return false;
  return true;
}

/// Can the panel of this input be packed: plain dimensions only, and all its
/// parallel dimensions but `dim` fixed outside the panel loop.
bool mayPack(const Shape &shape, unsigned operand, unsigned dim,
             std::optional<unsigned> rowDim) {
  bool reduces = false;
  for (AffineExpr result : shape.maps[operand].getResults()) {
    auto plain = dyn_cast<AffineDimExpr>(result);
    if (!plain)
      return false;
    reduces |= shape.isReduction(plain.getPosition());
    if (rowDim == plain.getPosition())
      return false;
  }
  auto type = cast<MemRefType>(shape.op->getOperand(operand).getType());
  return reduces && shape.uses(operand, dim) &&
         type.getElementTypeBitWidth() % 8 == 0;
}

} // namespace

NestPlan mlir::pgkp::host::planNest(linalg::LinalgOp op, Extents &extents,
                                    const NestOptions &options) {
  NestPlan plan;
  if (!options.vectorize || op.getNumLoops() == 0 ||
      !llvm::all_of(op->getOperandTypes(), [](Type type) {
        return getElementTypeOrSelf(type).isIntOrIndexOrFloat();
      }))
    return plan;
  Shape shape(op, extents);
  unsigned numInputs = op.getNumDpsInputs();
  SmallVector<unsigned> reductions;
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim)
    if (shape.isReduction(dim))
      reductions.push_back(dim);

  // Where vectors may run.
  std::optional<unsigned> parallelDim, reductionDim;
  SmallVector<unsigned> strided;
  AffineMap resultMap = shape.maps[numInputs];
  if (resultMap.getNumResults() > 0)
    if (auto last = dyn_cast<AffineDimExpr>(resultMap.getResults().back()))
      if (auto legal = checkParallel(shape, last.getPosition())) {
        parallelDim = last.getPosition();
        strided = *legal;
      }
  if (!reductions.empty() && checkReduction(shape, reductions.back()))
    reductionDim = reductions.back();

  // Elementwise operations and copies.
  if (reductions.empty()) {
    if (!parallelDim || !strided.empty() || shape.highest(*parallelDim) < 4)
      return plan;
    plan.mode = NestPlan::Mode::parallel;
    plan.vectorDim = *parallelDim;
    plan.widths = chooseWidths(shape, *parallelDim,
                               options.rowLanes ? options.rowLanes : 16);
    plan.masked = shape.mayMask(*parallelDim);
    return plan;
  }

  // A register block: rows share the input that varies along the vectors.
  unsigned depth = reductions.back();
  auto findShared =
      [&](unsigned along,
          std::optional<unsigned> except) -> std::optional<unsigned> {
    std::optional<unsigned> best;
    for (unsigned dim = 0; dim < op.getNumLoops(); ++dim) {
      if (shape.isReduction(dim) || dim == along || dim == except ||
          !shape.uses(numInputs, dim))
        continue;
      bool usedByInput = false, sparesInput = false;
      for (unsigned operand = 0; operand < numInputs; ++operand) {
        usedByInput |= shape.uses(operand, dim);
        sparesInput |= !shape.uses(operand, dim) && shape.uses(operand, depth);
      }
      if (usedByInput && sparesInput && shape.constantSize(dim) != 1)
        best = dim;
    }
    return best;
  };

  StringRef script = options.script;
  std::optional<unsigned> rowDim =
      parallelDim ? findShared(*parallelDim, std::nullopt) : std::nullopt;
  bool mustPack = !strided.empty();
  bool canPack = parallelDim && strided.size() <= 1;
  std::optional<unsigned> packable;
  if (canPack) {
    for (unsigned operand = 0; operand < numInputs; ++operand)
      if (mayPack(shape, operand, *parallelDim, rowDim) &&
          (!mustPack || strided.front() == operand)) {
        packable = operand;
        break;
      }
    canPack = packable.has_value();
  }
  bool parallelWorks = parallelDim && (!mustPack || canPack);
  int64_t mostRows = rowDim ? shape.highest(*rowDim) : 1;
  bool narrow = parallelDim && shape.highest(*parallelDim) < 4;

  bool useReduction;
  if (script == "dot")
    useReduction = reductionDim.has_value();
  else if (!parallelWorks || narrow)
    useReduction = reductionDim.has_value();
  else
    // Packing a transposed operand pays only when enough rows share it.
    useReduction =
        mustPack && reductionDim && mostRows < 8 && script != "packed";

  if (useReduction) {
    plan.mode = NestPlan::Mode::reduction;
    plan.vectorDim = *reductionDim;
    plan.masked = shape.mayMask(*reductionDim);
    bool contraction = false;
    plan.rowDim = findShared(*reductionDim, std::nullopt);
    if (plan.rowDim) {
      plan.colDim = findShared(*reductionDim, plan.rowDim);
      contraction = true;
    }
    int64_t preferred = contraction        ? 8
                        : options.rowLanes ? options.rowLanes
                                           : 32;
    plan.widths = {chooseReductionWidth(shape, *reductionDim, preferred)};
    if (contraction) {
      plan.rows = std::clamp<int64_t>(
          options.rows ? options.rows : 2, 1,
          std::max<int64_t>(1, shape.highest(*plan.rowDim)));
      if (plan.colDim)
        plan.cols = std::clamp<int64_t>(
            options.cols ? options.cols : 4, 1,
            std::max<int64_t>(1, shape.highest(*plan.colDim)));
    }
    return plan;
  }
  if (!parallelWorks)
    return plan; // scalar loops

  plan.mode = NestPlan::Mode::parallel;
  plan.vectorDim = *parallelDim;
  plan.masked = shape.mayMask(*parallelDim);
  plan.rowDim = rowDim;
  bool singleRow = !rowDim || mostRows <= 1;
  int64_t lanes = options.lanes;
  // Two registers a row. Of 16, 6 rows leave room for one panel row and a
  // broadcast; of 32, 12 do, and they hide the latency of the multipliers.
  bool wide = options.vectorBits >= 512;
  if (lanes == 0)
    lanes = singleRow || script == "gemv" ? 64
            : script == "skinny"          ? 16
                                          : options.vectorBits / 16;
  plan.widths = chooseWidths(shape, *parallelDim, lanes);
  int64_t rows = options.rows;
  if (rows == 0)
    rows = script == "gemv" ? 1 : script == "skinny" ? 4 : wide ? 12 : 6;
  plan.rows = std::clamp<int64_t>(rows, 1, std::max<int64_t>(1, mostRows));
  plan.unroll = options.unroll ? options.unroll : 1;

  bool pack = mustPack;
  if (script == "packed")
    pack = canPack;
  else if (script.empty() && canPack && !singleRow) {
    // Unpacked columns of a large operand miss the first level cache and the
    // TLB; packing pays from a few register blocks on.
    auto n = shape.constantSize(*parallelDim), k = shape.constantSize(depth);
    bool large = !n || !k || *n * *k >= 192 * 192;
    pack |= large && shape.lowest(*rowDim) >= 32;
  }
  if (pack) {
    plan.packed = packable;
    plan.panelsOutside = true;
  }
  if (script == "skinny" && reductions.size() == 1 && !pack) {
    plan.depthBlock = options.depthBlock ? options.depthBlock : 8;
    plan.unroll = 1;
  }
  return plan;
}
