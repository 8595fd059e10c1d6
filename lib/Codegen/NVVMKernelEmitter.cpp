// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "NVVMKernelEmitter.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <map>
#include <memory>

using namespace mlir;
using namespace mlir::pgkp;

namespace {

constexpr unsigned kGlobalSpace = 1;
constexpr unsigned kSharedSpace = 3;
constexpr unsigned kConstantSpace = 4;

/// Fewest and most threads of a block; powers of two, because the tree of a
/// block reduction halves.
constexpr unsigned kMinThreads = 32;
constexpr unsigned kMaxThreads = 256;
/// Block size where a row's length is unknown, and for one thread an element.
constexpr unsigned kDefaultThreads = 128;
/// From this length on, a reduction that yields a result element is worth a
/// block of its own.
constexpr int64_t kLongReduction = 128;
/// A fused graph that needs more evaluations than this is refused: its code
/// would be too large for ptxas.
constexpr unsigned kMaxEvaluations = 20000;

/// One level of the loop nest under construction. Values are placed in the
/// outermost scope where everything that they depend on is known.
struct Scope {
  Block *block;
  /// The operation in `block` that holds the next inner scope.
  Operation *inner = nullptr;
  /// What `inner` of the scope around this one was before.
  Operation *outerInner = nullptr;
  /// All threads of a block come here together.
  bool uniform;
  /// Runs under a condition: nothing may move out of it.
  bool conditional;
  /// What was computed here already.
  std::map<std::vector<const void *>, SmallVector<Value>> known;
};

/// A reduction that was met, and the number of scopes that it depends on.
struct ReductionUse {
  linalg::LinalgOp op;
  unsigned depth;
  int64_t length; ///< ShapedType::kDynamic where unknown
};

class KernelEmitter {
public:
  KernelEmitter(const NVVMKernelSignature &signature, OpBuilder &builder)
      : sig(signature), b(builder), loc(signature.op->getLoc()), bodyLoc(loc) {}

  FailureOr<NVVMEmittedKernel> emit(StringRef name);

private:
  // The function.
  void beginFunction(StringRef name);
  Value beginExtent(unsigned extent, Value param);
  void emitGroup(const NVVMMapping &mapping);
  FailureOr<SmallVector<NVVMMapping>> chooseMappings();
  void storeResults(const NVVMMapping &mapping, ArrayRef<Value> index);

  // Scopes.
  void pushScope(Operation *holder, Block *block, bool uniform,
                 bool conditional = false);
  void popScope();
  void moveToScopeEnd();
  unsigned depthOf(Value v) const;
  unsigned conditionalDepth() const;
  template <typename Fn> auto atDepth(unsigned depth, Fn fn);

  // Index arithmetic, folded and shared.
  Value constant(int64_t value);
  std::optional<int64_t> constantOf(Value v) const;
  Value add(Value lhs, Value rhs);
  Value sub(Value lhs, Value rhs);
  Value mul(Value lhs, Value rhs);
  Value divide(Value lhs, Value rhs);
  Value remainder(Value lhs, Value rhs);
  template <typename OpTy> Value indexOp(Value lhs, Value rhs);
  Value linearize(ArrayRef<Value> index, ArrayRef<Value> sizes);
  SmallVector<Value> delinearize(Value linear, ArrayRef<Value> sizes);
  Value affine(AffineExpr expr, ArrayRef<Value> dims);
  Value fromFoldResult(OpFoldResult value);

  // Values of the kernel's body.
  Value dimOf(Value tensor, unsigned dim);
  SmallVector<Value> dimsOf(Value tensor);
  Value scalarOf(Value v);
  Value evaluate(Value tensor, ArrayRef<Value> index);
  SmallVector<Value> compute(Value tensor, ArrayRef<Value> index);
  SmallVector<Value> computeLinalg(linalg::LinalgOp op, unsigned result,
                                   ArrayRef<Value> index);
  SmallVector<Value> sequentialReduction(linalg::LinalgOp op,
                                         MutableArrayRef<Value> ivs,
                                         ArrayRef<unsigned> reduced,
                                         ArrayRef<Value> inits);
  SmallVector<Value> blockReduction(linalg::LinalgOp op,
                                    MutableArrayRef<Value> ivs,
                                    ArrayRef<unsigned> reduced,
                                    ArrayRef<Value> inits,
                                    ArrayRef<Operation *> combiners);
  Value reduceOverBlock(Value partial, Operation *combiner);
  Value combine(Operation *combiner, Value lhs, Value rhs);
  Value loopSize(linalg::LinalgOp op, unsigned dim);
  SmallVector<Value> inlineBody(linalg::LinalgOp op, ArrayRef<Value> ivs,
                                ArrayRef<Value> accumulators);
  SmallVector<Value> inlineBlock(Block &block, IRMapping &map,
                                 ArrayRef<Value> ivs);
  void inlineOp(Operation &op, IRMapping &map, ArrayRef<Value> ivs);
  Value computeConstant(arith::ConstantOp op, ArrayRef<Value> index);
  Value computeInsertSlice(tensor::InsertSliceOp op, ArrayRef<Value> index);
  Value computeConcat(tensor::ConcatOp op, ArrayRef<Value> index);
  Value computePad(tensor::PadOp op, ArrayRef<Value> index);
  Value select(Value condition, Type type, function_ref<Value()> onTrue,
               function_ref<Value()> onFalse);

