// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- BufferizableOpInterfaceImpl.cpp - Bufferization of pgkp.dispatch ---===//

#include "pgkp/Dialect/Transforms/BufferizableOpInterfaceImpl.h"
#include "pgkp/Dialect/IR/PGKPOps.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::pgkp;

namespace {

/// Returns `buffer`, or a copy of it where its layout is not the identity:
/// kernels index their arguments by shape alone.
FailureOr<Value> getIdentityBuffer(OpBuilder &builder, Location loc,
                                   Value buffer,
                                   const BufferizationOptions &options) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  if (!type)
    return emitError(loc, "kernel operand bufferizes to ")
           << buffer.getType() << "; expected a ranked memref";
  if (type.getLayout().isIdentity())
    return buffer;
  auto identity =
      MemRefType::get(type.getShape(), type.getElementType(),
                      MemRefLayoutAttrInterface(), type.getMemorySpace());
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(memref::DimOp::create(builder, loc, buffer, dim));
  FailureOr<Value> copy = options.createAlloc(builder, loc, identity, sizes);
  if (failed(copy) || failed(options.createMemCpy(builder, loc, buffer, *copy)))
    return failure();
  return copy;
}

/// Inputs are read; destinations are read, written and aliased to the results.
struct DispatchOpBufferization
    : DstBufferizableOpInterfaceExternalModel<DispatchOpBufferization,
                                              DispatchOp> {
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto dispatch = cast<DispatchOp>(op);
    Location loc = op->getLoc();
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(op);

    // All buffers first: they may be built from ops before the dispatch.
    SmallVector<Value> inputs, outputs, results;
    for (Value input : dispatch.getInputs()) {
      if (!isa<TensorType>(input.getType())) {
        inputs.push_back(input);
        continue;
      }
      FailureOr<Value> buffer = getBuffer(rewriter, input, options, state);
      if (failed(buffer) ||
          failed(buffer = getIdentityBuffer(rewriter, loc, *buffer, options)))
        return failure();
      inputs.push_back(*buffer);
    }
    for (Value output : dispatch.getOutputs()) {
      FailureOr<Value> buffer = getBuffer(rewriter, output, options, state);
      if (failed(buffer))
        return failure();
      results.push_back(*buffer);
      FailureOr<Value> identity =
          getIdentityBuffer(rewriter, loc, *buffer, options);
      if (failed(identity))
        return failure();
      outputs.push_back(*identity);
    }

    auto bufferized =
        DispatchOp::create(rewriter, loc, dispatch.getKernelAttr(),
                           dispatch.getExtents(), inputs, outputs);
    bufferized->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    if (ArrayAttr attrs = dispatch.getArgAttrsAttr())
      bufferized.setArgAttrsAttr(attrs);
    for (auto [output, result] : llvm::zip(outputs, results))
      if (output != result &&
          failed(options.createMemCpy(rewriter, loc, output, result)))
        return failure();
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};

} // namespace

void mlir::pgkp::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *ctx, PGKPDialect *) {
    ctx->loadDialect<BufferizationDialect, memref::MemRefDialect>();
    DispatchOp::attachInterface<DispatchOpBufferization>(*ctx);
  });
}
