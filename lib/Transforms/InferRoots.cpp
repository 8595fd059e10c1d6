// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Writes root expressions onto dispatches.
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"
#include "pgkp/Analysis/RootAnalysis.h"
#include "pgkp/Transforms/Passes.h"

namespace mlir::pgkp {
#define GEN_PASS_DEF_INFERROOTSPASS
#include "pgkp/Transforms/Passes.h.inc"
} // namespace mlir::pgkp

using namespace mlir;
using namespace mlir::pgkp;

namespace {

struct InferRootsPass
    : public mlir::pgkp::impl::InferRootsPassBase<InferRootsPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<FunctionOpInterface>())
      if (isEntry(function))
        annotate(function);
  }

  void annotate(FunctionOpInterface function) {
    RootAnalysis roots(function);
    Builder builder(&getContext());
    function->walk([&](PreparableOpInterface op) {
      unsigned known = roots.getRoots().size();
      SmallVector<Attribute> exprs;
      for (OpFoldResult extent : op.getExtents())
        exprs.push_back(roots.getIndex(extent));
      op->setAttr(kExtentExprsAttr, builder.getArrayAttr(exprs));
      for (const Root &root : ArrayRef(roots.getRoots()).drop_front(known))
        remark::missed(op->getLoc(), remark::RemarkOpts::name("data root")
                                         .category(kRemarkCategory)
                                         .function(function.getName()))
            << remark::add("extent of '{0}' does not follow from the entry's "
                           "arguments; it becomes root '{1}'",
                           op.getKernelRef().getLeafReference().str(),
                           root.name);
    });

    SmallVector<StringRef> entryRoots, dataRoots;
    for (const Root &root : roots.getRoots())
      (root.isEntry ? entryRoots : dataRoots).push_back(root.name);
    function->setAttr(PGKPDialect::kRootsAttr,
                      builder.getStrArrayAttr(entryRoots));
    if (dataRoots.empty())
      function->removeAttr(kDataRootsAttr);
    else
      function->setAttr(kDataRootsAttr, builder.getStrArrayAttr(dataRoots));
    remark::analysis(function.getLoc(), remark::RemarkOpts::name("roots")
                                            .category(kRemarkCategory)
                                            .function(function.getName()))
        << remark::add("entry '{0}' has {1} roots and {2} data-dependent ones",
                       function.getName().str(), entryRoots.size(),
                       dataRoots.size());
  }
};

} // namespace