  // Memory.
  Type memoryType(Type elementType);
  Value load(Value pointer, Value offset, Type elementType, unsigned space);
  void store(Value value, Value pointer, Value offset, unsigned space);
  Value sharedArray(Type elementType);
  Value threadId();

  Value fail(Operation *op, const Twine &message, Type type);

  const NVVMKernelSignature &sig;
  OpBuilder &b;
  Location loc;
  /// Of the operation whose body is being inlined.
  Location bodyLoc;
  LLVM::LLVMFuncOp function;
  unsigned threads = kDefaultThreads;

  std::vector<std::unique_ptr<Scope>> scopes;
  std::map<int64_t, Value> constants;
  IRMapping scalars;
  SmallVector<Value> extents;
  DenseMap<Value, std::pair<SmallVector<Value>, SmallVector<Value>>> parts;
  DenseMap<Type, LLVM::GlobalOp> shared;
  DenseMap<Operation *, LLVM::GlobalOp> tables;
  unsigned numGlobals = 0;
  unsigned numEvaluations = 0;
  Value tid;

  /// The element under computation, to know which reads of a destination are
  /// safe: the thread that writes an element may read it before.
  SmallVector<Value> currentIndex;
  ArrayRef<unsigned> currentResults;

  /// When choosing a mapping: record reductions, refuse nothing.
  SmallVector<ReductionUse> *probe = nullptr;
  bool failed = false;
};

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

/// Runs `fn` with scope `depth` as the innermost one.
template <typename Fn> auto KernelEmitter::atDepth(unsigned depth, Fn fn) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<std::unique_ptr<Scope>> rest;
  for (unsigned i = depth + 1; i < scopes.size(); ++i)
    rest.push_back(std::move(scopes[i]));
  scopes.resize(depth + 1);
  moveToScopeEnd();
  auto result = fn();
  for (auto &scope : rest)
    scopes.push_back(std::move(scope));
  return result;
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
  return indexOp<arith::AddIOp>(lhs, rhs);
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
  Value rest = linear;
  for (unsigned i = used.size() - 1; i > 0; --i) {
    index[used[i]] = remainder(rest, sizes[used[i]]);
    rest = divide(rest, sizes[used[i]]);
  }
  index[used.front()] = rest;
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
// Sizes and scalars
//===----------------------------------------------------------------------===//

Value KernelEmitter::dimOf(Value tensor, unsigned dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return constant(type.getDimSize(dim));
  if (auto arg = dyn_cast<BlockArgument>(tensor)) {
    if (arg.getOwner() == sig.body)
      return extents[sig.dims[arg.getArgNumber()][dim]];
    return fail(sig.op, "size of a region's tensor argument is not known",
                b.getIndexType());
  }
  Operation *op = tensor.getDefiningOp();
  unsigned result = cast<OpResult>(tensor).getResultNumber();
  if (auto dps = dyn_cast<DestinationStyleOpInterface>(op))
    return dimOf(dps.getDpsInitOperand(result)->get(), dim);
  auto dynamicSize = [&](ValueRange sizes) {
    return scalarOf(sizes[type.getDynamicDimIndex(dim)]);
  };
  if (auto empty = dyn_cast<tensor::EmptyOp>(op))
    return dynamicSize(empty.getDynamicSizes());
  if (auto generate = dyn_cast<tensor::GenerateOp>(op))
    return dynamicSize(generate.getDynamicExtents());
  if (auto splat = dyn_cast<tensor::SplatOp>(op))
    return dynamicSize(splat.getDynamicSizes());
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return dimOf(cast.getSource(), dim);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    unsigned kept = 0;
    for (auto [i, size] : llvm::enumerate(slice.getMixedSizes()))
      if (!dropped[i] && kept++ == dim)
        return fromFoldResult(size);
  }
  if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
    if (concat.getDim() != dim)
      return dimOf(concat.getInputs().front(), dim);
    Value sum = constant(0);
    for (Value input : concat.getInputs())
      sum = add(sum, dimOf(input, dim));
    return sum;
  }
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return add(add(dimOf(pad.getSource(), dim),
                   fromFoldResult(pad.getMixedLowPad()[dim])),
               fromFoldResult(pad.getMixedHighPad()[dim]));
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    Value product = constant(1);
    for (int64_t i : collapse.getReassociationIndices()[dim])
      product = mul(product, dimOf(collapse.getSrc(), i));
    return product;
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return fromFoldResult(expand.getMixedOutputShape()[dim]);
  if (OpTrait::hasElementwiseMappableTraits(op))
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        return dimOf(operand, dim);
  return fail(op,
              "'" + op->getName().getStringRef() +
                  "' is not supported in a kernel for NVVM",
              b.getIndexType());
}

