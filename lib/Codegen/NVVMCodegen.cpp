// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "NVVMKernelEmitter.h"
#include "pgkp/Codegen/NVVM.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::pgkp;

/// Most blocks that a device takes in x.
static constexpr int64_t kMaxBlocks = 0x7fffffff;

/// PTX names have letters, digits, '_' and '$'.
static std::string deviceSymbol(StringRef kernel) {
  std::string symbol = "pgkp_";
  for (char c : kernel)
    symbol += llvm::isAlnum(c) ? c : '_';
  return symbol;
}

static FailureOr<NVVMKernelSignature>
signatureOf(KernelOp kernel, ArrayRef<FactAttr> facts, ConfigAttr config) {
  NVVMKernelSignature signature;
  if (kernel.isExternal())
    return emitError(kernel.getLoc(), "kernel '")
           << kernel.getSymName() << "' has no body to compile";
  signature.op = kernel;
  signature.body = &kernel.getBody().front();
  signature.numResults = kernel.getNumDestinations();
  signature.numExtents = kernel.getNumDims();
  signature.facts = facts;
  signature.config = config;
  for (FactAttr fact : facts)
    if (fact.getDim() >= signature.numExtents)
      return emitError(kernel.getLoc(), "fact on extent ")
             << fact.getDim() << " of kernel '" << kernel.getSymName()
             << "', which has " << signature.numExtents;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    Type element = getElementTypeOrSelf(type);
    unsigned width = element.isIndex()        ? 64
                     : element.isIntOrFloat() ? element.getIntOrFloatBitWidth()
                                              : 0;
    if (!llvm::is_contained({1u, 8u, 16u, 32u, 64u}, width) ||
        (isa<FloatType>(element) && !element.isF16() && !element.isBF16() &&
         !element.isF32() && !element.isF64()))
      return emitError(kernel.getLoc(), "argument #")
             << i << " of type " << type
             << " is not supported in a kernel for NVVM";
    SmallVector<int64_t> &dims = signature.dims.emplace_back();
    if (!isa<RankedTensorType>(type))
      continue;
    for (ExprAttr extent : kernel.getArgumentExtents(i)) {
      std::optional<unsigned> symbol = extent.getSymbolIndex();
      dims.push_back(symbol ? int64_t(*symbol)
                            : NVVMKernelSignature::kStaticDim);
    }
  }
  return signature;
}

/// Tiles of a product whose result has these sizes.
static ExprAttr tilesOf(MLIRContext *ctx, const NVVMMapping &mapping,
                        ArrayRef<ExprAttr> sizes) {
  SmallVector<ExprAttr> rows = {ExprAttr::getConstant(ctx, 1)}, batch = rows;
  for (auto [dim, size] : llvm::enumerate(sizes.drop_back()))
    (llvm::is_contained(mapping.productRows, dim) ? rows : batch)
        .push_back(size);
  batch.push_back(
      ExprAttr::getCeilDiv(ExprAttr::getProduct(ctx, rows),
                           ExprAttr::getConstant(ctx, mapping.tileRows)));
  batch.push_back(ExprAttr::getCeilDiv(
      sizes.back(), ExprAttr::getConstant(ctx, mapping.tileColumns)));
  return ExprAttr::getProduct(ctx, batch);
}

/// Blocks that give every row, or every element, a place of its own.
static ExprAttr gridOf(KernelOp kernel, const NVVMEmittedKernel &emitted) {
  MLIRContext *ctx = kernel.getContext();
  SmallVector<ExprAttr> needs = {ExprAttr::getConstant(ctx, 1)};
  for (const NVVMMapping &mapping : emitted.mappings) {
    SmallVector<ExprAttr> sizes = kernel.getArgumentExtents(
        kernel.getNumInputs() + mapping.results.front());
    auto constant = [&](int64_t value) {
      return ExprAttr::getConstant(ctx, value);
    };
    if (mapping.product) {
      needs.push_back(tilesOf(ctx, mapping, sizes));
      continue;
    }
    if (mapping.rowDims)
      sizes.truncate(mapping.rowDims);
    sizes.push_back(constant(1));
    ExprAttr blocks = ExprAttr::getProduct(ctx, sizes);
    if (!mapping.rowDims)
      blocks = ExprAttr::getCeilDiv(blocks,
                                    constant(emitted.threads * mapping.lanes));
    needs.push_back(blocks);
  }
  return ExprAttr::getMin(ctx, {ExprAttr::getMax(ctx, needs),
                                ExprAttr::getConstant(ctx, kMaxBlocks)});
}

