// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Host.h - Kernels to host code ----------------------------*- C++ -*-===//

#ifndef PGKP_CODEGEN_HOST_H
#define PGKP_CODEGEN_HOST_H

#include "pgkp/Dialect/IR/PGKPOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
class OpPassManager;

namespace pgkp {

/// What of a target decides how host code is generated.
struct HostTarget {
  /// Bits of a vector register. Those of 512 are 32, others 16.
  unsigned vectorBits = 256;
};

/// Replaces the kernel by a function of the same name with loops, as described
/// at pgkp-codegen-host. `config` may be null. On failure a diagnostic was
/// emitted and the kernel is unchanged.
FailureOr<func::FuncOp> generateHostKernel(KernelOp kernel, ConfigAttr config,
                                           HostTarget target = {});

/// From the output of pgkp-codegen-host to the LLVM dialect. With `entry`, the
/// module's one kernel is exported as PGKP_KERNEL_SYMBOL.
void buildHostLowering(OpPassManager &pm, bool entry);

/// Bytes of scratch that a generated function needs, over the kernel's extents.
ExprAttr getWorkspace(func::FuncOp function);

} // namespace pgkp
} // namespace mlir

#endif // PGKP_CODEGEN_HOST_H
