// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pgkp/Analysis/EntryLimits.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::pgkp;

/// Calls \p add with (end, extent) of each dimension of each slice.
static void walkSlices(Operation *root, RootAnalysis &roots,
                       function_ref<void(ExprAttr, ExprAttr)> add) {
  MLIRContext *context = root->getContext();
  root->walk([&](tensor::ExtractSliceOp slice) {
    for (auto [dim, offset, size, stride] :
         llvm::enumerate(slice.getMixedOffsets(), slice.getMixedSizes(),
                         slice.getMixedStrides())) {
      if (!isConstantIntValue(stride, 1))
        continue;
      ExprAttr begin = roots.getIndex(offset), extent = roots.getIndex(size);
      add(ExprAttr::getSum(context, {begin, extent}),
          roots.getExtent(slice.getSource(), dim));
    }
  });
}

SmallVector<EntryLimit>
mlir::pgkp::computeEntryLimits(FunctionOpInterface entry, RootAnalysis &roots) {
  SmallVector<EntryLimit> limits;
  auto add = [&](ExprAttr value, ExprAttr bound) {
    if (!value || !bound || value == bound || !roots.isKnownAtEntry(value) ||
        !roots.isKnownAtEntry(bound))
      return;
    if (value.getConstantValue() && bound.getConstantValue())
      return;
    EntryLimit limit{value, bound};
    if (!llvm::is_contained(limits, limit))
      limits.push_back(limit);
  };
  walkSlices(entry, roots, add);

  SymbolTableCollection tables;
  entry->walk([&](DispatchOp dispatch) {
    KernelOp kernel = dispatch.lookupKernel(tables);
    if (!kernel || kernel.isExternal())
      return;
    // The kernel's roots are its symbols, then what it reads from data; of
    // these, scalar arguments are known where the dispatch stands.
    RootAnalysis inner(kernel);
    SmallVector<std::pair<ExprAttr, ExprAttr>> found;
    walkSlices(kernel, inner, [&](ExprAttr value, ExprAttr bound) {
      found.emplace_back(value, bound);
    });
    if (found.empty())
      return;
    SmallVector<ExprAttr> outer;
    for (OpFoldResult extent :
         cast<PreparableOpInterface>(dispatch.getOperation()).getExtents())
      outer.push_back(roots.getIndex(extent));
    outer.resize(inner.getNumEntryRoots());
    for (const Root &root :
         ArrayRef(inner.getRoots()).drop_front(inner.getNumEntryRoots())) {
      auto argument = dyn_cast<BlockArgument>(root.source);
      bool scalar = argument && root.dim < 0 &&
                    argument.getOwner() == &kernel.getFunctionBody().front();
      outer.push_back(
          scalar ? roots.getIndex(
                       dispatch.getArgOperands()[argument.getArgNumber()])
                 : ExprAttr());
    }
    auto translate = [&](ExprAttr expr) -> ExprAttr {
      bool known = true;
      expr.walkSymbols([&](unsigned symbol) {
        known &= symbol < outer.size() && outer[symbol];
      });
      return known ? expr.replaceSymbols(outer) : ExprAttr();
    };
    for (auto [value, bound] : found)
      add(translate(value), translate(bound));
  });
  return limits;
}
