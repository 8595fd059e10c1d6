// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef PGKP_CONVERSION_PASSES_H
#define PGKP_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::pgkp {

#define GEN_PASS_DECL
#include "pgkp/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "pgkp/Conversion/Passes.h.inc"

} // namespace mlir::pgkp

#endif // PGKP_CONVERSION_PASSES_H
