// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pgkp/Codegen/Host.h"

#include "HostExtents.h"
#include "HostLoops.h"
#include "HostMath.h"
#include "HostTensors.h"

#include "pgkp/Codegen/Families.h"
#include "pgkp/Codegen/Passes.h"
#include "pgkp/Codegen/Specialize.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

namespace mlir {
namespace pgkp {
#define GEN_PASS_DEF_CODEGENHOSTPASS
#include "pgkp/Codegen/Passes.h.inc"
} // namespace pgkp
} // namespace mlir

using namespace mlir;
using namespace mlir::pgkp;
using namespace mlir::pgkp::host;

/// The workspace's alignment and that of every temporary in it.
static constexpr int64_t kAlignment = 64;

static NestOptions readConfig(ConfigAttr config, HostTarget target) {
  NestOptions options;
  options.vectorBits = target.vectorBits;
  if (!config)
    return options;
  if (auto script = config.getString("script")) {
    options.script = script->str();
    options.vectorize = *script != "scalar";
  }
  // Out of range values would only blow the code up; they mean "by the rules".
  auto get = [&](StringRef name, int64_t most) {
    int64_t value = config.getInt(name).value_or(0);
    return value < 0 || value > most ? 0 : value;
  };
  auto getLanes = [&](StringRef name) {
    int64_t value = get(name, 64);
    return value > 1 && llvm::isPowerOf2_64(value) ? value : 0;
  };
  options.rows = get("mr", 16);
  options.cols = get("nc", 16);
  options.lanes = getLanes("nr");
  options.rowLanes = getLanes("v");
  options.depthBlock = get("kc", 64);
  options.unroll = get("unroll", 16);
  return options;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

static Value getBase(Value memref) {
  while (Operation *def = memref.getDefiningOp()) {
    auto view = dyn_cast<ViewLikeOpInterface>(def);
    if (!view)
      break;
    memref = view.getViewSource();
  }
  return memref;
}

/// The fill that gives the (single) result its start values, if nothing between
/// it and the operation touches that memory.
static linalg::FillOp findFill(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() == 0 || op.getNumDpsInits() != 1)
    return {};
  Value target = op.getDpsInits().front();
  Value base = getBase(target);
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode()) {
    auto fill = dyn_cast<linalg::FillOp>(before);
    if (fill && fill.getOutputs().front() == target)
      return fill;
    bool touches = false;
    before->walk([&](Operation *nested) {
      if (isa<ViewLikeOpInterface>(nested) || isa<memref::DimOp>(nested))
        return;
      for (Value operand : nested->getOperands())
        touches |=
            isa<MemRefType>(operand.getType()) && getBase(operand) == base;
    });
    if (touches)
      return {};
  }
  return {};
}

/// The size of one of the operation's loops.
static Value createLoopSize(OpBuilder &b, linalg::LinalgOp op, unsigned loop) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [position, result] : llvm::enumerate(map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(result);
          dim && dim.getPosition() == loop)
        return memref::DimOp::create(b, op.getLoc(), operand.get(), position);
  }
  return {};
}

namespace {
/// How the loops of one kernel are made.
struct Scripts {
  NestOptions main;
  /// Used instead where an operation has at most `mostRows` rows.
  std::optional<NestOptions> few;
  int64_t mostRows = 0;
};
} // namespace

/// A nest whose fill, if it has one, is part of it where the plan allows that.
/// \returns the fill that became superfluous.
static linalg::FillOp emitFilledNest(RewriterBase &b, linalg::LinalgOp op,
                                     linalg::FillOp fill, Extents &extents,
                                     const NestPlan &plan) {
  Value start;
  if (fill && plan.depthBlock == 0)
    start = fill.getInputs().front();
  emitNest(b, op, extents, plan, start);
  return start ? fill : linalg::FillOp();
}

/// One nest for few rows, one for many; which of them, the program finds out.
static bool emitByRows(RewriterBase &b, linalg::LinalgOp op,
                       linalg::FillOp fill, Extents &extents,
                       const NestPlan &plan, const Scripts &scripts) {
  if (!scripts.few || !plan.rowDim)
    return false;
  NestPlan few = planNest(op, extents, *scripts.few);
  b.setInsertionPoint(op);
  Value rows = createLoopSize(b, op, *plan.rowDim);
  if (!rows)
    return false;
  Location loc = op.getLoc();
  Value limit = arith::ConstantIndexOp::create(b, loc, scripts.mostRows);
  Value isFew =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, rows, limit);
  auto branch = scf::IfOp::create(b, loc, isFew, /*withElseRegion=*/true);
  for (bool taken : {true, false}) {
    b.setInsertionPoint(
        (taken ? branch.thenBlock() : branch.elseBlock())->getTerminator());
    linalg::FillOp own;
    if (fill)
      own = cast<linalg::FillOp>(b.clone(*fill));
    auto copy = cast<linalg::LinalgOp>(b.clone(*op));
    if (linalg::FillOp merged =
            emitFilledNest(b, copy, own, extents, taken ? few : plan))
      b.eraseOp(merged);
    else if (own)
      emitNest(b, cast<linalg::LinalgOp>(own.getOperation()), extents,
               planNest(own, extents, scripts.main), Value());
  }
  b.eraseOp(op);
  return true;
}

