// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Turns the tensor body of a kernel into one device function.
//
// Every element of every result is computed on demand: the emitter walks from
// the element to the elements of the producers that it needs. So any graph of
// tensor operations becomes one launch without global scratch memory, whatever
// was fused into the kernel. What a fused producer computes is computed again
// where it is needed, except for two cases that matter:
//  - a value is emitted in the outermost loop where its indices are known, and
//    only once there;
//  - a reduction whose indices are the same for all threads of a block (a row's
//    maximum, a row's sum) is computed by the block together.
//
//===----------------------------------------------------------------------===//
#ifndef PGKP_LIB_CODEGEN_NVVMKERNELEMITTER_H
#define PGKP_LIB_CODEGEN_NVVMKERNELEMITTER_H

#include "pgkp/Dialect/IR/PGKPAttrs.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Builders.h"

namespace mlir::pgkp {

/// What the emitter needs to know of a kernel besides its body.
struct NVVMKernelSignature {
  Operation *op = nullptr; ///< for messages
  Block *body = nullptr;   ///< ends in an operation that yields the results
  unsigned numResults = 0; ///< the last arguments are their destinations
  unsigned numExtents = 0;
  /// For each argument and dimension the extent that is its size, or
  /// kStaticDim where the type has it. Empty for scalars.
  SmallVector<SmallVector<int64_t>> dims;
  /// What holds for the extents of every launch.
  ArrayRef<FactAttr> facts;
  /// May be null: by rules.
  ConfigAttr config;

  static constexpr int64_t kStaticDim = -1;
};

/// How the elements of a group of results with equal shape are spread.
struct NVVMMapping {
  SmallVector<unsigned> results;
  /// Rank of the results.
  unsigned rank = 0;
  /// A matrix product with what follows it; blocks take tiles.
  linalg::LinalgOp product;
  /// Dimensions of the result that are rows, and the tile, of a product.
  SmallVector<unsigned> productRows;
  unsigned tileRows = 0, tileColumns = 0;
  /// Neighbouring elements of a thread, where alignment permits.
  unsigned lanes = 1;
  /// 0: one thread an element, consecutive elements on consecutive threads.
  /// Otherwise one block for each index of the first `rowDims` dimensions;
  /// its threads share the rest.
  unsigned rowDims = 0;
};

/// The function and what a launch must respect.
struct NVVMEmittedKernel {
  LLVM::LLVMFuncOp function;
  SmallVector<NVVMMapping> mappings;
  unsigned threads = 0;     ///< block size in x; y and z are 1
  unsigned sharedBytes = 0; ///< dynamic shared memory
};

/// Emits the kernel as function `name` at the builder's insertion point, which
/// must be inside a gpu.module. Its parameters are one pointer for each tensor
/// argument and one value for each scalar, in order, then one i64 for each
/// extent. Any grid size in x gives the same results. On failure a diagnostic
/// was emitted at the operation that is not supported.
FailureOr<NVVMEmittedKernel>
emitNVVMKernelFunction(const NVVMKernelSignature &signature, OpBuilder &builder,
                       StringRef name);

} // namespace mlir::pgkp

#endif // PGKP_LIB_CODEGEN_NVVMKERNELEMITTER_H