SmallVector<Value> KernelEmitter::dimsOf(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<Value> dims;
  for (unsigned i = 0; i < type.getRank(); ++i)
    dims.push_back(dimOf(tensor, i));
  return dims;
}

/// A scalar of the kernel's body, emitted at the start of the function.
Value KernelEmitter::scalarOf(Value v) {
  if (Value known = scalars.lookupOrNull(v))
    return known;
  if (auto c = getConstantIntValue(v); c && v.getType().isIndex())
    return constant(*c);
  Operation *op = v.getDefiningOp();
  if (!op || op->getBlock() != sig.body)
    return fail(op ? op : sig.op, "value is not known outside of its region",
                v.getType());
  Value result = atDepth(0, [&]() -> Value {
    if (auto dim = dyn_cast<tensor::DimOp>(op)) {
      if (auto i = dim.getConstantIndex())
        return dimOf(dim.getSource(), *i);
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      SmallVector<Value> index;
      for (Value i : extract.getIndices())
        index.push_back(scalarOf(i));
      return evaluate(extract.getTensor(), index);
    } else if (v.getType().isIndex() && isa<arith::MulIOp>(op)) {
      return mul(scalarOf(op->getOperand(0)), scalarOf(op->getOperand(1)));
    } else if (v.getType().isIndex() && isa<arith::AddIOp>(op)) {
      return add(scalarOf(op->getOperand(0)), scalarOf(op->getOperand(1)));
    } else if (op->getNumRegions() == 0 && isPure(op) &&
               llvm::none_of(op->getOperandTypes(),
                             llvm::IsaPred<ShapedType>)) {
      IRMapping map;
      for (Value operand : op->getOperands())
        map.map(operand, scalarOf(operand));
      Operation *copy = b.clone(*op, map);
      return copy->getResult(cast<OpResult>(v).getResultNumber());
    }
    return fail(op,
                "'" + op->getName().getStringRef() +
                    "' is not supported in a kernel for NVVM",
                v.getType());
  });
  scalars.map(v, result);
  return result;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// The element of `tensor` at `index`.
Value KernelEmitter::evaluate(Value tensor, ArrayRef<Value> index) {
  Type elementType = getElementTypeOrSelf(tensor.getType());
  if (failed)
    return fail(sig.op, "", elementType);
  if (++numEvaluations > kMaxEvaluations)
    return fail(sig.op, "too many operations are fused into one kernel",
                elementType);
  unsigned depth = conditionalDepth();
  for (Value i : index)
    depth = std::max(depth, depthOf(i));
  // Results of one operation are computed together.
  Operation *op = tensor.getDefiningOp();
  unsigned number = op ? cast<OpResult>(tensor).getResultNumber() : 0;
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  bool together =
      linalgOp && op->getNumResults() > 1 &&
      llvm::all_of(linalgOp.getDpsInitsMutable(), [&](OpOperand &init) {
        return linalgOp.getMatchingIndexingMap(&init) ==
               linalgOp.getMatchingIndexingMap(
                   linalgOp.getDpsInitOperand(number));
      });
  std::vector<const void *> key = {together ? (const void *)op
                                            : tensor.getAsOpaquePointer()};
  for (Value i : index)
    key.push_back(i.getAsOpaquePointer());
  auto &known = scopes[depth]->known;
  auto it = known.find(key);
  if (it == known.end()) {
    SmallVector<Value> values =
        atDepth(depth, [&] { return compute(tensor, index); });
    it = known.emplace(std::move(key), std::move(values)).first;
  }
  return it->second[linalgOp ? number : 0];
}

SmallVector<Value> KernelEmitter::compute(Value tensor, ArrayRef<Value> index) {
  Type elementType = getElementTypeOrSelf(tensor.getType());
  if (auto arg = dyn_cast<BlockArgument>(tensor)) {
    if (arg.getOwner() != sig.body)
      return {fail(sig.op, "region argument of tensor type is not supported",
                   elementType)};
    unsigned number = arg.getArgNumber();
    unsigned firstDestination = sig.dims.size() - sig.numResults;
    if (number >= firstDestination &&
        (!llvm::is_contained(currentResults, number - firstDestination) ||
         index != ArrayRef<Value>(currentIndex)))
      return {fail(sig.op,
                   "destination argument #" + Twine(number) +
                       " is read at other elements than the one that is "
                       "written; this needs a second launch",
                   elementType)};
    Value pointer = function.getArgument(number);
    return {load(pointer, linearize(index, dimsOf(tensor)), elementType,
                 kGlobalSpace)};
  }
  Operation *op = tensor.getDefiningOp();
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return computeLinalg(linalgOp, cast<OpResult>(tensor).getResultNumber(),
                         index);
  if (isa<tensor::EmptyOp>(op)) // undefined content: zero, to be repeatable
    return {arith::ConstantOp::create(b, loc, b.getZeroAttr(elementType))};
  if (auto c = dyn_cast<arith::ConstantOp>(op))
    return {computeConstant(c, index)};
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return {evaluate(cast.getSource(), index)};
  if (auto splat = dyn_cast<tensor::SplatOp>(op))
    return {scalarOf(splat.getInput())};
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    SmallVector<Value> source;
    unsigned kept = 0;
    for (auto [i, offset, stride] :
         llvm::enumerate(slice.getMixedOffsets(), slice.getMixedStrides())) {
      Value inner = dropped[i] ? constant(0) : index[kept++];
      source.push_back(
          add(mul(inner, fromFoldResult(stride)), fromFoldResult(offset)));
    }
    return {evaluate(slice.getSource(), source)};
  }
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return {computeInsertSlice(insert, index)};
  if (auto insert = dyn_cast<tensor::InsertOp>(op)) {
    Value inside;
    for (auto [i, at] : llvm::zip_equal(index, insert.getIndices())) {
      Value same = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, i,
                                         scalarOf(at));
      inside = inside ? arith::AndIOp::create(b, loc, inside, same) : same;
    }
    if (!inside)
      return {scalarOf(insert.getScalar())};
    return {select(
        inside, elementType, [&] { return scalarOf(insert.getScalar()); },
        [&] { return evaluate(insert.getDest(), index); })};
  }
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return {computeConcat(concat, index)};
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return {computePad(pad, index)};
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    SmallVector<Value> source(collapse.getSrcType().getRank(), constant(0));
    SmallVector<Value> sizes = dimsOf(collapse.getSrc());
    for (auto [group, linear] :
         llvm::zip_equal(collapse.getReassociationIndices(), index)) {
      SmallVector<Value> groupSizes;
      for (int64_t i : group)
        groupSizes.push_back(sizes[i]);
      for (auto [i, v] :
           llvm::zip_equal(group, delinearize(linear, groupSizes)))
        source[i] = v;
    }
    return {evaluate(collapse.getSrc(), source)};
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    SmallVector<Value> source, sizes = dimsOf(tensor);
    for (const ReassociationIndices &group : expand.getReassociationIndices()) {
      SmallVector<Value> groupIndex, groupSizes;
      for (int64_t i : group) {
        groupIndex.push_back(index[i]);
        groupSizes.push_back(sizes[i]);
      }
      source.push_back(linearize(groupIndex, groupSizes));
    }
    return {evaluate(expand.getSrc(), source)};
  }
  if (auto generate = dyn_cast<tensor::GenerateOp>(op)) {
    IRMapping map;
    map.map(generate.getBody().getArguments(), index);
    return inlineBlock(generate.getBody().front(), map, {});
  }
  if (OpTrait::hasElementwiseMappableTraits(op) && op->getNumRegions() == 0) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(isa<RankedTensorType>(operand.getType())
                             ? evaluate(operand, index)
                             : scalarOf(operand));
    SmallVector<Type> types;
    for (Type type : op->getResultTypes())
      types.push_back(getElementTypeOrSelf(type));
    Operation *scalarOp = b.create(loc, op->getName().getIdentifier(), operands,
                                   types, op->getAttrs());
    return {scalarOp->getResult(cast<OpResult>(tensor).getResultNumber())};
  }
  return {fail(op,
               "'" + op->getName().getStringRef() +
                   "' is not supported in a kernel for NVVM",
               elementType)};
}

