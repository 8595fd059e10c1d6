// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Merges, drops and dates prepares.
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Remarks.h"
#include "pgkp/Analysis/RootAnalysis.h"
#include "pgkp/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::pgkp {
#define GEN_PASS_DEF_PLANPREPAREPASS
#include "pgkp/Transforms/Passes.h.inc"
} // namespace mlir::pgkp

using namespace mlir;
using namespace mlir::pgkp;

namespace {

struct PlanPreparePass
    : public mlir::pgkp::impl::PlanPreparePassBase<PlanPreparePass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(checkOptions()))
      return signalPassFailure();
    SymbolTableCollection symbolTables;
    for (auto function : getOperation().getOps<FunctionOpInterface>())
      if (isEntry(function))
        plan(function, symbolTables);
  }

private:
  LogicalResult checkOptions() {
    ModuleOp module = getOperation();
    if (!(minProbability >= 0.0 && minProbability <= 1.0))
      return module.emitError("option 'min-probability' is ")
             << minProbability.getValue() << "; expected a number in [0, 1]";
    if (!(flopsPerSecond > 0.0))
      return module.emitError("option 'flops-per-second' is ")
             << flopsPerSecond.getValue()
             << "; expected a number greater than 0";
    if (!(bytesPerSecond > 0.0))
      return module.emitError("option 'bytes-per-second' is ")
             << bytesPerSecond.getValue()
             << "; expected a number greater than 0";
    if (typicalExtent < 1)
      return module.emitError("option 'typical-extent' is ")
             << typicalExtent.getValue() << "; expected at least 1";
    return success();
  }

  remark::RemarkOpts getRemark(FunctionOpInterface function) {
    return remark::RemarkOpts::name("plan")
        .category(kRemarkCategory)
        .function(function.getName());
  }

  /// Estimated seconds of one dispatch: the slower of arithmetic and memory.
  double estimate(PreparableOpInterface op, RootAnalysis &roots,
                  SymbolTableCollection &symbolTables) {
    CostAttr cost = op.getCostHint(symbolTables);
    if (!cost)
      return 0.0;
    SmallVector<int64_t> rootValues(roots.getRoots().size(), typicalExtent);
    SmallVector<int64_t> extents;
    for (OpFoldResult extent : op.getExtents()) {
      ExprAttr expr = roots.getIndex(extent);
      rootValues.resize(roots.getRoots().size(), typicalExtent);
      extents.push_back(expr.evaluate(rootValues).value_or(typicalExtent));
    }
    double flops = cost.getFlops().evaluate(extents).value_or(0);
    double bytes = cost.getBytes().evaluate(extents).value_or(0);
    return std::max(flops / flopsPerSecond, bytes / bytesPerSecond);
  }

  void plan(FunctionOpInterface function, SymbolTableCollection &symbolTables);
};

void PlanPreparePass::plan(FunctionOpInterface function,
                           SymbolTableCollection &symbolTables) {
  RootAnalysis roots(function);
  DominanceInfo dominance(function);
  Builder builder(&getContext());

  // Keyed by kernel and extents as expressions, in program order.
  using Key = std::pair<Attribute, Attribute>;
  llvm::MapVector<Key, SmallVector<PrepareOp>> prepares;
  llvm::MapVector<Key, SmallVector<Operation *>> uses;
  // Time at which each operation starts, if nothing is prepared.
  llvm::DenseMap<Operation *, double> starts;
  double now = 0.0;
  auto getKey = [&](Attribute kernel, auto extents) {
    SmallVector<Attribute> exprs;
    for (auto extent : extents)
      exprs.push_back(roots.getIndex(extent));
    return Key(kernel, builder.getArrayAttr(exprs));
  };
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    starts[op] = now;
    if (auto prepare = dyn_cast<PrepareOp>(op)) {
      prepares[getKey(prepare.getKernelAttr(), prepare.getExtents())].push_back(
          prepare);
    } else if (auto dispatch = dyn_cast<PreparableOpInterface>(op)) {
      uses[getKey(dispatch.getKernelRef(), dispatch.getExtents())].push_back(
          op);
      now += estimate(dispatch, roots, symbolTables);
    }
  });

  for (auto &[key, group] : prepares) {
    PrepareOp first = group.front();
    std::string kernel = first.getKernel().str();
    // Merge into the first one that dominates.
    double miss = 1.0 - first.getProbability().convertToDouble();
    unsigned merged = 0;
    for (PrepareOp other : ArrayRef(group).drop_front()) {
      if (!dominance.properlyDominates(first.getOperation(),
                                       other.getOperation()))
        continue;
      miss *= 1.0 - other.getProbability().convertToDouble();
      ++merged;
      other.erase();
    }
    double probability = 1.0 - miss;
    if (merged != 0) {
      first.setProbabilityAttr(builder.getF64FloatAttr(probability));
      remark::passed(first.getLoc(), getRemark(function))
          << remark::add("merged {0} further prepares of '{1}': probability "
                         "{2:f2}",
                         merged, kernel, probability);
    }
    if (probability < minProbability) {
      remark::passed(first.getLoc(), getRemark(function)) << remark::add(
          "dropped prepare of '{0}': probability {1:f4} is below "
          "{2:f4}",
          kernel, probability, double(minProbability));
      first.erase();
      continue;
    }
    Operation *use = nullptr;
    for (Operation *candidate : uses.lookup(key))
      if (!use && dominance.properlyDominates(first.getOperation(), candidate))
        use = candidate;
    if (!use) {
      remark::passed(first.getLoc(), getRemark(function)) << remark::add(
          "dropped prepare of '{0}': no dispatch follows", kernel);
      first.erase();
      continue;
    }
    double slack = starts.lookup(use) - starts.lookup(first);
    first.setSlackAttr(builder.getF64FloatAttr(slack));
    remark::analysis(first.getLoc(), getRemark(function))
        << remark::add("prepare of '{0}': probability {1:f2}, slack {2:f3} us",
                       kernel, probability, slack * 1e6);
  }
}

} // namespace
