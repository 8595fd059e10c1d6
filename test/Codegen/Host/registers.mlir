// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --pgkp-codegen-host | FileCheck %s --check-prefixes=CHECK,AVX2
// RUN: pgkp-opt %s --pgkp-codegen-host='vector-bits=512' | FileCheck %s --check-prefixes=CHECK,AVX512
// RUN: not pgkp-opt %s --pgkp-codegen-host='vector-bits=64' 2>&1 | FileCheck %s --check-prefix=BITS

// BITS: error: option 'vector-bits' is 64; expected 128, 256 or 512

// Rows that the class leaves open: a nest for at most 31 of them beside the packed one,
// whose register block fits the target.
// CHECK-LABEL: func.func private @open(
// CHECK: %[[FEW:.*]] = arith.cmpi ule, %{{.*}}, %c31
// CHECK: scf.if %[[FEW]]
// CHECK: vector.store {{.*}} vector<16xf32>
// CHECK: } else {
// AVX2: iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// AVX512: iter_args({{.*}}) -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>) {
pgkp.kernel private @open(%a: tensor<?x512xf32>, %w: tensor<512x512xf32>, %o: tensor<?x512xf32>) -> tensor<?x512xf32>
    dims(m) args([m, 512], [512, 512], [m, 512]) {
  %z = arith.constant 0.0 : f32
  %i = linalg.fill ins(%z : f32) outs(%o : tensor<?x512xf32>) -> tensor<?x512xf32>
  %r = linalg.matmul ins(%a, %w : tensor<?x512xf32>, tensor<512x512xf32>) outs(%i : tensor<?x512xf32>) -> tensor<?x512xf32>
  pgkp.return %r : tensor<?x512xf32>
}

// One row needs no question.
// CHECK-LABEL: func.func private @row(
// CHECK-NOT: scf.if
// CHECK: return
pgkp.kernel private @row(%a: tensor<1x512xf32>, %w: tensor<512x512xf32>, %o: tensor<1x512xf32>) -> tensor<1x512xf32>
    dims() args([1, 512], [512, 512], [1, 512]) {
  %z = arith.constant 0.0 : f32
  %i = linalg.fill ins(%z : f32) outs(%o : tensor<1x512xf32>) -> tensor<1x512xf32>
  %r = linalg.matmul ins(%a, %w : tensor<1x512xf32>, tensor<512x512xf32>) outs(%i : tensor<1x512xf32>) -> tensor<1x512xf32>
  pgkp.return %r : tensor<1x512xf32>
}