static void lowerToLoops(func::FuncOp function, const Scripts &scripts) {
  IRRewriter b(function.getContext());
  SmallVector<memref::CopyOp> copies;
  function.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
  for (memref::CopyOp copy : copies) {
    b.setInsertionPoint(copy);
    linalg::makeMemRefCopyOp(b, copy.getLoc(), copy.getSource(),
                             copy.getTarget());
    b.eraseOp(copy);
  }
  SmallVector<memref::DeallocOp> deallocs;
  function.walk(
      [&](memref::DeallocOp dealloc) { deallocs.push_back(dealloc); });
  for (memref::DeallocOp dealloc : deallocs)
    b.eraseOp(dealloc);

  Extents extents(function);
  SmallVector<linalg::LinalgOp> ops;
  function.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
  // Backwards: a fill is still there when the operation that starts from it is
  // reached.
  llvm::SmallPtrSet<Operation *, 8> merged;
  for (linalg::LinalgOp op : llvm::reverse(ops)) {
    if (merged.contains(op)) {
      b.eraseOp(op);
      continue;
    }
    NestPlan plan = planNest(op, extents, scripts.main);
    linalg::FillOp fill = findFill(op);
    if (emitByRows(b, op, fill, extents, plan, scripts)) {
      if (fill)
        merged.insert(fill);
    } else if (linalg::FillOp used =
                   emitFilledNest(b, op, fill, extents, plan)) {
      merged.insert(used);
    }
  }
}

//===----------------------------------------------------------------------===//
// Workspace
//===----------------------------------------------------------------------===//

static LogicalResult moveToWorkspace(func::FuncOp function) {
  MLIRContext *ctx = function.getContext();
  IRRewriter b(ctx);
  Extents extents(function);
  SmallVector<memref::AllocOp> allocs;
  function.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });

  // The extents as values: the first argument dimension that is that symbol.
  b.setInsertionPointToStart(&function.getBody().front());
  SmallVector<Value> symbols(extents.getNumSymbols());
  for (unsigned i = 0, e = function.getNumArguments(); i != e; ++i)
    if (auto map = function.getArgAttrOfType<AffineMapAttr>(i, kExtentsAttr))
      for (auto [dim, size] : llvm::enumerate(map.getValue().getResults()))
        if (auto symbol = dyn_cast<AffineSymbolExpr>(size))
          if (Value &value = symbols[symbol.getPosition()]; !value)
            value = memref::DimOp::create(b, function.getLoc(),
                                          function.getArgument(i), dim);
  for (Value &value : symbols)
    if (!value) // unused by any argument; only a size of 0 or 1 depends on it
      value = arith::ConstantIndexOp::create(b, function.getLoc(), 0);

  Value workspace = function.getArguments().back();
  AffineExpr offset = getAffineConstantExpr(0, ctx);
  for (memref::AllocOp alloc : allocs) {
    MemRefType type = alloc.getType();
    if (!type.getElementType().isIntOrIndexOrFloat())
      return alloc.emitOpError("of type ")
             << type << " has elements without a size on the host";
    AffineExpr bytes = getAffineConstantExpr(
        llvm::divideCeil(type.getElementType().isIndex()
                             ? 64
                             : type.getElementTypeBitWidth(),
                         8),
        ctx);
    unsigned dynamic = 0;
    for (int64_t size : type.getShape()) {
      AffineExpr factor =
          ShapedType::isDynamic(size)
              ? extents.boundOf(alloc.getDynamicSizes()[dynamic++])
              : getAffineConstantExpr(size, ctx);
      if (!factor)
        return alloc.emitOpError(
            "has a size that does not follow from the kernel's extents");
      bytes = bytes * factor;
    }
    AffineMap map = AffineMap::get(0, symbols.size(), offset);
    Value position =
        affine::AffineApplyOp::create(b, alloc.getLoc(), map, symbols);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(alloc);
      auto contiguous = MemRefType::get(type.getShape(), type.getElementType());
      b.replaceOpWithNewOp<memref::ViewOp>(alloc, contiguous, workspace,
                                           position, alloc.getDynamicSizes());
    }
    offset = offset + bytes.ceilDiv(kAlignment) * kAlignment;
  }
  function->setAttr(
      kWorkspaceAttr,
      AffineMapAttr::get(AffineMap::get(
          0, symbols.size(), simplifyAffineExpr(offset, 0, symbols.size()))));
  return success();
}

