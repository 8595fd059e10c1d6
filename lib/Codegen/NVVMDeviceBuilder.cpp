// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "NVVMDeviceBuilder.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::pgkp::nvvm;

Value DeviceBuilder::materialize(Operand operand, Type type) {
  if (operand.value)
    return operand.value;
  return arith::ConstantOp::create(b, loc,
                                   b.getIntegerAttr(type, operand.constant));
}

Value DeviceBuilder::i32(int64_t value) {
  return materialize(value, b.getI32Type());
}

Value DeviceBuilder::i64(int64_t value) {
  return materialize(value, b.getI64Type());
}

Value DeviceBuilder::zeroF32() {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
}

Value DeviceBuilder::toI32(Value v) {
  if (auto c = getConstantIntValue(v))
    return i32(*c);
  if (v.getType().isIndex())
    return arith::IndexCastUIOp::create(b, loc, b.getI32Type(), v);
  if (v.getType().isInteger(64))
    return arith::TruncIOp::create(b, loc, b.getI32Type(), v);
  return v;
}

Value DeviceBuilder::toI64(Value v) {
  if (auto c = getConstantIntValue(v))
    return i64(*c);
  if (v.getType().isIndex())
    return arith::IndexCastUIOp::create(b, loc, b.getI64Type(), v);
  if (v.getType().isInteger(32))
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), v);
  return v;
}

Value DeviceBuilder::toIndex(Value v) {
  if (v.getType().isIndex())
    return v;
  if (auto c = getConstantIntValue(v))
    return arith::ConstantIndexOp::create(b, loc, *c);
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), v);
}

Value DeviceBuilder::cmp(arith::CmpIPredicate predicate, Value x, Operand y) {
  return b.createOrFold<arith::CmpIOp>(loc, predicate, x,
                                       materialize(y, x.getType()));
}

Value DeviceBuilder::both(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return b.createOrFold<arith::AndIOp>(loc, x, y);
}

Value DeviceBuilder::select(Value condition, Operand x, Operand y, Type type) {
  Value onTrue = materialize(x, type);
  return b.createOrFold<arith::SelectOp>(loc, condition, onTrue,
                                         materialize(y, type));
}

Value DeviceBuilder::offset(Value pointer, Operand bytes) {
  auto known = bytes.value ? getConstantIntValue(bytes.value) : bytes.constant;
  if (known == 0)
    return pointer;
  if (known)
    return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(),
                               pointer,
                               ArrayRef<LLVM::GEPArg>{int32_t(*known)});
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{bytes.value});
}

Value DeviceBuilder::load(Value pointer, Type type, unsigned align) {
  return LLVM::LoadOp::create(b, loc, type, pointer, align);
}

void DeviceBuilder::store(Value value, Value pointer, unsigned align) {
  LLVM::StoreOp::create(b, loc, value, pointer, align);
}

Value DeviceBuilder::vector(ArrayRef<Value> elements) {
  auto type = VectorType::get(elements.size(), elements[0].getType());
  Value v = LLVM::UndefOp::create(b, loc, type);
  for (auto [i, element] : llvm::enumerate(elements))
    v = LLVM::InsertElementOp::create(b, loc, v, element, i32(i));
  return v;
}

SmallVector<Value> DeviceBuilder::elements(Value vector) {
  SmallVector<Value> values;
  for (int64_t i = 0; i < cast<VectorType>(vector.getType()).getDimSize(0); ++i)
    values.push_back(LLVM::ExtractElementOp::create(b, loc, vector, i32(i)));
  return values;
}

SmallVector<Value> DeviceBuilder::fields(Value aggregate, unsigned count) {
  SmallVector<Value> values;
  for (unsigned i = 0; i < count; ++i)
    values.push_back(
        LLVM::ExtractValueOp::create(b, loc, aggregate, ArrayRef<int64_t>{i}));
  return values;
}

Value DeviceBuilder::threadId() {
  return NVVM::ThreadIdXOp::create(b, loc, b.getI32Type());
}

void DeviceBuilder::barrier() { NVVM::Barrier0Op::create(b, loc); }

void DeviceBuilder::copyAsync(Value to, Value from, Value valid) {
  NVVM::CpAsyncOp::create(b, loc, to, from, 16u,
                          NVVM::LoadCacheModifierKind::CG, valid);
}

void DeviceBuilder::commitCopies() {
  NVVM::CpAsyncCommitGroupOp::create(b, loc);
}

void DeviceBuilder::waitCopies(unsigned pending) {
  NVVM::CpAsyncWaitGroupOp::create(b, loc, pending);
}

SmallVector<Value> DeviceBuilder::loadMatrices(Value pointer, bool transpose) {
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(4, b.getI32Type()));
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  Value result = NVVM::LdMatrixOp::create(b, loc, type, pointer, 4u,
                                          transpose ? NVVM::MMALayout::col
                                                    : NVVM::MMALayout::row,
                                          shape, NVVM::LdStMatrixEltType::B16);
  return fields(result, 4);
}

SmallVector<Value> DeviceBuilder::mma(NVVM::MMATypes type, ArrayRef<Value> lhs,
                                      ArrayRef<Value> rhs,
                                      ArrayRef<Value> accumulator) {
  int64_t depth = type == NVVM::MMATypes::tf32 ? 8 : 16;
  // f16 operands are pairs; the other types come as integers.
  auto operands = [&](ArrayRef<Value> words) {
    SmallVector<Value> result(words);
    if (type == NVVM::MMATypes::f16)
      for (Value &word : result)
        word = LLVM::BitcastOp::create(
            b, loc, VectorType::get(2, b.getF16Type()), word);
    return result;
  };
  auto resultType = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(4, b.getF32Type()));
  Value result = NVVM::MmaOp::create(
      b, loc, resultType, operands(lhs), operands(rhs), accumulator,
      ArrayRef<int64_t>{16, 8, depth}, std::nullopt, std::nullopt,
      std::array<NVVM::MMATypes, 2>{type, type},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                     NVVM::MMALayout::col});
  return fields(result, 4);
}
