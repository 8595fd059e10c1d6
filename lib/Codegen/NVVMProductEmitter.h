// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file What the families of matrix products share: the walk over tiles, the
/// copies of operands, and the epilogue.
#ifndef PGKP_LIB_CODEGEN_NVVMPRODUCTEMITTER_H
#define PGKP_LIB_CODEGEN_NVVMPRODUCTEMITTER_H

#include "NVVMDeviceBuilder.h"
#include "NVVMEmitter.h"
#include "NVVMProduct.h"

namespace mlir::pgkp::nvvm {

/// One tile of the result. The origin is of type index, the limits are i32:
/// rows and columns that are inside of the result.
struct ProductTile {
  SmallVector<Value> batch; ///< one for each batch loop
  Value firstRow, firstColumn;
  Value rowLimit, columnLimit;
};

class ProductEmitter {
public:
  ProductEmitter(KernelEmitter &emitter, const NVVMMapping &mapping,
                 const Product &product);

protected:
  /// Runs `body` for each tile of rows x columns that this block has, as a
  /// scope of the emitter.
  void forEachTile(unsigned rows, unsigned columns, unsigned group,
                   function_ref<void(const ProductTile &)> body);

  /// The loop indices of an element; any of them may be null.
  SmallVector<Value> loopIndex(const ProductTile &tile, Value row, Value column,
                               Value depth);
  /// The element of an operand at loop indices.
  Value evaluateOperand(OpOperand *operand, ArrayRef<Value> ivs);

  /// Stores the tile's results, whose sums lie in shared memory at `sums` as
  /// f32, rows `pitch` bytes apart. What follows the product in the kernel is
  /// computed here. Threads 0 to `threads` - 1 take part.
  void storeTile(const ProductTile &tile, unsigned rows, unsigned columns,
                 Value sums, unsigned pitch, Value thread, unsigned threads);

  /// A loop from `first` below `end`, i32, as a scope.
  void forI32(Value first, Value end, int64_t step, bool uniform,
              function_ref<void(Value)> body);
  void ifThen(Value condition, bool uniform, function_ref<void()> body,
              function_ref<void()> otherwise = nullptr);

  Value dynamicShared();

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  DeviceBuilder d;
  const NVVMMapping &mapping;
  Product product;
  /// Of each loop of the product, and of all rows and batches; index.
  SmallVector<Value> sizes, rowSizes, batchSizes;
  Value numRows, numColumns, numDepth, numBatches;

private:
  void storeElements(const ProductTile &tile, Value row, Value column,
                     Value sums, unsigned lanes);
};

/// mma.sync (or fma) over a multi-stage pipeline of asynchronous copies.
void emitMmaProduct(KernelEmitter &emitter, const NVVMMapping &mapping,
                    const Product &product, const ProductTiles &tiles);

} // namespace mlir::pgkp::nvvm

#endif // PGKP_LIB_CODEGEN_NVVMPRODUCTEMITTER_H
