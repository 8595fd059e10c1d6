// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef PGKP_TARGET_PASSES_H
#define PGKP_TARGET_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::pgkp {

#define GEN_PASS_DECL
#include "pgkp/Target/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "pgkp/Target/Passes.h.inc"

} // namespace mlir::pgkp

#endif // PGKP_TARGET_PASSES_H