Value KernelEmitter::computeConstant(arith::ConstantOp op,
                                     ArrayRef<Value> index) {
  auto type = cast<RankedTensorType>(op.getType());
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements)
    return fail(op, "only dense constants are supported in a kernel for NVVM",
                type.getElementType());
  if (elements.isSplat())
    return arith::ConstantOp::create(
        b, loc, cast<TypedAttr>(elements.getSplatValue<Attribute>()));
  if (type.getElementType().isIndex() || type.getElementType().isInteger(1))
    return fail(op,
                "constant tensors of index or i1 are not supported in a "
                "kernel for NVVM",
                type.getElementType());
  LLVM::GlobalOp &global = tables[op];
  if (!global) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(function);
    auto flat = elements.reshape(
        RankedTensorType::get({type.getNumElements()}, type.getElementType()));
    global = LLVM::GlobalOp::create(
        b, loc,
        LLVM::LLVMArrayType::get(type.getElementType(), type.getNumElements()),
        /*isConstant=*/true, LLVM::Linkage::Internal,
        "table_" + std::to_string(numGlobals++), flat, /*alignment=*/16,
        kConstantSpace);
  }
  Value pointer = LLVM::AddressOfOp::create(b, loc, global);
  return load(pointer, linearize(index, dimsOf(op.getResult())),
              type.getElementType(), kConstantSpace);
}

