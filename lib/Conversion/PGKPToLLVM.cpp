// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Lowers entries to functions over the runtime's table (pgkp-c/program.h).
///
/// Values keep their memref and index types outside of what is rewritten here;
/// unrealized casts stand between, and upstream's conversions remove them.
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "pgkp-c/program.h"
#include "pgkp/Conversion/Passes.h"
#include "pgkp/Dialect/IR/PGKPOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <cstddef>

namespace mlir::pgkp {
#define GEN_PASS_DEF_CONVERTPGKPTOLLVMPASS
#include "pgkp/Conversion/Passes.h.inc"
} // namespace mlir::pgkp

using namespace mlir;
using namespace mlir::pgkp;

namespace {

/// The buffer that an entry's calls share, in bytes from its start.
struct CallBuffer {
  Value memory;
  uint64_t size = 0;
  /// Sets the size once every call has been seen.
  LLVM::ConstantOp sizeConstant;
};

class EntryLowering {
public:
  EntryLowering(ModuleOp module, const llvm::StringMap<unsigned> &kernels,
                const LLVMTypeConverter &converter)
      : module(module), kernels(kernels), converter(converter),
        builder(module.getContext()) {
    pointer = LLVM::LLVMPointerType::get(module.getContext());
    i32 = builder.getI32Type();
    i64 = builder.getI64Type();
    f64 = builder.getF64Type();
  }

  LogicalResult lower(func::FuncOp function, unsigned entryNumber);

private:
  void moveBody(func::FuncOp function, LLVM::LLVMFuncOp target);
  LogicalResult lowerOp(Operation *op);
  LogicalResult lowerDispatch(DispatchOp op);
  LogicalResult lowerPrepare(PrepareOp op);
  LogicalResult lowerAwait(AwaitOp op);
  LogicalResult lowerObserve(ObserveOp op);
  LogicalResult lowerAlloc(memref::AllocOp op);
  LogicalResult lowerDealloc(memref::DeallocOp op);
  LogicalResult lowerCopy(memref::CopyOp op);
  LogicalResult lowerReshape(Operation *op, Value source, MemRefType type,
                             ArrayRef<OpFoldResult> sizes);
  LogicalResult lowerAssert(cf::AssertOp op);

  FailureOr<unsigned> getKernelNumber(Operation *op, StringRef name) {
    auto it = kernels.find(name);
    if (it == kernels.end())
      return op->emitOpError("refers to '@") << name << "'; expected a kernel";
    return it->second;
  }

  Value constant(Location loc, Type type, int64_t value) {
    return LLVM::ConstantOp::create(builder, loc, type,
                                    builder.getIntegerAttr(type, value));
  }
  Value constant(Location loc, double value) {
    return LLVM::ConstantOp::create(builder, loc, f64,
                                    builder.getF64FloatAttr(value));
  }
  Value convert(Location loc, Value value, Type type) {
    return UnrealizedConversionCastOp::create(builder, loc, type, value)
        .getResult(0);
  }
  Value offset(Location loc, Value base, uint64_t bytes) {
    return LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), base,
                               ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
  }
  /// Fills in sizes and the strides of the identity layout.
  void setShape(Location loc, MemRefDescriptor &descriptor,
                ArrayRef<Value> sizes);
  Value toI64(Location loc, OpFoldResult index) {
    if (auto attr = dyn_cast<Attribute>(index))
      return constant(loc, i64, cast<IntegerAttr>(attr).getInt());
    return arith::IndexCastOp::create(builder, loc, i64, cast<Value>(index));
  }
  /// Bytes at the end of the buffer's part in use by the current call.
  Value reserve(Location loc, uint64_t bytes) {
    uint64_t start = llvm::alignTo(used, 16);
    used = start + bytes;
    buffer.size = std::max(buffer.size, used);
    return offset(loc, buffer.memory, start);
  }
  /// Stores the indices as 64-bit integers; returns where.
  Value storeIndices(Location loc, ValueRange indices);
  /// Stores a memref's descriptor or a scalar; returns where.
  FailureOr<Value> storeArgument(Operation *op, Value value);
  LLVM::CallOp call(Location loc, size_t slot, TypeRange results,
                    ValueRange arguments);

  ModuleOp module;
  const llvm::StringMap<unsigned> &kernels;
  const LLVMTypeConverter &converter;
  OpBuilder builder;
  Type pointer, i32, i64, f64;

  Value context, table;
  CallBuffer buffer;
  uint64_t used = 0;
  unsigned entry = 0;
  unsigned numMessages = 0;
};

