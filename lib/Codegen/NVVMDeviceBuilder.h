// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file A thin builder of device code: folded 32-bit arithmetic, addresses in
/// bytes, and the nvvm operations of matrix products with their fixed
/// attributes filled in.
#ifndef PGKP_LIB_CODEGEN_NVVMDEVICEBUILDER_H
#define PGKP_LIB_CODEGEN_NVVMDEVICEBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::pgkp::nvvm {

constexpr unsigned kGlobalSpace = 1;
constexpr unsigned kSharedSpace = 3;
constexpr unsigned kConstantSpace = 4;

class DeviceBuilder {
public:
  /// A value, or a constant of the other operand's type.
  struct Operand {
    Operand(Value value) : value(value) {}
    Operand(int64_t constant) : constant(constant) {}
    Value value;
    int64_t constant = 0;
  };

  DeviceBuilder(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  Value i32(int64_t value);
  Value i64(int64_t value);
  Value zeroF32();
  /// Of an index or a narrower integer, never negative.
  Value toI32(Value v);
  Value toI64(Value v);
  Value toIndex(Value v);

  Value add(Value x, Operand y) { return binary<arith::AddIOp>(x, y); }
  Value sub(Value x, Operand y) { return binary<arith::SubIOp>(x, y); }
  Value mul(Value x, Operand y) { return binary<arith::MulIOp>(x, y); }
  Value div(Value x, Operand y) { return binary<arith::DivUIOp>(x, y); }
  Value rem(Value x, Operand y) { return binary<arith::RemUIOp>(x, y); }
  Value band(Value x, Operand y) { return binary<arith::AndIOp>(x, y); }
  Value bor(Value x, Operand y) { return binary<arith::OrIOp>(x, y); }
  Value bxor(Value x, Operand y) { return binary<arith::XOrIOp>(x, y); }
  Value shr(Value x, Operand y) { return binary<arith::ShRUIOp>(x, y); }
  Value shl(Value x, Operand y) { return binary<arith::ShLIOp>(x, y); }
  Value ceilDiv(Value x, int64_t y) { return div(add(x, y - 1), y); }
  Value min(Value x, Operand y) { return binary<arith::MinSIOp>(x, y); }
  Value max(Value x, Operand y) { return binary<arith::MaxSIOp>(x, y); }
  Value cmp(arith::CmpIPredicate predicate, Value x, Operand y);
  Value lt(Value x, Operand y) { return cmp(arith::CmpIPredicate::slt, x, y); }
  Value eq(Value x, Operand y) { return cmp(arith::CmpIPredicate::eq, x, y); }
  /// Both hold; a null one always does.
  Value both(Value x, Value y);
  Value select(Value condition, Operand x, Operand y, Type type);

  /// `pointer` plus `bytes`, an i32 or i64 or a constant.
  Value offset(Value pointer, Operand bytes);
  Value load(Value pointer, Type type, unsigned align);
  void store(Value value, Value pointer, unsigned align);
  Value vector(ArrayRef<Value> elements);
  SmallVector<Value> elements(Value vector);
  SmallVector<Value> fields(Value aggregate, unsigned count);

  Value threadId();
  void barrier();

  /// 16 bytes from global to shared memory, of which the first `valid` (an
  /// i32, 0 to 16) are read; the rest becomes zero.
  void copyAsync(Value to, Value from, Value valid);
  void commitCopies();
  void waitCopies(unsigned pending);

  /// Four 8x8 matrices of 16-bit elements, as i32 each.
  SmallVector<Value> loadMatrices(Value pointer, bool transpose);
  /// 16x8 tile += A (16 x depth) * B (depth x 8), in f32.
  SmallVector<Value> mma(NVVM::MMATypes type, ArrayRef<Value> lhs,
                         ArrayRef<Value> rhs, ArrayRef<Value> accumulator);

  OpBuilder &b;
  Location loc;

private:
  template <typename OpTy> Value binary(Value x, Operand y) {
    return b.createOrFold<OpTy>(loc, x, materialize(y, x.getType()));
  }
  Value materialize(Operand operand, Type type);
};

} // namespace mlir::pgkp::nvvm

#endif // PGKP_LIB_CODEGEN_NVVMDEVICEBUILDER_H
