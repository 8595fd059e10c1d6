// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Places observes and prepares.
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Remarks.h"
#include "pgkp/Analysis/RootAnalysis.h"
#include "pgkp/Transforms/Passes.h"

namespace mlir::pgkp {
#define GEN_PASS_DEF_INSERTPREPAREPASS
#include "pgkp/Transforms/Passes.h.inc"
} // namespace mlir::pgkp

using namespace mlir;
using namespace mlir::pgkp;

namespace {

/// True if op runs many times at once, where a prepare is not allowed.
bool isParallel(Operation *op) {
  return isa<scf::ParallelOp, scf::ForallOp>(op) ||
         op->getName().getDialectNamespace() == "gpu" ||
         op->getName().getStringRef() == "affine.parallel";
}

bool isBranch(Operation *op) { return isa<scf::IfOp, scf::IndexSwitchOp>(op); }

class EntryPreparer {
public:
  EntryPreparer(FunctionOpInterface function, double branchProbability)
      : function(function), branchProbability(branchProbability),
        dominance(function), start(&function.getFunctionBody().front()) {}

  void run(SymbolTableCollection &symbolTables);

private:
  void insertObserve();
  void insertPrepare(PreparableOpInterface op);
  bool hasPrepare(PreparableOpInterface op, ArrayRef<Value> extents);

  FunctionOpInterface function;
  double branchProbability;
  DominanceInfo dominance;
  Block *start;
  /// Nothing is placed before it.
  Operation *observe = nullptr;
  llvm::DenseMap<Attribute, SmallVector<PrepareOp>> existing;
};

void EntryPreparer::insertObserve() {
  function->walk([&](ObserveOp op) { observe = op; });
  if (observe)
    return;
  RootAnalysis roots(function);
  OpBuilder builder = OpBuilder::atBlockBegin(start);
  Location loc = function.getLoc();
  SmallVector<Value> values;
  SmallVector<StringRef> names;
  for (const Root &root :
       ArrayRef(roots.getRoots()).take_front(roots.getNumEntryRoots())) {
    values.push_back(createRootRead(builder, loc, root));
    names.push_back(root.name);
  }
  function->setAttr(PGKPDialect::kRootsAttr, builder.getStrArrayAttr(names));
  observe = ObserveOp::create(builder, loc, function.getName(), values);
}

bool EntryPreparer::hasPrepare(PreparableOpInterface op,
                               ArrayRef<Value> extents) {
  return llvm::any_of(existing.lookup(op.getKernelRef()), [&](PrepareOp other) {
    return llvm::equal(other.getExtents(), extents) &&
           dominance.properlyDominates(other.getOperation(), op.getOperation());
  });
}

void EntryPreparer::insertPrepare(PreparableOpInterface op) {
  auto options = remark::RemarkOpts::name("prepare")
                     .category(kRemarkCategory)
                     .function(function.getName());
  std::string kernel = op.getKernelRef().getLeafReference().str();

  // The last definition among the extents; constants are free to move.
  Operation *last = observe;
  SmallVector<OpFoldResult> extents = op.getExtents();
  SmallVector<Value> known;
  for (OpFoldResult extent : extents) {
    auto value = dyn_cast<Value>(extent);
    if (!value)
      continue;
    known.push_back(value);
    if (Operation *def = value.getDefiningOp()) {
      if (dominance.properlyDominates(last, def))
        last = def;
    } else if (value.getParentBlock() != start &&
               last->getBlock() != value.getParentBlock()) {
      // An argument of an inner block: as good as its first operation.
      Operation *first = &value.getParentBlock()->front();
      if (dominance.properlyDominates(last, first))
        last = first;
    }
  }
  if (known.size() == extents.size() && hasPrepare(op, known))
    return;

  OpBuilder builder(op.getContext());
  bool before = false;
  for (OpFoldResult extent : extents)
    if (auto value = dyn_cast<Value>(extent))
      before |= !value.getDefiningOp() && value.getParentBlock() != start &&
                last == &value.getParentBlock()->front();
  if (before)
    builder.setInsertionPoint(last);
  else
    builder.setInsertionPointAfter(last);
  // Later prepares follow earlier ones at the same place.
  while (builder.getInsertionPoint() != builder.getInsertionBlock()->end() &&
         isa<PrepareOp>(*builder.getInsertionPoint()))
    builder.setInsertionPointAfter(&*builder.getInsertionPoint());

  for (Operation *parent = builder.getInsertionBlock()->getParentOp();
       parent && parent != function; parent = parent->getParentOp())
    if (isParallel(parent)) {
      remark::missed(op->getLoc(), options)
          << remark::add("no prepare of '{0}': its extents are known only "
                         "inside a parallel loop",
                         kernel);
      return;
    }
  double probability = 1.0;
  unsigned hoisted = 0;
  for (Block *block = op->getBlock(); block != builder.getInsertionBlock();) {
    Operation *parent = block->getParentOp();
    if (parent == function)
      break;
    if (isBranch(parent))
      probability *= branchProbability;
    ++hoisted;
    block = parent->getBlock();
  }
  SmallVector<Value> values =
      getValueOrCreateConstantIndexOp(builder, op->getLoc(), extents);
  Operation *prepare =
      op.buildPrepare(builder, op->getLoc(), values, probability, /*slack=*/0.0,
                      Stage::Load, Provenance::Structure);
  if (auto known = dyn_cast_or_null<PrepareOp>(prepare))
    existing[known.getKernelAttr()].push_back(known);
  remark::passed(op->getLoc(), options)
      << remark::add("prepare of '{0}' with probability {1:f2}, hoisted out of "
                     "{2} regions",
                     kernel, probability, hoisted);
}

void EntryPreparer::run(SymbolTableCollection &symbolTables) {
  SmallVector<PreparableOpInterface> dynamic;
  function->walk([&](PreparableOpInterface op) {
    if (op.getExtents().empty()) {
      remark::missed(op->getLoc(), remark::RemarkOpts::name("prepare")
                                       .category(kRemarkCategory)
                                       .function(function.getName()))
          << remark::add("no prepare of '{0}': it has no dynamic extents",
                         op.getKernelRef().getLeafReference().str());
      return;
    }
    dynamic.push_back(op);
  });
  if (dynamic.empty())
    return;
  insertObserve();
  function->walk([&](PrepareOp prepare) {
    existing[prepare.getKernelAttr()].push_back(prepare);
  });
  for (PreparableOpInterface op : dynamic)
    insertPrepare(op);
}

struct InsertPreparePass
    : public mlir::pgkp::impl::InsertPreparePassBase<InsertPreparePass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!(branchProbability > 0.0 && branchProbability <= 1.0)) {
      module.emitError("option 'branch-probability' is ")
          << branchProbability.getValue() << "; expected a number in (0, 1]";
      return signalPassFailure();
    }
    SymbolTableCollection symbolTables;
    for (auto function : module.getOps<FunctionOpInterface>())
      if (isEntry(function))
        EntryPreparer(function, branchProbability).run(symbolTables);
  }
};

} // namespace