Value EntryLowering::storeIndices(Location loc, ValueRange indices) {
  if (indices.empty())
    return LLVM::ZeroOp::create(builder, loc, pointer);
  Value memory = reserve(loc, indices.size() * sizeof(int64_t));
  for (auto [i, index] : llvm::enumerate(indices)) {
    Value value = arith::IndexCastOp::create(builder, loc, i64, index);
    LLVM::StoreOp::create(builder, loc, value,
                          offset(loc, memory, i * sizeof(int64_t)));
  }
  return memory;
}

void EntryLowering::setShape(Location loc, MemRefDescriptor &descriptor,
                             ArrayRef<Value> sizes) {
  Value count = constant(loc, i64, 1);
  for (int64_t i = sizes.size() - 1; i >= 0; --i) {
    descriptor.setSize(builder, loc, i, sizes[i]);
    descriptor.setStride(builder, loc, i, count);
    count = LLVM::MulOp::create(builder, loc, count, sizes[i]);
  }
}

FailureOr<Value> EntryLowering::storeArgument(Operation *op, Value value) {
  Location loc = op->getLoc();
  Type type = converter.convertType(value.getType());
  if (!type)
    return op->emitOpError("has an operand of type ")
           << value.getType() << "; expected a ranked memref or a scalar";
  uint64_t bytes = 0;
  if (auto memref = dyn_cast<MemRefType>(value.getType())) {
    // Two pointers, the offset, then sizes and strides.
    bytes = 3 * 8 + 2 * 8 * memref.getRank();
  } else if (type.isIntOrFloat()) {
    bytes = llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
  } else {
    return op->emitOpError("has an operand of type ")
           << value.getType() << "; expected a ranked memref or a scalar";
  }
  Value memory = reserve(loc, bytes);
  LLVM::StoreOp::create(
      builder, loc, value.getType() == type ? value : convert(loc, value, type),
      memory);
  return memory;
}

LLVM::CallOp EntryLowering::call(Location loc, size_t slot, TypeRange results,
                                 ValueRange arguments) {
  Value function =
      LLVM::LoadOp::create(builder, loc, pointer, offset(loc, table, slot));
  SmallVector<Type> types(arguments.getTypes());
  auto type = LLVM::LLVMFunctionType::get(
      results.empty() ? LLVM::LLVMVoidType::get(builder.getContext())
                      : results.front(),
      types);
  SmallVector<Value> operands = {function};
  operands.append(arguments.begin(), arguments.end());
  return LLVM::CallOp::create(builder, loc, type, operands);
}

LogicalResult EntryLowering::lowerDispatch(DispatchOp op) {
  FailureOr<unsigned> kernel = getKernelNumber(op, op.getKernel());
  if (failed(kernel))
    return failure();
  if (op->getNumResults() != 0)
    return op.emitOpError("has tensor results; expected it to be bufferized");
  Location loc = op.getLoc();
  SmallVector<Value> operands(op.getInputs());
  operands.append(op.getOutputs().begin(), op.getOutputs().end());
  Value extents = storeIndices(loc, op.getExtents());
  Value arguments = reserve(loc, operands.size() * sizeof(void *));
  for (auto [i, operand] : llvm::enumerate(operands)) {
    FailureOr<Value> stored = storeArgument(op, operand);
    if (failed(stored))
      return failure();
    LLVM::StoreOp::create(builder, loc, *stored,
                          offset(loc, arguments, i * sizeof(void *)));
  }
  call(loc, offsetof(pgkp_program_api_t, dispatch), {},
       {context, constant(loc, i32, *kernel), extents,
        constant(loc, i32, op.getExtents().size()), arguments,
        constant(loc, i32, operands.size())});
  return success();
}

LogicalResult EntryLowering::lowerPrepare(PrepareOp op) {
  FailureOr<unsigned> kernel = getKernelNumber(op, op.getKernel());
  if (failed(kernel))
    return failure();
  Location loc = op.getLoc();
  call(loc, offsetof(pgkp_program_api_t, prepare), {},
       {context, constant(loc, i32, *kernel),
        storeIndices(loc, op.getExtents()),
        constant(loc, i32, op.getExtents().size()),
        constant(loc, op.getProbability().convertToDouble()),
        constant(loc, op.getSlack().convertToDouble()),
        constant(loc, i32, int64_t(op.getStage())),
        constant(loc, i32, int64_t(op.getProvenance()))});
  return success();
}

