// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// What an entry's roots must satisfy so that no slice reaches out of its
/// source.
#ifndef PGKP_ANALYSIS_ENTRYLIMITS_H
#define PGKP_ANALYSIS_ENTRYLIMITS_H

#include "pgkp/Analysis/RootAnalysis.h"

namespace mlir::pgkp {

/// `value <= bound`, both over the entry's roots.
struct EntryLimit {
  ExprAttr value, bound;
  bool operator==(const EntryLimit &other) const {
    return value == other.value && bound == other.bound;
  }
};

/// The limits that `tensor.extract_slice` ops impose, in the entry itself and
/// in the kernels that it dispatches; each once, in program order. Those that
/// hold for constants alone, or depend on data, are left out. \p roots is the
/// analysis of \p entry.
SmallVector<EntryLimit> computeEntryLimits(FunctionOpInterface entry,
                                           RootAnalysis &roots);

} // namespace mlir::pgkp

#endif // PGKP_ANALYSIS_ENTRYLIMITS_H
