// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file From vector loops to the LLVM dialect, and the exported entry.
#include "pgkp/Codegen/Host.h"

#include "HostExtents.h"

#include "pgkp-c/program.h"
#include "pgkp/Codegen/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mlir {
namespace pgkp {
#define GEN_PASS_DEF_HOSTENTRYPASS
#include "pgkp/Codegen/Passes.h.inc"
} // namespace pgkp
} // namespace mlir

using namespace mlir;
using namespace mlir::pgkp;

void mlir::pgkp::buildHostLowering(OpPassManager &pm, bool entry) {
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  ConvertVectorToLLVMPassOptions vectors;
  vectors.reassociateFPReductions = true;
  pm.addPass(createConvertVectorToLLVMPass(vectors));
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (entry)
    pm.addPass(createHostEntryPass());
}

namespace {
struct HostEntryPass
    : public mlir::pgkp::impl::HostEntryPassBase<HostEntryPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void HostEntryPass::runOnOperation() {
  ModuleOp module = getOperation();
  LLVM::LLVMFuncOp body;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (!function->hasAttr(host::kRanksAttr))
      continue;
    if (body) {
      function.emitOpError("is a second kernel; expected one in the module");
      return signalPassFailure();
    }
    body = function;
  }
  if (!body) {
    module.emitError("has no generated kernel to export");
    return signalPassFailure();
  }

  // The kernel may have been called like the entry.
  body.setSymName("pgkp_kernel_body");
  MLIRContext *ctx = &getContext();
  OpBuilder b(ctx);
  b.setInsertionPointAfter(body);
  Location loc = body.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(ctx);
  auto entry = LLVM::LLVMFuncOp::create(
      b, loc, PGKP_KERNEL_SYMBOL,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(ctx), {pointer}));
  Block *block = entry.addEntryBlock(b);
  b.setInsertionPointToStart(block);

  ArrayRef<Type> types = body.getFunctionType().getParams();
  SmallVector<Value> operands;
  auto load = [&](Type type, Value address, int32_t index, Type element) {
    Value at = LLVM::GEPOp::create(b, loc, pointer, element, address,
                                   ArrayRef<LLVM::GEPArg>{index});
    return LLVM::LoadOp::create(b, loc, type, at).getResult();
  };
  auto ranks = cast<DenseI64ArrayAttr>(body->getAttr(host::kRanksAttr));
  for (auto [position, rank] : llvm::enumerate(ranks.asArrayRef())) {
    Value header = load(pointer, block->getArgument(0), position, pointer);
    if (rank < 0) {
      Type type = types[operands.size()];
      operands.push_back(LLVM::LoadOp::create(b, loc, type, header));
      continue;
    }
    // {allocated, aligned, offset, sizes, strides}: words of 8 bytes each.
    for (int64_t word = 0; word < 3 + 2 * rank; ++word) {
      if (word < 2)
        // Arguments do not overlap; the caller's contract (program.h).
        body.setArgAttr(operands.size(),
                        LLVM::LLVMDialect::getNoAliasAttrName(),
                        b.getUnitAttr());
      Type type = types[operands.size()];
      operands.push_back(load(type, header, word, b.getI64Type()));
    }
  }
  // The workspace comes as a bare pointer; its size was checked by the caller.
  Value scratch = load(pointer, block->getArgument(0), ranks.size(), pointer);
  auto constant = [&](int64_t value) {
    return LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  };
  for (unsigned i = 0; i < 2; ++i)
    body.setArgAttr(operands.size() + i,
                    LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
  llvm::append_range(operands, ValueRange{scratch, scratch, constant(0),
                                          constant(INT64_MAX), constant(1)});
  LLVM::CallOp::create(b, loc, body, operands);
  LLVM::ReturnOp::create(b, loc, ValueRange());
  body.setLinkage(LLVM::Linkage::Internal);
  body.setNoInline(true);
  for (StringRef name :
       {host::kRanksAttr, host::kBoundsAttr, host::kWorkspaceAttr})
    body->removeAttr(name);
  for (unsigned i = 0, e = body.getNumArguments(); i != e; ++i)
    body.removeArgAttr(i, StringAttr::get(ctx, host::kExtentsAttr));
}