/// `onTrue` or `onFalse`, each computed only where it applies.
Value KernelEmitter::select(Value condition, Type type,
                            function_ref<Value()> onTrue,
                            function_ref<Value()> onFalse) {
  auto ifOp = scf::IfOp::create(b, loc, TypeRange(type), condition,
                                /*withElseRegion=*/true);
  auto fill = [&](Region &region, function_ref<Value()> fn) {
    if (region.empty())
      region.emplaceBlock();
    pushScope(ifOp, &region.front(), /*uniform=*/false, /*conditional=*/true);
    Value v = fn();
    b.setInsertionPointToEnd(&region.front());
    scf::YieldOp::create(b, loc, v);
    popScope();
  };
  fill(ifOp.getThenRegion(), onTrue);
  fill(ifOp.getElseRegion(), onFalse);
  return ifOp.getResult(0);
}

Value KernelEmitter::computeInsertSlice(tensor::InsertSliceOp op,
                                        ArrayRef<Value> index) {
  SmallVector<Value> destSizes = dimsOf(op.getDest());
  llvm::SmallBitVector dropped = op.getDroppedDims();
  Value inside;
  SmallVector<Value> offsets, strides;
  auto require = [&](Value condition) {
    inside =
        inside ? arith::AndIOp::create(b, loc, inside, condition) : condition;
  };
  for (auto [i, offset, size, stride] : llvm::enumerate(
           op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides())) {
    offsets.push_back(fromFoldResult(offset));
    strides.push_back(fromFoldResult(stride));
    Value length = fromFoldResult(size);
    if (constantOf(offsets[i]) == 0 && constantOf(strides[i]) == 1 &&
        length == destSizes[i])
      continue;
    // One unsigned comparison covers both ends: index - offset < length.
    Value distance = sub(index[i], offsets[i]);
    require(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, distance,
                                  mul(length, strides[i])));
    if (constantOf(strides[i]) != 1)
      require(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                    remainder(distance, strides[i]),
                                    constant(0)));
  }
  auto source = [&]() -> Value {
    SmallVector<Value> sourceIndex;
    for (unsigned i = 0; i < index.size(); ++i)
      if (!dropped[i])
        sourceIndex.push_back(divide(sub(index[i], offsets[i]), strides[i]));
    return evaluate(op.getSource(), sourceIndex);
  };
  if (!inside)
    return source();
  return select(inside, op.getType().getElementType(), source,
                [&] { return evaluate(op.getDest(), index); });
}

Value KernelEmitter::computeConcat(tensor::ConcatOp op, ArrayRef<Value> index) {
  unsigned dim = op.getDim();
  Type elementType = op.getType().getElementType();
  std::function<Value(unsigned, Value)> part = [&](unsigned i,
                                                   Value start) -> Value {
    Value input = op.getInputs()[i];
    auto inner = [&]() -> Value {
      SmallVector<Value> innerIndex(index);
      innerIndex[dim] = sub(index[dim], start);
      return evaluate(input, innerIndex);
    };
    if (i + 1 == op.getInputs().size())
      return inner();
    Value end = add(start, dimOf(input, dim));
    Value here = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       index[dim], end);
    return select(here, elementType, inner, [&] { return part(i + 1, end); });
  };
  return part(0, constant(0));
}