LogicalResult EntryLowering::lowerAwait(AwaitOp op) {
  FailureOr<unsigned> kernel = getKernelNumber(op, op.getKernel());
  if (failed(kernel))
    return failure();
  Location loc = op.getLoc();
  call(loc, offsetof(pgkp_program_api_t, await), {},
       {context, constant(loc, i32, *kernel),
        storeIndices(loc, op.getExtents()),
        constant(loc, i32, op.getExtents().size()),
        constant(loc, i64, op.getTimeoutUs())});
  return success();
}

LogicalResult EntryLowering::lowerObserve(ObserveOp op) {
  Location loc = op.getLoc();
  call(loc, offsetof(pgkp_program_api_t, observe), {},
       {context, constant(loc, i32, entry), storeIndices(loc, op.getRoots()),
        constant(loc, i32, op.getRoots().size())});
  return success();
}

/// Size of an element in memory; 0 if it has none.
uint64_t getElementBytes(MemRefType type, const LLVMTypeConverter &converter) {
  Type element = converter.convertType(type.getElementType());
  return element && element.isIntOrFloat()
             ? llvm::divideCeil(element.getIntOrFloatBitWidth(), 8)
             : 0;
}

LogicalResult EntryLowering::lowerAlloc(memref::AllocOp op) {
  Location loc = op.getLoc();
  MemRefType type = op.getType();
  uint64_t elementBytes = getElementBytes(type, converter);
  if (!type.getLayout().isIdentity() || !elementBytes)
    return op.emitOpError("allocates ")
           << type << "; expected an identity layout and scalar elements";
  SmallVector<Value> sizes;
  for (OpFoldResult size : op.getMixedSizes())
    sizes.push_back(toI64(loc, size));
  Value bytes = constant(loc, i64, elementBytes);
  for (Value size : sizes)
    bytes = LLVM::MulOp::create(builder, loc, bytes, size);
  Value memory =
      call(loc, offsetof(pgkp_program_api_t, alloc), pointer, {context, bytes})
          .getResult();
  auto descriptor =
      MemRefDescriptor::poison(builder, loc, converter.convertType(type));
  descriptor.setAllocatedPtr(builder, loc, memory);
  descriptor.setAlignedPtr(builder, loc, memory);
  descriptor.setOffset(builder, loc, constant(loc, i64, 0));
  setShape(loc, descriptor, sizes);
  op.getResult().replaceAllUsesWith(convert(loc, descriptor, type));
  return success();
}

/// Upstream's expansion of strided metadata cannot reshape to two dynamic
/// dimensions; for identity layouts the strides follow from the sizes.
LogicalResult EntryLowering::lowerReshape(Operation *op, Value source,
                                          MemRefType type,
                                          ArrayRef<OpFoldResult> sizes) {
  Location loc = op->getLoc();
  MemRefDescriptor from(
      convert(loc, source, converter.convertType(source.getType())));
  auto to = MemRefDescriptor::poison(builder, loc, converter.convertType(type));
  to.setAllocatedPtr(builder, loc, from.allocatedPtr(builder, loc));
  to.setAlignedPtr(builder, loc, from.alignedPtr(builder, loc));
  to.setOffset(builder, loc, from.offset(builder, loc));
  SmallVector<Value> values;
  if (auto collapse = dyn_cast<memref::CollapseShapeOp>(op)) {
    for (ArrayRef<int64_t> group : collapse.getReassociationIndices()) {
      Value size = constant(loc, i64, 1);
      for (int64_t dim : group)
        size = LLVM::MulOp::create(builder, loc, size,
                                   from.size(builder, loc, dim));
      values.push_back(size);
    }
  } else {
    for (OpFoldResult size : sizes)
      values.push_back(toI64(loc, size));
  }
  setShape(loc, to, values);
  op->getResult(0).replaceAllUsesWith(convert(loc, to, type));
  return success();
}

LogicalResult EntryLowering::lowerDealloc(memref::DeallocOp op) {
  Location loc = op.getLoc();
  auto type = dyn_cast<MemRefType>(op.getMemref().getType());
  if (!type)
    return op.emitOpError("frees an unranked memref; expected a ranked one");
  MemRefDescriptor descriptor(
      convert(loc, op.getMemref(), converter.convertType(type)));
  call(loc, offsetof(pgkp_program_api_t, free), {},
       {context, descriptor.allocatedPtr(builder, loc)});
  return success();
}

