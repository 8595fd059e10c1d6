// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Memory, mappings and the device function.
#include "NVVMEmitter.h"
#include "NVVMProductEmitter.h"

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

/// What blocks share on a multiprocessor, and registers that a thread of a
/// product should have at least.
static constexpr unsigned kSharedBytesOfChip = 164 * 1024;
static constexpr unsigned kRegistersOfChip = 64 * 1024;
static constexpr unsigned kProductRegisters = 168;

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

/// Its size is the launch's; aligned for every swizzle.
Value KernelEmitter::dynamicShared() {
  if (!dynamicSharedMemory) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(function);
    dynamicSharedMemory = LLVM::GlobalOp::create(
        b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), 0),
        /*isConstant=*/false, LLVM::Linkage::External, "dynamic_shared",
        Attribute(), /*alignment=*/1024, kSharedSpace);
  }
  return atDepth(0, [&]() -> Value {
    return LLVM::AddressOfOp::create(b, loc, dynamicSharedMemory);
  });
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
    probedIndex = index;
    storeLanes(mapping, index, 1);
    for (unsigned i = 0; i < sizes.size(); ++i)
      popScope();
    return;
  }

  if (mapping.product) {
    emitMmaProduct(*this, mapping, *matchProduct(mapping.product), tiles);
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
    Value number = add(mul(block, constant(threads)), thread);
    Value count = mul(blocks, constant(threads));
    moveToScopeEnd();
    wideOrNarrow(mapping, [&](unsigned lanes) {
      Value first = mul(number, constant(lanes));
      Value step = mul(count, constant(lanes));
      moveToScopeEnd();
      auto loop = scf::ForOp::create(b, loc, first, total, step);
      pushScope(loop, loop.getBody(), /*uniform=*/false);
      storeLanes(mapping, delinearize(loop.getInductionVar(), sizes), lanes);
      popScope();
    });
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
    storeLanes(mapping, index, 1);
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
  storeLanes(mapping, index, 1);
  popScope();
  popScope();
}

/// Bounds of a product's sizes from its shapes and the kernel's facts.
ProductBounds KernelEmitter::boundsOf(const Product &product) {
  auto boundOf = [&](unsigned dim) -> int64_t {
    Value size = loopSize(product.op, dim);
    if (auto c = constantOf(size))
      return *c;
    int64_t bound = INT64_MAX;
    for (auto [number, extent] : llvm::enumerate(extents))
      if (extent == size)
        for (FactAttr fact : sig.facts)
          if (fact.getDim() == number && fact.getKind() == FactKind::Range)
            bound = std::min(bound, fact.getHi());
    return bound;
  };
  ProductBounds bounds;
  bounds.rows = 1;
  for (unsigned dim : product.rows)
    if (llvm::MulOverflow(bounds.rows, boundOf(dim), bounds.rows))
      bounds.rows = INT64_MAX;
  bounds.columns = boundOf(product.column);
  bounds.depth = boundOf(product.depth);
  return bounds;
}

/// Makes the mapping a product's, if the group's only reduction is one, at
/// the very element that is stored.
LogicalResult KernelEmitter::chooseProduct(NVVMMapping &mapping,
                                           unsigned numMappings,
                                           ArrayRef<ReductionUse> reductions,
                                           ArrayRef<Value> index) {
  if (numMappings != 1 || reductions.size() != 1 ||
      reductions[0].depth != mapping.rank ||
      ArrayRef<Value>(reductions[0].index) != index)
    return failure();
  std::optional<Product> product = matchProduct(reductions[0].op);
  if (!product)
    return failure();
  // The facts' constants and ranges need the function's extents.
  ProductBounds bounds;
  {
    OpBuilder::InsertionGuard guard(b);
    KernelEmitter sizes(sig, b);
    sizes.beginFunction("sizes");
    bounds = sizes.boundsOf(*product);
    sizes.function.erase();
  }
  FailureOr<ProductTiles> chosen =
      chooseTiles(loc, *product, bounds, sig.config);
  if (mlir::failed(chosen)) {
    failed = true;
    return failure();
  }
  tiles = *chosen;
  mapping.product = product->op;
  AffineMap map =
      product->op.getMatchingIndexingMap(product->op.getDpsInitOperand(0));
  for (auto [position, expr] : llvm::enumerate(map.getResults()))
    if (llvm::is_contained(product->rows,
                           cast<AffineDimExpr>(expr).getPosition()))
      mapping.productRows.push_back(position);
  mapping.tileRows = tiles.rows;
  mapping.tileColumns = tiles.columns;
  mapping.lanes = lanesFor(mapping);
  threads = tiles.threads();
  sharedBytes = nvvm::sharedBytes(*product, tiles);
  return success();
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
    {
      OpBuilder::InsertionGuard guard(b);
      trial.probe = &reductions;
      trial.beginFunction("trial");
      trial.emitGroup(mapping);
      // Tables of constants belong to the trial as well.
      for (auto &entry : trial.tables)
        entry.second.erase();
      trial.function.erase();
    }
    if (trial.failed)
      return failure();

    if (succeeded(chooseProduct(mapping, mappings.size(), reductions,
                                trial.probedIndex)))
      return mappings;
    if (failed)
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
      unsigned lanes = lanesFor(mapping);
      if (reductions.empty() && trial.numEvaluations * lanes < kMaxEvaluations)
        mapping.lanes = lanes;
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
  // As many blocks as share a multiprocessor by their memory: without a number
  // ptxas saves registers for more, and spills.
  if (sharedBytes) {
    unsigned blocks =
        std::min(kSharedBytesOfChip / sharedBytes,
                 kRegistersOfChip / (threads * kProductRegisters));
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      b.getI32IntegerAttr(std::clamp(blocks, 1u, 3u)));
  }
  return NVVMEmittedKernel{function, std::move(*mappings), threads,
                           sharedBytes};
}

FailureOr<NVVMEmittedKernel>
mlir::pgkp::emitNVVMKernelFunction(const NVVMKernelSignature &signature,
                                   OpBuilder &builder, StringRef name) {
  return KernelEmitter(signature, builder).emit(name);
}
