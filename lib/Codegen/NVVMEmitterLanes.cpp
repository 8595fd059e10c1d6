// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Several neighbouring elements a thread, by accesses of up to 16 bytes.
#include "NVVMEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::pgkp;
using namespace mlir::pgkp::nvvm;

/// Bytes of an element in memory, or 0 where lanes are not supported.
static unsigned laneBytes(Type elementType) {
  if (!elementType.isIntOrFloat() || elementType.getIntOrFloatBitWidth() < 8)
    return 0;
  return elementType.getIntOrFloatBitWidth() / 8;
}

Value KernelEmitter::isAligned(BlockArgument arg, Value lastSize,
                               unsigned lanes) {
  auto size = constantOf(lastSize);
  if (size && *size % lanes != 0)
    return Value();
  DeviceBuilder d(b, loc);
  Value address = LLVM::PtrToIntOp::create(
      b, loc, b.getI64Type(), function.getArgument(arg.getArgNumber()));
  Value aligned = d.eq(d.band(address, 15), 0);
  return size ? aligned : d.both(aligned, d.eq(d.rem(lastSize, lanes), 0));
}

/// Lanes of the narrowest argument's 16 bytes, if every destination is
/// accessed by whole lanes; else 1.
unsigned KernelEmitter::lanesFor(const NVVMMapping &mapping) {
  unsigned firstDestination = sig.dims.size() - sig.numResults;
  unsigned lanes = 1;
  for (unsigned result : mapping.results) {
    BlockArgument arg = sig.body->getArgument(firstDestination + result);
    auto type = cast<RankedTensorType>(arg.getType());
    unsigned bytes = laneBytes(type.getElementType());
    if (!bytes || type.getRank() == 0)
      return 1;
    lanes = std::max(lanes, std::min(16 / bytes, 8u));
  }
  for (unsigned result : mapping.results) {
    auto type = cast<RankedTensorType>(
        sig.body->getArgument(firstDestination + result).getType());
    int64_t last = type.getShape().back();
    while (!ShapedType::isDynamic(last) && lanes > 1 && last % lanes != 0)
      lanes /= 2;
  }
  return lanes;
}

void KernelEmitter::wideOrNarrow(const NVVMMapping &mapping,
                                 function_ref<void(unsigned lanes)> emit) {
  if (mapping.lanes == 1)
    return emit(1);
  unsigned firstDestination = sig.dims.size() - sig.numResults;
  DeviceBuilder d(b, loc);
  Value wide;
  laneMultiples.clear();
  laneArguments.clear();
  for (BlockArgument arg : sig.body->getArguments()) {
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!type || type.getRank() == 0 || !laneBytes(type.getElementType()))
      continue;
    // Operands of a product come by copies of their own.
    linalg::LinalgOp product = mapping.product;
    if (product && arg.hasOneUse() &&
        *arg.user_begin() == product.getOperation() &&
        arg.getArgNumber() < firstDestination)
      continue;
    Value last = dimOf(arg, type.getRank() - 1);
    Value aligned = isAligned(arg, last, mapping.lanes);
    if (!aligned)
      continue;
    wide = d.both(wide, aligned);
    laneArguments.insert(arg.getArgNumber());
    if (!constantOf(last))
      laneMultiples.insert(last);
  }
  auto ifOp = scf::IfOp::create(b, loc, wide, /*withElseRegion=*/true);
  pushScope(ifOp, ifOp.thenBlock(), /*uniform=*/true, /*conditional=*/true);
  laneCount = mapping.lanes;
  emit(laneCount);
  laneCount = 1;
  lanes.clear();
  popScope();
  pushScope(ifOp, ifOp.elseBlock(), /*uniform=*/true, /*conditional=*/true);
  emit(1);
  popScope();
}

/// The element of an argument at a lane, or null where it is not one.
Value KernelEmitter::loadLane(BlockArgument arg, ArrayRef<Value> index) {
  if (laneCount == 1 || index.empty() ||
      !laneArguments.contains(arg.getArgNumber()))
    return Value();
  auto *at = laneOf(index.back());
  if (!at || !isLaneMultiple(dimOf(arg, index.size() - 1)))
    return Value();
  auto [base, number] = *at;
  SmallVector<Value> first(index);
  first.back() = base;
  Type elementType = getElementTypeOrSelf(arg.getType());
  Value offset = linearize(first, dimsOf(arg));
  std::vector<const void *> key = {&lanes, arg.getAsOpaquePointer(),
                                   offset.getAsOpaquePointer()};
  unsigned depth = std::max(depthOf(offset), conditionalDepth());
  return atDepth(depth, [&]() -> Value {
    DeviceBuilder d(b, loc);
    SmallVector<Value> &known = scopes.back()->known[key];
    if (known.empty()) {
      unsigned bytes = laneBytes(elementType) * laneCount;
      auto type = VectorType::get(laneCount, elementType);
      Value address = LLVM::GEPOp::create(
          b, loc, LLVM::LLVMPointerType::get(b.getContext(), kGlobalSpace),
          elementType, function.getArgument(arg.getArgNumber()),
          ValueRange{d.toI64(offset)});
      known = d.elements(d.load(address, type, std::min(bytes, 16u)));
    }
    return known[number];
  });
}

void KernelEmitter::storeLanes(
    const NVVMMapping &mapping, ArrayRef<Value> base, unsigned count,
    function_ref<void(unsigned, ArrayRef<Value>)> prepare) {
  currentResults = mapping.results;
  unsigned firstDestination = sig.dims.size() - sig.numResults;
  SmallVector<SmallVector<Value>> values(mapping.results.size());
  SmallVector<Value> first(base);
  for (unsigned i = 0; i < count; ++i) {
    currentIndex.assign(base.begin(), base.end());
    if (count > 1)
      currentIndex.back() = lane(base.back(), i);
    if (i == 0)
      first = currentIndex;
    if (prepare)
      prepare(i, currentIndex);
    for (auto [number, result] : llvm::enumerate(mapping.results))
      values[number].push_back(evaluate(
          sig.body->getTerminator()->getOperand(result), currentIndex));
  }
  for (auto [number, result] : llvm::enumerate(mapping.results)) {
    BlockArgument arg = sig.body->getArgument(firstDestination + result);
    Value offset = linearize(first, dimsOf(arg));
    moveToScopeEnd();
    Value pointer = function.getArgument(firstDestination + result);
    if (count == 1) {
      store(values[number][0], pointer, offset, kGlobalSpace);
      continue;
    }
    DeviceBuilder d(b, loc);
    Type elementType = values[number][0].getType();
    Value address = LLVM::GEPOp::create(b, loc, pointer.getType(), elementType,
                                        pointer, ValueRange{d.toI64(offset)});
    d.store(d.vector(values[number]), address,
            std::min(laneBytes(elementType) * count, 16u));
  }
}

void KernelEmitter::define(Value tensor, ArrayRef<Value> index, Value value) {
  unsigned depth = conditionalDepth();
  std::vector<const void *> key = {tensor.getAsOpaquePointer()};
  for (Value i : index) {
    depth = std::max(depth, depthOf(i));
    key.push_back(i.getAsOpaquePointer());
  }
  scopes[depth]->known[key] = {value};
}

bool KernelEmitter::isZero(Value tensor) const {
  while (auto cast = tensor.getDefiningOp<tensor::CastOp>())
    tensor = cast.getSource();
  if (tensor.getDefiningOp<tensor::EmptyOp>())
    return true;
  auto fill = tensor.getDefiningOp<linalg::FillOp>();
  return fill && (matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) ||
                  matchPattern(fill.getInputs()[0], m_Zero()));
}