Value KernelEmitter::computePad(tensor::PadOp op, ArrayRef<Value> index) {
  Value inside;
  SmallVector<Value> sourceIndex;
  for (auto [i, low, high] :
       llvm::enumerate(op.getMixedLowPad(), op.getMixedHighPad())) {
    Value offset = fromFoldResult(low);
    sourceIndex.push_back(sub(index[i], offset));
    if (constantOf(offset) == 0 && isZeroInteger(high))
      continue;
    Value here =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                              sourceIndex.back(), dimOf(op.getSource(), i));
    inside = inside ? arith::AndIOp::create(b, loc, inside, here) : here;
  }
  if (!inside)
    return evaluate(op.getSource(), sourceIndex);
  return select(
      inside, op.getType().getElementType(),
      [&] { return evaluate(op.getSource(), sourceIndex); },
      [&]() -> Value {
        IRMapping map;
        map.map(op.getRegion().getArguments(), index);
        return inlineBlock(op.getRegion().front(), map, {}).front();
      });
}

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
    probe->push_back({op, unsigned(scopes.size() - 1), length});
  }

  bool uniform = !probe && llvm::all_of(scopes, [](auto &scope) {
    return scope->uniform && !scope->conditional;
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

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// i1 takes a byte and index takes eight.
Type KernelEmitter::memoryType(Type elementType) {
  if (elementType.isInteger(1))
    return b.getI8Type();
  if (elementType.isIndex())
    return b.getI64Type();
  return elementType;
}

static Value elementPointer(OpBuilder &b, Location loc, Value pointer,
                            Value offset, Type type, unsigned space) {
  Value offset64 = arith::IndexCastOp::create(b, loc, b.getI64Type(), offset);
  return LLVM::GEPOp::create(b, loc,
                             LLVM::LLVMPointerType::get(b.getContext(), space),
                             type, pointer, ValueRange{offset64});
}

Value KernelEmitter::load(Value pointer, Value offset, Type elementType,
                          unsigned space) {
  Type type = memoryType(elementType);
  Value address = elementPointer(b, loc, pointer, offset, type, space);
  Value v = LLVM::LoadOp::create(b, loc, type, address);
  if (elementType.isInteger(1))
    return arith::TruncIOp::create(b, loc, elementType, v);
  if (elementType.isIndex())
    return arith::IndexCastOp::create(b, loc, elementType, v);
  return v;
}

void KernelEmitter::store(Value v, Value pointer, Value offset,
                          unsigned space) {
  Type elementType = v.getType();
  Type type = memoryType(elementType);
  if (elementType.isInteger(1))
    v = arith::ExtUIOp::create(b, loc, type, v);
  else if (elementType.isIndex())
    v = arith::IndexCastOp::create(b, loc, type, v);
  Value address = elementPointer(b, loc, pointer, offset, type, space);
  LLVM::StoreOp::create(b, loc, v, address);
}

/// One element for each thread, shared by all reductions of this type.
Value KernelEmitter::sharedArray(Type elementType) {
  Type type = memoryType(elementType);
  OpBuilder::InsertionGuard guard(b);
  LLVM::GlobalOp &global = shared[type];
  if (!global) {
    b.setInsertionPoint(function);
    global = LLVM::GlobalOp::create(
        b, loc, LLVM::LLVMArrayType::get(type, threads), /*isConstant=*/false,
        LLVM::Linkage::Internal, "partial_" + std::to_string(numGlobals++),
        Attribute(), /*alignment=*/16, kSharedSpace);
  }
  return atDepth(
      0, [&]() -> Value { return LLVM::AddressOfOp::create(b, loc, global); });
}

Value KernelEmitter::threadId() {
  if (!tid) {
    tid = atDepth(0, [&]() -> Value {
      Value v = NVVM::ThreadIdXOp::create(b, loc, b.getI32Type());
      return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), v);
    });
  }
  return tid;
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

void KernelEmitter::beginFunction(StringRef name) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), kGlobalSpace);
  SmallVector<Type> params;
  for (BlockArgument arg : sig.body->getArguments())
    params.push_back(isa<RankedTensorType>(arg.getType())
                         ? Type(pointer)
                         : memoryType(arg.getType()));
  params.append(sig.numExtents, b.getI64Type());
  function = LLVM::LLVMFuncOp::create(
      b, loc, name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  params));
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  LLVM::ReturnOp::create(b, loc, ValueRange());
  scopes.clear();
  pushScope(nullptr, entry, /*uniform=*/true);

  unsigned numArgs = sig.body->getNumArguments();
  for (BlockArgument arg : sig.body->getArguments()) {
    if (isa<RankedTensorType>(arg.getType()))
      continue;
    Value v = entry->getArgument(arg.getArgNumber());
    if (arg.getType().isInteger(1))
      v = arith::TruncIOp::create(b, loc, arg.getType(), v);
    else if (arg.getType().isIndex())
      v = arith::IndexCastOp::create(b, loc, arg.getType(), v);
    scalars.map(arg, v);
  }
  for (unsigned i = 0; i < sig.numExtents; ++i)
    extents.push_back(beginExtent(i, entry->getArgument(numArgs + i)));
}

/// The extent's value, and what the facts say of it in a form that LLVM uses.
Value KernelEmitter::beginExtent(unsigned extent, Value param) {
  Value v;
  for (FactAttr fact : sig.facts) {
    if (fact.getDim() != extent)
      continue;
    if (fact.getKind() == FactKind::Equal)
      return constant(fact.getValue());
    if (!v)
      v = arith::IndexCastOp::create(b, loc, b.getIndexType(), param);
    if (fact.getKind() == FactKind::Divisible) {
      v = mul(divide(v, constant(fact.getValue())), constant(fact.getValue()));
      moveToScopeEnd();
      continue;
    }
    auto assume = [&](arith::CmpIPredicate predicate, int64_t bound) {
      Value holds =
          arith::CmpIOp::create(b, loc, predicate, v, constant(bound));
      LLVM::AssumeOp::create(b, loc, holds);
    };
    assume(arith::CmpIPredicate::sge, fact.getLo());
    assume(arith::CmpIPredicate::sle, fact.getHi());
  }
  if (!v)
    v = arith::IndexCastOp::create(b, loc, b.getIndexType(), param);
  return v;
}

