// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pgkp/Codegen/Specialize.h"

#include "pgkp/Codegen/Passes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir {
namespace pgkp {
#define GEN_PASS_DEF_SPECIALIZEPASS
#include "pgkp/Codegen/Passes.h.inc"
} // namespace pgkp
} // namespace mlir

using namespace mlir;
using namespace mlir::pgkp;

/// The argument's type with the dimensions that `values` fixes.
static RankedTensorType getStaticType(KernelOp kernel, unsigned argument,
                                      ArrayRef<std::optional<int64_t>> values) {
  auto type = cast<RankedTensorType>(kernel.getArgumentTypes()[argument]);
  SmallVector<int64_t> shape(type.getShape());
  for (auto [size, extent] :
       llvm::zip(shape, kernel.getArgumentExtents(argument)))
    if (auto symbol = extent.getSymbolIndex();
        ShapedType::isDynamic(size) && symbol && values[*symbol])
      size = *values[*symbol];
  return type.clone(shape);
}

/// Casts spread from the arguments through the body.
static LogicalResult propagate(KernelOp kernel) {
  MLIRContext *ctx = kernel.getContext();
  RewritePatternSet patterns(ctx);
  for (StringRef name : {"linalg", "tensor", "arith", "affine"})
    if (Dialect *dialect = ctx->getLoadedDialect(name))
      dialect->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName op : ctx->getRegisteredOperations())
    if (isa<affine::AffineDialect, arith::ArithDialect, linalg::LinalgDialect,
            tensor::TensorDialect>(op.getDialect()))
      op.getCanonicalizationPatterns(patterns, ctx);
  return applyPatternsGreedily(kernel, std::move(patterns));
}

LogicalResult mlir::pgkp::specializeKernel(KernelOp kernel,
                                           ArrayRef<FactAttr> facts) {
  for (FactAttr fact : facts)
    if (fact.getDim() >= kernel.getNumDims())
      return kernel.emitOpError("fact '")
             << fact << "' is about extent " << fact.getDim()
             << "; the kernel has " << kernel.getNumDims();
  auto specialized = ClassAttr::getChecked(
      [&] { return kernel.emitOpError(); }, kernel.getContext(), facts,
      /*probability=*/1.0, Provenance::User);
  if (!specialized)
    return failure();
  ArrayRef<FactAttr> canonical = specialized.getFacts();
  if (canonical.empty())
    return success();
  OpBuilder b(kernel.getContext());
  SmallVector<Attribute> attributes(canonical.begin(), canonical.end());
  kernel->setAttr(kFactsAttr, b.getArrayAttr(attributes));
  if (kernel.isExternal())
    return success();

  SmallVector<std::optional<int64_t>> values(kernel.getNumDims());
  SmallVector<int64_t> divisors(kernel.getNumDims(), 1);
  for (FactAttr fact : canonical) {
    if (fact.getKind() == FactKind::Equal)
      values[fact.getDim()] = fact.getValue();
    else if (fact.getKind() == FactKind::Divisible)
      divisors[fact.getDim()] = fact.getValue();
  }

  Block &body = kernel.getBody().front();
  Location loc = kernel.getLoc();
  b.setInsertionPointToStart(&body);
  for (auto [position, argument] : llvm::enumerate(body.getArguments())) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    SmallVector<OpOperand *> dims;
    for (OpOperand &use : argument.getUses())
      if (auto dim = dyn_cast<tensor::DimOp>(use.getOwner()))
        if (dim.getConstantIndex())
          dims.push_back(&use);
    SmallVector<ExprAttr> extents = kernel.getArgumentExtents(position);
    for (OpOperand *use : dims) {
      auto dim = cast<tensor::DimOp>(use->getOwner());
      auto symbol = extents[*dim.getConstantIndex()].getSymbolIndex();
      if (!symbol || values[*symbol] || divisors[*symbol] == 1)
        continue;
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointAfter(dim);
      Value divisor =
          arith::ConstantIndexOp::create(b, dim.getLoc(), divisors[*symbol]);
      Value quotient =
          arith::DivUIOp::create(b, dim.getLoc(), dim.getResult(), divisor);
      Value product = arith::MulIOp::create(b, dim.getLoc(), quotient, divisor);
      dim.getResult().replaceAllUsesExcept(product, quotient.getDefiningOp());
    }
    RankedTensorType fixed = getStaticType(kernel, position, values);
    if (fixed == type)
      continue;
    auto cast = tensor::CastOp::create(b, loc, fixed, argument);
    argument.replaceAllUsesExcept(cast, cast);
    // Operations keep their operand types until casts are folded into them.
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfter(cast);
    auto back = tensor::CastOp::create(b, loc, type, cast);
    cast.getResult().replaceAllUsesExcept(back, back);
  }
  return propagate(kernel);
}

namespace {
struct SpecializePass
    : public mlir::pgkp::impl::SpecializePassBase<SpecializePass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<FactAttr> parsed;
    for (StringRef text : llvm::split(facts, ';')) {
      text = text.trim();
      if (text.empty())
        continue;
      auto fact = dyn_cast_or_null<FactAttr>(
          parseAttribute(("#pgkp.fact<" + text + ">").str(), &getContext()));
      if (!fact) {
        getOperation().emitError("option 'facts' has '")
            << text << "'; expected a fact such as 'd0 == 1'";
        return signalPassFailure();
      }
      parsed.push_back(fact);
    }
    bool found = kernel.empty();
    for (auto op : getOperation().getOps<KernelOp>()) {
      if (!kernel.empty() && op.getSymName() != kernel)
        continue;
      found = true;
      if (failed(specializeKernel(op, parsed)))
        return signalPassFailure();
    }
    if (!found) {
      getOperation().emitError("has no kernel '") << kernel << "'";
      signalPassFailure();
    }
  }
};
} // namespace
