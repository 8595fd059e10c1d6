// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A module with static shapes only gets kernels and dispatches, but nothing to prepare. Functions
// that an entry calls become part of it.
// RUN: pgkp-opt %s --pgkp-prepare-pipeline | FileCheck %s --implicit-check-not=pgkp.prepare --implicit-check-not=pgkp.observe --implicit-check-not=#pgkp.class
// RUN: pgkp-opt %s --pgkp-prepare-pipeline --pgkp-program-pipeline | FileCheck %s --check-prefix=LLVM

// CHECK: pgkp.kernel private @matmul_0
// CHECK-LABEL: func.func @e
// CHECK-NOT:     call
// CHECK:         pgkp.dispatch @matmul_0[]
// CHECK-NOT:     pgkp.dispatch
// LLVM: llvm.func @pgkp_entry_e
func.func private @twice(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = arith.addf %x, %x : tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
func.func @e(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %p = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%i : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = call @twice(%p) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
