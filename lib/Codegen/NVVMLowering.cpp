// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Lowers an emitted device function to the LLVM dialect. Mathematical
/// functions become polynomials and instructions, never calls of a library.
#include "pgkp/Codegen/NVVM.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace mlir::pgkp;

/// Operations that the NVPTX back end selects without a library call.
static bool hasInstruction(Operation *op) {
  bool narrow = llvm::all_of(op->getOperandTypes(), [](Type type) {
    return type.isF32() || type.isF16() || type.isBF16();
  });
  if (isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
          math::CountLeadingZerosOp, math::CountTrailingZerosOp, math::CtPopOp,
          math::FloorOp, math::FmaOp, math::IsFiniteOp, math::IsInfOp,
          math::IsNaNOp, math::IsNormalOp, math::RoundEvenOp, math::RoundOp,
          math::SqrtOp, math::TruncOp>(op))
    return true;
  return narrow && isa<math::Exp2Op>(op);
}

static LogicalResult expandMath(gpu::GPUModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  affine::populateAffineExpandIndexOpsPatterns(patterns);
  populateAffineToStdConversionPatterns(patterns);
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  auto approximated = [](StringRef name) {
    return name != math::SqrtOp::getOperationName();
  };
  populateMathF32ExpansionPatterns(patterns, approximated);
  populateMathPolynomialApproximationPatterns(patterns, approximated);
  math::populateExpansionPatterns(patterns,
                                  {"cosh", "powf", "rsqrt", "sinh", "tan"});
  if (failed(applyPatternsGreedily(module, std::move(patterns))))
    return emitError(module.getLoc(),
                     "expansion of mathematical functions failed");
  WalkResult result = module.walk([](Operation *op) {
    if (!isa<math::MathDialect>(op->getDialect()) || hasInstruction(op))
      return WalkResult::advance();
    emitError(op->getLoc(), "'")
        << op->getName() << "' on " << op->getResult(0).getType()
        << " has no form without a library for NVVM";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

static LogicalResult lowerControlFlow(gpu::GPUModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  populateSCFToControlFlowConversionPatterns(patterns);
  ConversionTarget target(*module.getContext());
  target.addIllegalDialect<scf::SCFDialect>();
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  return applyPartialConversion(module, target, std::move(patterns));
}

static LogicalResult lowerToLLVM(gpu::GPUModuleOp module) {
  MLIRContext *ctx = module.getContext();
  LowerToLLVMOptions options(ctx);
  options.overrideIndexBitwidth(64);
  LLVMTypeConverter converter(ctx, options);
  RewritePatternSet patterns(ctx);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*ctx);
  target.addLegalDialect<NVVM::NVVMDialect>();
  target.addLegalOp<gpu::GPUModuleOp>();
  if (failed(applyPartialConversion(module, target, std::move(patterns))))
    return failure();
  SmallVector<UnrealizedConversionCastOp> casts;
  module.walk([&](UnrealizedConversionCastOp op) { casts.push_back(op); });
  reconcileUnrealizedCasts(casts);
  WalkResult result = module.walk([&](Operation *op) {
    if (op == module.getOperation() ||
        isa<LLVM::LLVMDialect, NVVM::NVVMDialect>(op->getDialect()))
      return WalkResult::advance();
    emitError(op->getLoc(), "'")
        << op->getName() << "' is not supported in a kernel for NVVM";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult mlir::pgkp::lowerNVVMModule(gpu::GPUModuleOp module) {
  return failure(failed(expandMath(module)) ||
                 failed(lowerControlFlow(module)) ||
                 failed(lowerToLLVM(module)));
}