LogicalResult EntryLowering::lowerCopy(memref::CopyOp op) {
  Location loc = op.getLoc();
  auto type = dyn_cast<MemRefType>(op.getSource().getType());
  if (!type || !isa<MemRefType>(op.getTarget().getType()))
    return op.emitOpError("copies an unranked memref; expected a ranked one");
  uint64_t elementBytes = getElementBytes(type, converter);
  if (!elementBytes)
    return op.emitOpError("copies ") << type << "; expected scalar elements";
  FailureOr<Value> source = storeArgument(op, op.getSource());
  FailureOr<Value> target = storeArgument(op, op.getTarget());
  if (failed(source) || failed(target))
    return failure();
  call(loc, offsetof(pgkp_program_api_t, copy), {},
       {context, constant(loc, i32, type.getRank()),
        constant(loc, i32, elementBytes), *source, *target});
  return success();
}

LogicalResult EntryLowering::lowerAssert(cf::AssertOp op) {
  Location loc = op.getLoc();
  if (!isa<LLVM::LLVMFuncOp>(op->getParentOp()))
    return op.emitOpError("is inside structured control flow; expected it to "
                          "be lowered to branches");
  std::string text = op.getMsg().str();
  text.push_back('\0');
  std::string name =
      ("pgkp_message_" + Twine(entry) + "_" + Twine(numMessages++)).str();
  OpBuilder moduleBuilder = OpBuilder::atBlockEnd(module.getBody());
  auto type = LLVM::LLVMArrayType::get(moduleBuilder.getI8Type(), text.size());
  auto global = LLVM::GlobalOp::create(
      moduleBuilder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
      name, moduleBuilder.getStringAttr(text));

  Block *before = op->getBlock();
  Block *after = before->splitBlock(op->getNextNode());
  Block *failed = builder.createBlock(after);
  Value message = LLVM::AddressOfOp::create(builder, loc, global);
  call(loc, offsetof(pgkp_program_api_t, fail), {}, {context, message});
  cf::BranchOp::create(builder, loc, after);
  builder.setInsertionPointToEnd(before);
  cf::CondBranchOp::create(builder, loc, op.getArg(), after, failed);
  return success();
}

LogicalResult EntryLowering::lowerOp(Operation *op) {
  builder.setInsertionPoint(op);
  used = 0;
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](DispatchOp op) { return lowerDispatch(op); })
      .Case([&](PrepareOp op) { return lowerPrepare(op); })
      .Case([&](AwaitOp op) { return lowerAwait(op); })
      .Case([&](ObserveOp op) { return lowerObserve(op); })
      .Case([&](memref::AllocOp op) { return lowerAlloc(op); })
      .Case([&](memref::DeallocOp op) { return lowerDealloc(op); })
      .Case([&](memref::CopyOp op) { return lowerCopy(op); })
      .Case([&](cf::AssertOp op) { return lowerAssert(op); })
      .Case([&](memref::CollapseShapeOp op) {
        return lowerReshape(op, op.getSrc(), op.getResultType(), {});
      })
      .Case([&](memref::ExpandShapeOp op) {
        return lowerReshape(op, op.getSrc(), op.getResultType(),
                            op.getMixedOutputShape());
      })
      .Case([&](func::ReturnOp op) -> LogicalResult {
        LLVM::ReturnOp::create(builder, op.getLoc(), ValueRange());
        return success();
      })
      .Default([](Operation *) { return failure(); });
}

void EntryLowering::moveBody(func::FuncOp function, LLVM::LLVMFuncOp target) {
  Region &body = target.getBody();
  body.takeBody(function.getBody());
  Block &block = body.front();
  Location loc = function.getLoc();
  builder.setInsertionPointToStart(&block);
  context = block.getArgument(0);
  // The old arguments follow the two new ones until they are replaced.
  Value arguments = block.insertArgument(1u, pointer, loc);
  table = LLVM::LoadOp::create(builder, loc, pointer, context);
  buffer.sizeConstant =
      LLVM::ConstantOp::create(builder, loc, i64, builder.getI64IntegerAttr(0));
  buffer.memory =
      LLVM::AllocaOp::create(builder, loc, pointer, builder.getI8Type(),
                             buffer.sizeConstant, /*alignment=*/64);
  while (block.getNumArguments() > 2) {
    unsigned number = block.getNumArguments() - 3;
    BlockArgument argument = block.getArgument(number + 2);
    Value slot = offset(loc, arguments, number * sizeof(void *));
    Value header = LLVM::LoadOp::create(builder, loc, pointer, slot);
    Type type = argument.getType();
    Value descriptor =
        LLVM::LoadOp::create(builder, loc, converter.convertType(type), header);
    argument.replaceAllUsesWith(convert(loc, descriptor, type));
    block.eraseArgument(number + 2);
  }
}