//===----------------------------------------------------------------------===//
// The launch as an attribute
//===----------------------------------------------------------------------===//

static StringRef stringify(NVVMParam::Kind kind) {
  switch (kind) {
  case NVVMParam::Kind::Pointer:
    return "pointer";
  case NVVMParam::Kind::Scalar:
    return "scalar";
  case NVVMParam::Kind::Extent:
    return "extent";
  }
  llvm_unreachable("unknown kind of parameter");
}

DictionaryAttr mlir::pgkp::NVVMLaunch::toAttr(Builder &b) const {
  SmallVector<Attribute> gridAttrs(grid.begin(), grid.end());
  SmallVector<Attribute> paramAttrs;
  for (const NVVMParam &param : params)
    paramAttrs.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("kind", b.getStringAttr(stringify(param.kind))),
         b.getNamedAttr("index", b.getI64IntegerAttr(param.index))}));
  return b.getDictionaryAttr(
      {b.getNamedAttr("grid", b.getArrayAttr(gridAttrs)),
       b.getNamedAttr("block", b.getDenseI32ArrayAttr({int32_t(block[0]),
                                                       int32_t(block[1]),
                                                       int32_t(block[2])})),
       b.getNamedAttr("shared_bytes", b.getI64IntegerAttr(sharedBytes)),
       b.getNamedAttr("params", b.getArrayAttr(paramAttrs))});
}

