// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Passes.h - Code generation passes ------------------------*- C++ -*-===//

#ifndef PGKP_CODEGEN_PASSES_H
#define PGKP_CODEGEN_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir {
namespace pgkp {

#define GEN_PASS_DECL
#include "pgkp/Codegen/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "pgkp/Codegen/Passes.h.inc"

} // namespace pgkp
} // namespace mlir

#endif // PGKP_CODEGEN_PASSES_H
