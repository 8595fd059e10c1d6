// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Code generation for NVIDIA GPUs: one kernel to PTX text.
#ifndef PGKP_CODEGEN_NVVM_H
#define PGKP_CODEGEN_NVVM_H

#include "pgkp/Dialect/IR/PGKPOps.h"

#include <array>
#include <string>

namespace mlir {
namespace gpu {
class GPUModuleOp;
} // namespace gpu
namespace pgkp {

inline constexpr llvm::StringLiteral kNVVMTriple = "nvptx64-nvidia-cuda";
/// Attribute of emitNVVMModule's modules and property of the gpu.object made
/// from them: NVVMLaunch as a dictionary.
inline constexpr llvm::StringLiteral kNVVMLaunchAttr = "launch";

/// One parameter of the device function: argument `index` of the kernel as a
/// device pointer (tensors, contiguous, identity layout) or by value
/// (scalars), or extent `index` as a 64-bit integer.
struct NVVMParam {
  enum class Kind { Pointer, Scalar, Extent };
  Kind kind;
  unsigned index;
};

/// How the device function is launched. Any number of blocks in x gives the
/// same results; `grid` is the one that keeps a device busy.
struct NVVMLaunch {
  SmallVector<ExprAttr, 3> grid; ///< over the kernel's extents
  std::array<uint32_t, 3> block = {1, 1, 1};
  uint32_t sharedBytes = 0; ///< dynamic shared memory, bytes a block
  SmallVector<NVVMParam> params;

  /// As a dictionary {grid, block, shared_bytes, params}, and back.
  DictionaryAttr toAttr(Builder &b) const;
  static FailureOr<NVVMLaunch> fromAttr(DictionaryAttr attr);
};

/// A compiled kernel.
struct NVVMKernel {
  std::string ptx;
  std::string symbol; ///< of the entry in `ptx`
  NVVMLaunch launch;
};

/// Checks that LLVM knows the chip (sm_90, sm_90a, ...) and that `features` is
/// empty or one `+ptxNN` not older than the chip needs. LLVM ends the process
/// on what this refuses. Emits one error at `loc`.
LogicalResult checkNVVMTarget(Location loc, StringRef chip, StringRef features);

/// Emits the kernel as a gpu.module named `moduleName` with one device function
/// at the builder's insertion point. The facts hold for every launch; they
/// become constants, multiples and assumptions. A null `config`, or one that
/// names no device family, leaves the choice to rules. The kernel is not
/// changed.
FailureOr<gpu::GPUModuleOp>
emitNVVMModule(KernelOp kernel, ArrayRef<FactAttr> facts, StringRef chip,
               StringRef features, OpBuilder &builder, StringRef moduleName,
               ConfigAttr config = {});

/// Lowers a module of emitNVVMModule to the LLVM dialect, in place.
LogicalResult lowerNVVMModule(gpu::GPUModuleOp module);

/// PTX, or the LLVM IR that it is made from, not optimized.
enum class NVVMFormat { PTX, LLVMIR };

/// Translates a lowered module to text. Refuses code that is not
/// self-contained. Optimization level in [0, 3].
FailureOr<std::string> translateNVVMModule(gpu::GPUModuleOp module,
                                           NVVMFormat format = NVVMFormat::PTX,
                                           unsigned optLevel = 3);

/// All of the above on a copy of the kernel. Thread-safe for kernels of
/// different contexts. Needs registerNVVMCodegen on the context's registry.
/// On failure one error was emitted at the kernel or an operation in it.
FailureOr<NVVMKernel>
compileKernelToPTX(KernelOp kernel, ArrayRef<FactAttr> facts, StringRef chip,
                   StringRef features = "", ConfigAttr config = {});

/// Dialects and translations that code generation for NVVM needs.
void registerNVVMCodegen(DialectRegistry &registry);

} // namespace pgkp
} // namespace mlir

#endif // PGKP_CODEGEN_NVVM_H