void KernelEmitter::storeResults(const NVVMMapping &mapping,
                                 ArrayRef<Value> index) {
  currentIndex.assign(index.begin(), index.end());
  currentResults = mapping.results;
  unsigned firstDestination = sig.dims.size() - sig.numResults;
  SmallVector<Value> values;
  for (unsigned result : mapping.results)
    values.push_back(
        evaluate(sig.body->getTerminator()->getOperand(result), index));
  for (auto [result, v] : llvm::zip_equal(mapping.results, values)) {
    BlockArgument destination =
        sig.body->getArgument(firstDestination + result);
    Value offset = linearize(index, dimsOf(destination));
    moveToScopeEnd();
    store(v, function.getArgument(firstDestination + result), offset,
          kGlobalSpace);
  }
}

void KernelEmitter::emitGroup(const NVVMMapping &mapping) {
  unsigned firstDestination = sig.dims.size() - sig.numResults;
  Value destination =
      sig.body->getArgument(firstDestination + mapping.results.front());
  SmallVector<Value> sizes = dimsOf(destination);
  moveToScopeEnd();

  if (probe) { // one loop a dimension: depth = number of leading dimensions
    SmallVector<Value> index;
    for (Value size : sizes) {
      auto loop = scf::ForOp::create(b, loc, constant(0), size, constant(1));
      pushScope(loop, loop.getBody(), /*uniform=*/true);
      index.push_back(loop.getInductionVar());
    }
    storeResults(mapping, index);
    for (unsigned i = 0; i < sizes.size(); ++i)
      popScope();
    return;
  }

  auto product = [&](ArrayRef<Value> values) {
    Value p = constant(1);
    for (Value v : values)
      p = mul(p, v);
    return p;
  };
  auto special = [&](Value v) -> Value {
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), v);
  };
  Value thread = threadId();
  Value total = product(ArrayRef<Value>(sizes).take_front(mapping.rowDims));
  moveToScopeEnd();
  Value block = special(NVVM::BlockIdXOp::create(b, loc, b.getI32Type()));
  Value blocks = special(NVVM::GridDimXOp::create(b, loc, b.getI32Type()));

  if (mapping.rowDims == 0) {
    total = product(sizes);
    moveToScopeEnd();
    Value first = add(mul(block, constant(threads)), thread);
    Value step = mul(blocks, constant(threads));
    moveToScopeEnd();
    auto loop = scf::ForOp::create(b, loc, first, total, step);
    pushScope(loop, loop.getBody(), /*uniform=*/false);
    storeResults(mapping, delinearize(loop.getInductionVar(), sizes));
    popScope();
    return;
  }

  auto rowLoop = scf::ForOp::create(b, loc, block, total, blocks);
  pushScope(rowLoop, rowLoop.getBody(), /*uniform=*/true);
  SmallVector<Value> index =
      delinearize(rowLoop.getInductionVar(),
                  ArrayRef<Value>(sizes).take_front(mapping.rowDims));
  ArrayRef<Value> columnSizes =
      ArrayRef<Value>(sizes).drop_front(mapping.rowDims);
  if (columnSizes.empty()) {
    // Every thread knows the row's value; one of them writes it. What the
    // value needs is emitted before the condition.
    currentIndex = index;
    currentResults = mapping.results;
    for (unsigned result : mapping.results)
      evaluate(sig.body->getTerminator()->getOperand(result), index);
    moveToScopeEnd();
    // Others may still read the old content of the destination.
    NVVM::Barrier0Op::create(b, loc);
    Value writes = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                         thread, constant(0));
    auto ifOp = scf::IfOp::create(b, loc, writes, /*withElseRegion=*/false);
    pushScope(ifOp, ifOp.thenBlock(), /*uniform=*/false);
    storeResults(mapping, index);
    popScope();
    popScope();
    return;
  }
  Value columns = product(columnSizes);
  moveToScopeEnd();
  auto columnLoop =
      scf::ForOp::create(b, loc, thread, columns, constant(threads));
  pushScope(columnLoop, columnLoop.getBody(), /*uniform=*/false);
  llvm::append_range(index,
                     delinearize(columnLoop.getInductionVar(), columnSizes));
  storeResults(mapping, index);
  popScope();
  popScope();
}

