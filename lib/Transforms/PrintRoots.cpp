// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Prints what root analysis found.
#include "mlir/IR/BuiltinOps.h"
#include "pgkp/Analysis/RootAnalysis.h"
#include "pgkp/Transforms/Passes.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::pgkp {
#define GEN_PASS_DEF_PRINTROOTSPASS
#include "pgkp/Transforms/Passes.h.inc"
} // namespace mlir::pgkp

using namespace mlir;
using namespace mlir::pgkp;

namespace {

struct PrintRootsPass
    : public mlir::pgkp::impl::PrintRootsPassBase<PrintRootsPass> {
  using Base::Base;

  void runOnOperation() override {
    llvm::raw_ostream &os = llvm::outs();
    for (auto function : getOperation().getOps<FunctionOpInterface>()) {
      if (!isEntry(function))
        continue;
      RootAnalysis roots(function);
      // Queries first: they may add data-dependent roots.
      std::string sites;
      llvm::raw_string_ostream siteStream(sites);
      function->walk([&](PreparableOpInterface op) {
        siteStream << "  " << op.getKernelRef() << "[";
        llvm::interleaveComma(
            op.getExtents(), siteStream,
            [&](OpFoldResult extent) { siteStream << roots.getIndex(extent); });
        siteStream << "]\n";
      });
      os << "entry @" << function.getName() << "\n";
      for (auto [i, root] : llvm::enumerate(roots.getRoots())) {
        os << "  s" << i << " = " << root.name;
        if (root.isEntry)
          os << ": argument " << cast<BlockArgument>(root.source).getArgNumber()
             << ", dimension " << root.dim << "\n";
        else
          os << ": data-dependent\n";
      }
      os << siteStream.str();
    }
    markAllAnalysesPreserved();
  }
};

} // namespace
