// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Sizes, scalars and elements of tensors.
#include "NVVMEmitter.h"

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
    if (Value v = loadLane(arg, index))
      return {v};
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