/// True where some input runs along a parallel dimension innermost, so that
/// neighbouring threads read neighbouring elements.
static bool readsAlongResult(linalg::LinalgOp op) {
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  unsigned tensors = 0;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!isa<RankedTensorType>(input->get().getType()) ||
        map.getNumResults() == 0)
      continue;
    ++tensors;
    auto last = dyn_cast<AffineDimExpr>(map.getResults().back());
    if (!last || iterators[last.getPosition()] == utils::IteratorType::parallel)
      return true;
  }
  return tensors != 1;
}

/// Groups the results by shape and chooses how each group is spread, from
/// where a trial emission finds its reductions.
FailureOr<SmallVector<NVVMMapping>> KernelEmitter::chooseMappings() {
  SmallVector<NVVMMapping> mappings;
  unsigned firstDestination = sig.dims.size() - sig.numResults;
  for (unsigned result = 0; result < sig.numResults; ++result) {
    BlockArgument destination =
        sig.body->getArgument(firstDestination + result);
    auto type = dyn_cast<RankedTensorType>(destination.getType());
    if (!type)
      return emitError(loc, "result #") << result << " is not a ranked tensor";
    auto it = llvm::find_if(mappings, [&](const NVVMMapping &mapping) {
      unsigned other = firstDestination + mapping.results.front();
      auto otherType =
          cast<RankedTensorType>(sig.body->getArgument(other).getType());
      return otherType.getShape() == type.getShape() &&
             sig.dims[other] == sig.dims[firstDestination + result];
    });
    if (it == mappings.end()) {
      mappings.emplace_back();
      it = std::prev(mappings.end());
      it->rank = type.getRank();
    }
    it->results.push_back(result);
  }

  unsigned wanted = 0;
  for (NVVMMapping &mapping : mappings) {
    SmallVector<ReductionUse> reductions;
    KernelEmitter trial(sig, b);
    OpBuilder::InsertionGuard guard(b);
    trial.probe = &reductions;
    trial.beginFunction("trial");
    trial.emitGroup(mapping);
    // Tables of constants belong to the trial as well.
    for (auto &entry : trial.tables)
      entry.second.erase();
    trial.function.erase();
    if (trial.failed)
      return failure();

    int64_t length = 0; // of a row
    auto lengthen = [&](int64_t n) {
      length = ShapedType::isDynamic(n) || ShapedType::isDynamic(length)
                   ? ShapedType::kDynamic
                   : std::max(length, n);
    };
    for (const ReductionUse &use : reductions)
      if (use.depth < mapping.rank)
        mapping.rowDims = std::max(mapping.rowDims, use.depth);
    if (mapping.rowDims == 0 && mapping.rank > 0) {
      for (const ReductionUse &use : reductions)
        if (use.depth == mapping.rank && !readsAlongResult(use.op) &&
            (ShapedType::isDynamic(use.length) || use.length >= kLongReduction))
          mapping.rowDims = mapping.rank;
    }
    if (mapping.rowDims == 0) {
      wanted = std::max(wanted, kDefaultThreads);
      continue;
    }
    for (const ReductionUse &use : reductions)
      if (use.depth <= mapping.rowDims)
        lengthen(use.length);
    auto type = cast<RankedTensorType>(
        sig.body->getArgument(firstDestination + mapping.results.front())
            .getType());
    int64_t columns = 1;
    for (int64_t size : type.getShape().drop_front(mapping.rowDims))
      columns = ShapedType::isDynamic(size) || ShapedType::isDynamic(columns)
                    ? ShapedType::kDynamic
                    : columns * size;
    lengthen(columns);
    wanted = std::max<unsigned>(wanted,
                                ShapedType::isDynamic(length)
                                    ? kDefaultThreads
                                    : llvm::PowerOf2Ceil(std::clamp<int64_t>(
                                          length, kMinThreads, kMaxThreads)));
  }
  threads = std::clamp(wanted, kMinThreads, kMaxThreads);
  return mappings;
}

FailureOr<NVVMEmittedKernel> KernelEmitter::emit(StringRef name) {
  FailureOr<SmallVector<NVVMMapping>> mappings = chooseMappings();
  if (mlir::failed(mappings))
    return failure();
  OpBuilder::InsertionGuard guard(b);
  beginFunction(name);
  for (const NVVMMapping &mapping : *mappings)
    emitGroup(mapping);
  if (failed)
    return failure();
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b.getUnitAttr());
  // Required, not only a maximum: the code strides by this number.
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    b.getDenseI32ArrayAttr({int32_t(threads), 1, 1}));
  return NVVMEmittedKernel{function, std::move(*mappings), threads};
}

} // namespace

FailureOr<NVVMEmittedKernel>
mlir::pgkp::emitNVVMKernelFunction(const NVVMKernelSignature &signature,
                                   OpBuilder &builder, StringRef name) {
  return KernelEmitter(signature, builder).emit(name);
}