ExprAttr mlir::pgkp::getWorkspace(func::FuncOp function) {
  auto map = function->getAttrOfType<AffineMapAttr>(kWorkspaceAttr);
  if (!map)
    return ExprAttr::getConstant(function.getContext(), 0);
  SmallVector<ExprAttr> symbols;
  for (unsigned i = 0; i < map.getValue().getNumSymbols(); ++i)
    symbols.push_back(ExprAttr::getSymbol(function.getContext(), i));
  return ExprAttr::getFromAffineExpr(map.getValue().getResult(0), {}, symbols);
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// Runs function passes on one function, whatever manager we are under.
static LogicalResult runPasses(func::FuncOp function,
                               function_ref<void(OpPassManager &)> build) {
  PassManager pm(function.getContext(), func::FuncOp::getOperationName());
  pm.enableVerifier(false);
  build(pm);
  return pm.run(function);
}

static LogicalResult generate(func::FuncOp function, const Scripts &scripts) {
  if (failed(simplifyTensors(function)))
    return failure();
  if (scripts.main.vectorize)
    fuseRows(function);
  if (failed(runPasses(function, [&](OpPassManager &pm) {
        pm.addPass(createCSEPass());
        pm.addPass(createCanonicalizerPass());
        pm.addPass(createCSEPass());
      })))
    return failure();
  separateFills(function);
  if (failed(runPasses(function, [](OpPassManager &pm) {
        pm.addPass(bufferization::createEmptyTensorEliminationPass());
      })))
    return failure();
  bufferization::OneShotBufferizationOptions bufferize;
  bufferization::BufferizationState state;
  if (failed(bufferization::runOneShotBufferize(function, bufferize, state)))
    return failure();
  if (failed(runPasses(function, [&](OpPassManager &pm) {
        // Self-copies fold only once their two subviews are one value.
        pm.addPass(createCSEPass());
        pm.addPass(createCanonicalizerPass());
        pm.addPass(createCSEPass());
      })))
    return failure();
  lowerToLoops(function, scripts);
  if (failed(moveToWorkspace(function)) || failed(approximateMath(function)))
    return failure();
  return runPasses(function, [&](OpPassManager &pm) {
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createCSEPass());
    pm.addPass(createLoopInvariantCodeMotionPass());
  });
}

FailureOr<func::FuncOp> mlir::pgkp::generateHostKernel(KernelOp kernel,
                                                       ConfigAttr config,
                                                       HostTarget target) {
  if (kernel.isExternal())
    return kernel.emitOpError("has no body to generate code from");
  FewRows few;
  if (!config || config.getString("script") == "auto") {
    SmallVector<FactAttr> facts;
    if (auto known = kernel->getAttrOfType<ArrayAttr>(kFactsAttr))
      llvm::append_range(facts, known.getAsRange<FactAttr>());
    config = chooseConfig(kernel, facts);
    few = chooseConfigForFewRows(kernel, facts);
  }
  func::FuncOp function = createHostFunction(kernel);
  if (!function)
    return failure();
  Scripts scripts;
  scripts.main = readConfig(config, target);
  if (few.config) {
    scripts.few = readConfig(few.config, target);
    scripts.mostRows = few.mostRows;
  }
  if (failed(generate(function, scripts))) {
    function.erase();
    return failure();
  }
  kernel.erase();
  return function;
}

namespace {
struct CodegenHostPass
    : public mlir::pgkp::impl::CodegenHostPassBase<CodegenHostPass> {
  using Base::Base;

  void runOnOperation() override {
    ConfigAttr chosen;
    if (!config.empty()) {
      // The option parser takes outer braces away.
      StringRef text = config;
      if (text.consume_front("{"))
        text.consume_back("}");
      auto values = dyn_cast_or_null<DictionaryAttr>(
          parseAttribute(("{" + text + "}").str(), &getContext()));
      if (!values) {
        getOperation().emitError("option 'config' is '")
            << config << "'; expected a dictionary";
        return signalPassFailure();
      }
      chosen = ConfigAttr::getChecked(
          [&] { return getOperation().emitError(); }, &getContext(), values);
      if (!chosen)
        return signalPassFailure();
    }
    HostTarget target;
    target.vectorBits = vectorBits;
    if (!llvm::is_contained({128u, 256u, 512u}, target.vectorBits)) {
      getOperation().emitError("option 'vector-bits' is ")
          << target.vectorBits << "; expected 128, 256 or 512";
      return signalPassFailure();
    }
    SmallVector<KernelOp> kernels(getOperation().getOps<KernelOp>());
    for (KernelOp kernel : kernels) {
      ConfigAttr own = chosen;
      if (auto space = kernel.getConfigSpaceAttr();
          !own && space && !space.empty())
        own = cast<ConfigAttr>(space[0]);
      if (failed(generateHostKernel(kernel, own, target)))
        return signalPassFailure();
    }
  }
};
} // namespace