FailureOr<NVVMLaunch> mlir::pgkp::NVVMLaunch::fromAttr(DictionaryAttr attr) {
  NVVMLaunch launch;
  auto grid = attr ? attr.getAs<ArrayAttr>("grid") : ArrayAttr();
  auto block = attr ? attr.getAs<DenseI32ArrayAttr>("block") : nullptr;
  auto shared = attr ? attr.getAs<IntegerAttr>("shared_bytes") : IntegerAttr();
  auto params = attr ? attr.getAs<ArrayAttr>("params") : ArrayAttr();
  if (!grid || grid.size() != 3 || !block || block.size() != 3 || !shared ||
      !params)
    return failure();
  for (Attribute expr : grid) {
    if (!isa<ExprAttr>(expr))
      return failure();
    launch.grid.push_back(cast<ExprAttr>(expr));
  }
  for (unsigned i = 0; i < 3; ++i)
    launch.block[i] = block[i];
  launch.sharedBytes = shared.getInt();
  for (Attribute entry : params) {
    auto dict = dyn_cast<DictionaryAttr>(entry);
    auto kind = dict ? dict.getAs<StringAttr>("kind") : StringAttr();
    auto index = dict ? dict.getAs<IntegerAttr>("index") : IntegerAttr();
    if (!kind || !index)
      return failure();
    NVVMParam param = {NVVMParam::Kind::Pointer, unsigned(index.getInt())};
    if (kind == stringify(NVVMParam::Kind::Scalar))
      param.kind = NVVMParam::Kind::Scalar;
    else if (kind == stringify(NVVMParam::Kind::Extent))
      param.kind = NVVMParam::Kind::Extent;
    else if (kind != stringify(NVVMParam::Kind::Pointer))
      return failure();
    launch.params.push_back(param);
  }
  return launch;
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

/// Replaces aggregates such as linalg.softmax by the operations they stand for.
static LogicalResult decomposeAggregates(KernelOp kernel) {
  SmallVector<linalg::AggregatedOpInterface> aggregates;
  kernel.walk([&](linalg::AggregatedOpInterface op) {
    if (!isa<linalg::LinalgOp>(op.getOperation()))
      aggregates.push_back(op);
  });
  for (linalg::AggregatedOpInterface op : aggregates) {
    OpBuilder b(op);
    FailureOr<SmallVector<Value>> parts = op.decomposeOperation(b);
    if (failed(parts))
      return emitError(op.getLoc(), "'")
             << op->getName() << "' cannot be decomposed for NVVM";
    op->replaceAllUsesWith(*parts);
    op->erase();
  }
  return success();
}

FailureOr<gpu::GPUModuleOp>
mlir::pgkp::emitNVVMModule(KernelOp original, ArrayRef<FactAttr> facts,
                           StringRef chip, StringRef features,
                           OpBuilder &builder, StringRef moduleName,
                           ConfigAttr config) {
  Location loc = original.getLoc();
  if (failed(checkNVVMTarget(loc, chip, features)))
    return failure();
  // Aggregates are decomposed in a copy; the kernel stays what it is.
  OwningOpRef<KernelOp> kernel = cast<KernelOp>(original->clone());
  if (failed(decomposeAggregates(*kernel)))
    return failure();
  FailureOr<NVVMKernelSignature> signature =
      signatureOf(*kernel, facts, config);
  if (failed(signature))
    return failure();

  OpBuilder::InsertionGuard guard(builder);
  auto target = NVVM::NVVMTargetAttr::get(builder.getContext(), /*optLevel=*/3,
                                          kNVVMTriple, chip, features);
  auto module = gpu::GPUModuleOp::create(
      builder, loc, moduleName, builder.getArrayAttr({Attribute(target)}));
  builder.setInsertionPointToStart(module.getBody());
  FailureOr<NVVMEmittedKernel> emitted = emitNVVMKernelFunction(
      *signature, builder, deviceSymbol(original.getSymName()));
  if (failed(emitted)) {
    module.erase();
    return failure();
  }

  NVVMLaunch launch;
  ExprAttr one = ExprAttr::getConstant(builder.getContext(), 1);
  launch.grid = {gridOf(original, *emitted), one, one};
  launch.block = {emitted->threads, 1, 1};
  launch.sharedBytes = emitted->sharedBytes;
  for (auto [i, type] : llvm::enumerate(original.getArgumentTypes()))
    launch.params.push_back({isa<RankedTensorType>(type)
                                 ? NVVMParam::Kind::Pointer
                                 : NVVMParam::Kind::Scalar,
                             unsigned(i)});
  for (unsigned i = 0; i < original.getNumDims(); ++i)
    launch.params.push_back({NVVMParam::Kind::Extent, i});
  module->setAttr(kNVVMLaunchAttr, launch.toAttr(builder));
  return module;
}

FailureOr<NVVMKernel> mlir::pgkp::compileKernelToPTX(KernelOp kernel,
                                                     ArrayRef<FactAttr> facts,
                                                     StringRef chip,
                                                     StringRef features,
                                                     ConfigAttr config) {
  OwningOpRef<ModuleOp> holder = ModuleOp::create(kernel.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(holder->getBody());
  FailureOr<gpu::GPUModuleOp> module = emitNVVMModule(
      kernel, facts, chip, features, builder, kernel.getSymName(), config);
  if (failed(module) || failed(lowerNVVMModule(*module)))
    return failure();
  NVVMKernel result;
  result.symbol = deviceSymbol(kernel.getSymName());
  FailureOr<NVVMLaunch> launch = NVVMLaunch::fromAttr(
      (*module)->getAttrOfType<DictionaryAttr>(kNVVMLaunchAttr));
  if (failed(launch))
    return failure();
  result.launch = std::move(*launch);
  FailureOr<std::string> ptx = translateNVVMModule(*module);
  if (failed(ptx))
    return failure();
  result.ptx = std::move(*ptx);
  return result;
}

void mlir::pgkp::registerNVVMCodegen(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect,
                  cf::ControlFlowDialect, gpu::GPUDialect, LLVM::LLVMDialect,
                  linalg::LinalgDialect, math::MathDialect, NVVM::NVVMDialect,
                  scf::SCFDialect, tensor::TensorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}
