// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// What identifies a kernel across modules.
#ifndef PGKP_ANALYSIS_KERNELCONTENT_H
#define PGKP_ANALYSIS_KERNELCONTENT_H

#include "pgkp/Dialect/IR/PGKPOps.h"

#include <array>
#include <cstdint>
#include <vector>

namespace mlir::pgkp {

/// The name that a kernel has in its own module, whatever it was called before,
/// so that equal kernels have equal bytecode.
inline constexpr llvm::StringLiteral kKernelModuleSymbol{"pgkp_kernel"};

struct KernelContent {
  /// A module with this one kernel: named kKernelModuleSymbol, its symbols d0,
  /// d1,
  /// ..., without locations, classes, configuration space, cost and family.
  std::vector<uint8_t> bytecode;
  /// BLAKE2b-256 of the bytecode.
  std::array<uint8_t, 32> hash;
};

KernelContent getKernelContent(KernelOp kernel);

} // namespace mlir::pgkp

#endif // PGKP_ANALYSIS_KERNELCONTENT_H
