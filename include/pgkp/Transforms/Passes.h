// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The tensor-level passes: from a module of upstream dialects to one whose
/// kernels are outlined, priced and prepared.
#ifndef PGKP_TRANSFORMS_PASSES_H
#define PGKP_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::pgkp {

/// The category of every remark that these passes emit; show them with
/// `--remarks-filter=pgkp`.
inline constexpr llvm::StringLiteral kRemarkCategory = "pgkp";

#define GEN_PASS_DECL
#include "pgkp/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "pgkp/Transforms/Passes.h.inc"

} // namespace mlir::pgkp

#endif // PGKP_TRANSFORMS_PASSES_H
