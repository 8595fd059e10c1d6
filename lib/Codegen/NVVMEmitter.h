// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The class behind emitNVVMKernelFunction; private to its files.
#ifndef PGKP_LIB_CODEGEN_NVVMEMITTER_H
#define PGKP_LIB_CODEGEN_NVVMEMITTER_H

#include "NVVMDeviceBuilder.h"
#include "NVVMKernelEmitter.h"
#include "NVVMProduct.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

#include <map>
#include <memory>

namespace mlir::pgkp::nvvm {

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
  int64_t length;           ///< ShapedType::kDynamic where unknown
  SmallVector<Value> index; ///< of the element of its first result
};

class KernelEmitter {
public:
  KernelEmitter(const NVVMKernelSignature &signature, OpBuilder &builder)
      : sig(signature), b(builder), loc(signature.op->getLoc()), bodyLoc(loc) {}

  FailureOr<NVVMEmittedKernel> emit(StringRef name);

  // The function.
  void beginFunction(StringRef name);
  Value beginExtent(unsigned extent, Value param);
  void emitGroup(const NVVMMapping &mapping);
  FailureOr<SmallVector<NVVMMapping>> chooseMappings();
  ProductBounds boundsOf(const Product &product);
  LogicalResult chooseProduct(NVVMMapping &mapping, unsigned numMappings,
                              ArrayRef<ReductionUse> reductions,
                              ArrayRef<Value> index);
  Value dynamicShared();

  // Several neighbouring elements a thread. While `laneCount` is above 1, an
  // index that is a multiple of it has lanes: itself plus 0, 1, ... Arguments
  // are read at lanes by one access of up to 16 bytes.
  Value lane(Value base, unsigned number);
  const std::pair<Value, unsigned> *laneOf(Value index) const;
  bool isLaneMultiple(Value size) const;
  unsigned lanesFor(const NVVMMapping &mapping);
  void wideOrNarrow(const NVVMMapping &mapping,
                    function_ref<void(unsigned lanes)> emit);
  void storeLanes(const NVVMMapping &mapping, ArrayRef<Value> base,
                  unsigned lanes,
                  function_ref<void(unsigned, ArrayRef<Value>)> prepare = {});
  Value loadLane(BlockArgument arg, ArrayRef<Value> index);
  /// An i1: the argument starts at a multiple of 16 bytes, and `lastSize`, its
  /// innermost extent, is a multiple of `lanes`. Null where it never is.
  Value isAligned(BlockArgument arg, Value lastSize, unsigned lanes);
  /// Makes `value` the element of `tensor` at `index`.
  void define(Value tensor, ArrayRef<Value> index, Value value);
  /// A tensor of zeros, or of undefined content.
  bool isZero(Value tensor) const;

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
  unsigned sharedBytes = 0;
  ProductTiles tiles; ///< where a mapping is a product

  std::vector<std::unique_ptr<Scope>> scopes;
  std::map<int64_t, Value> constants;
  IRMapping scalars;
  SmallVector<Value> extents;
  DenseMap<Value, std::pair<SmallVector<Value>, SmallVector<Value>>> parts;
  DenseMap<Type, LLVM::GlobalOp> shared;
  DenseMap<Operation *, LLVM::GlobalOp> tables;
  LLVM::GlobalOp dynamicSharedMemory;
  DenseMap<Value, std::pair<Value, unsigned>> lanes;
  unsigned laneCount = 1;
  /// Sizes, and arguments by number, that wideOrNarrow found to be aligned.
  DenseSet<Value> laneMultiples;
  DenseSet<unsigned> laneArguments;
  unsigned numGlobals = 0;
  unsigned numEvaluations = 0;
  Value tid;

  /// The element under computation, to know which reads of a destination are
  /// safe: the thread that writes an element may read it before.
  SmallVector<Value> currentIndex;
  ArrayRef<unsigned> currentResults;

  /// When choosing a mapping: record reductions, refuse nothing.
  SmallVector<ReductionUse> *probe = nullptr;
  SmallVector<Value> probedIndex;
  bool failed = false;
};

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

} // namespace mlir::pgkp::nvvm

#endif // PGKP_LIB_CODEGEN_NVVMEMITTER_H