/// A reshape between identity layouts.
bool isIdentityReshape(Operation *op) {
  if (!isa<memref::CollapseShapeOp, memref::ExpandShapeOp>(op))
    return false;
  auto isIdentity = [](Type type) {
    return cast<MemRefType>(type).getLayout().isIdentity();
  };
  return isIdentity(op->getOperand(0).getType()) &&
         isIdentity(op->getResult(0).getType());
}

LogicalResult EntryLowering::lower(func::FuncOp function,
                                   unsigned entryNumber) {
  entry = entryNumber;
  builder.setInsertionPoint(function);
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(builder.getContext()), {pointer, pointer});
  auto target = LLVM::LLVMFuncOp::create(
      builder, function.getLoc(),
      (PGKP_ENTRY_PREFIX + function.getName()).str(), type);
  moveBody(function, target);
  function.erase();

  SmallVector<Operation *> work;
  target.walk([&](Operation *op) {
    if (isa<DispatchOp, PrepareOp, AwaitOp, ObserveOp, memref::AllocOp,
            memref::DeallocOp, memref::CopyOp, cf::AssertOp, func::ReturnOp>(
            op) ||
        isIdentityReshape(op))
      work.push_back(op);
  });
  for (Operation *op : work) {
    if (failed(lowerOp(op)))
      return failure();
    op->erase();
  }
  buffer.sizeConstant.setValueAttr(builder.getI64IntegerAttr(
      llvm::alignTo(std::max<uint64_t>(buffer.size, 16), 16)));
  return success();
}

/// Why a function cannot be lowered, or an empty string.
std::string getObstacle(func::FuncOp function) {
  ArrayRef<Type> types = function.getArgumentTypes();
  if (types.empty() || !isa<LLVM::LLVMPointerType>(types.front()))
    return "has no context argument; expected 'pgkp-entry-destinations' to run "
           "first";
  for (auto [i, type] : llvm::enumerate(types.drop_front())) {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref || !memref.getLayout().isIdentity())
      return llvm::formatv("argument {0} has type '{1}'; expected a memref of "
                           "identity layout",
                           i + 1, type)
          .str();
  }
  if (function.getNumResults() != 0)
    return "has results; expected destinations";
  return "";
}

struct ConvertPGKPToLLVMPass
    : public mlir::pgkp::impl::ConvertPGKPToLLVMPassBase<
          ConvertPGKPToLLVMPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringMap<unsigned> kernels;
    SmallVector<KernelOp> kernelOps;
    for (KernelOp kernel : module.getOps<KernelOp>()) {
      kernels[kernel.getSymName()] = kernelOps.size();
      kernelOps.push_back(kernel);
    }
    LowerToLLVMOptions options(&getContext());
    LLVMTypeConverter converter(&getContext(), options);

    SmallVector<func::FuncOp> entries;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (isEntry(function)) {
        entries.push_back(function);
        continue;
      }
      WalkResult result = function.walk([&](Operation *op) {
        if (op->getDialect() != getContext().getLoadedDialect<PGKPDialect>())
          return WalkResult::advance();
        op->emitOpError("is in '")
            << function.getName()
            << "', which is no entry; expected it to be inlined into one";
        return WalkResult::interrupt();
      });
      if (result.wasInterrupted())
        return signalPassFailure();
    }
    if (entries.empty() && kernelOps.empty())
      return;
    for (auto [i, entry] : llvm::enumerate(entries)) {
      std::string obstacle = getObstacle(entry);
      if (!obstacle.empty()) {
        entry.emitError("entry '") << entry.getName() << "' " << obstacle;
        return signalPassFailure();
      }
      if (failed(EntryLowering(module, kernels, converter).lower(entry, i)))
        return signalPassFailure();
    }
    for (KernelOp kernel : kernelOps)
      kernel.erase();

    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    if (!module.lookupSymbol(PGKP_PROGRAM_ABI_SYMBOL))
      LLVM::GlobalOp::create(builder, module.getLoc(), builder.getI32Type(),
                             /*isConstant=*/true, LLVM::Linkage::External,
                             PGKP_PROGRAM_ABI_SYMBOL,
                             builder.getI32IntegerAttr(PGKP_PROGRAM_ABI));
  }
};

} // namespace
