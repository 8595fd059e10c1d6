// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --pgkp-annotate-specializations --pgkp-print-manifest -o %t.mlir | FileCheck %s
// Annotating twice changes nothing.
// RUN: pgkp-opt %s --pgkp-annotate-specializations --pgkp-annotate-specializations -o %t.twice.mlir
// RUN: diff %t.mlir %t.twice.mlir
// RUN: pgkp-opt %s --pgkp-annotate-specializations="max-classes=2 divisor=8" --pgkp-print-manifest -o %t.few.mlir | FileCheck %s --check-prefix=FEW
// RUN: pgkp-opt %s --pgkp-annotate-specializations --remarks-filter=pgkp -o %t.remarks.mlir 2>&1 | FileCheck %s --check-prefix=REMARK

// The number of rows of a product decides which code is best.
// CHECK-LABEL: kernel 0 product dims [m] family matmul configs
// CHECK:         class [m == 1] probability 0.2500 structure
// CHECK-NEXT:    class [m in [2, 63]] probability 0.4000 structure
// CHECK-NEXT:    class [m mod 16 == 0] probability 0.0219 structure
// CHECK-NEXT:    flops product(m, 4096)
// CHECK-NEXT:    bytes sum(product(m, 384), 8192)
// FEW-LABEL:   kernel 0 product
// FEW:           class [m == 1]
// FEW-NEXT:      class [m in [2, 63]]
// FEW-NEXT:      flops
// REMARK: remark: {{.*}}classes{{.*}}kernel 'product' of family 'matmul': 3 classes, 0 from the profile
pgkp.kernel private @product(%a: tensor<?x64xf32>, %w: tensor<64x32xf32>, %out: tensor<?x32xf32>) -> tensor<?x32xf32>
    dims(m) args([m, 64], [64, 32], [m, 32]) {
  %zero = arith.constant 0.0 : f32
  %i = linalg.fill ins(%zero : f32) outs(%out : tensor<?x32xf32>) -> tensor<?x32xf32>
  %r = linalg.matmul ins(%a, %w : tensor<?x64xf32>, tensor<64x32xf32>) outs(%i : tensor<?x32xf32>) -> tensor<?x32xf32>
  pgkp.return %r : tensor<?x32xf32>
}

// A row length that fills vectors needs no tails. The list runs from specific to
// general: two facts before one.
// CHECK-LABEL: kernel 1 sums dims [rows, n] family row
// CHECK:         class [rows == 1, n mod 16 == 0]
// CHECK-NEXT:    class [rows mod 16 == 0, n mod 16 == 0]
// CHECK-NEXT:    class [rows == 1] probability
// CHECK-NEXT:    class [rows mod 16 == 0] probability
// CHECK-NEXT:    class [n mod 16 == 0] probability
// CHECK-NEXT:    flops product(rows, n)
// FEW-LABEL:   kernel 1 sums
// FEW:           class [rows == 1]
// FEW-NEXT:      class [{{rows|n}} mod 8 == 0]
// FEW-NEXT:      flops
pgkp.kernel private @sums(%x: tensor<?x?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(rows, n) args([rows, n], [rows]) {
  %zero = arith.constant 0.0 : f32
  %i = linalg.fill ins(%zero : f32) outs(%out : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.reduce ins(%x : tensor<?x?xf32>) outs(%i : tensor<?xf32>) dimensions = [1]
    (%a: f32, %acc: f32) {
      %v = arith.addf %a, %acc : f32
      linalg.yield %v : f32
    }
  pgkp.return %r : tensor<?xf32>
}

// A symbol that is always a multiple of 4 is "one" at 4.
// CHECK-LABEL: kernel 2 quads dims [m] family matmul
// CHECK:         class [m == 4]
// CHECK-NEXT:    class [m in [5, 63]]
pgkp.kernel private @quads(%a: tensor<?x8xf32>, %w: tensor<8x32xf32>, %out: tensor<?x32xf32>) -> tensor<?x32xf32>
    dims(m) args([m, 8], [8, 32], [m, 32]) {
  %zero = arith.constant 0.0 : f32
  %i = linalg.fill ins(%zero : f32) outs(%out : tensor<?x32xf32>) -> tensor<?x32xf32>
  %r = linalg.matmul ins(%a, %w : tensor<?x8xf32>, tensor<8x32xf32>) outs(%i : tensor<?x32xf32>) -> tensor<?x32xf32>
  pgkp.return %r : tensor<?x32xf32>
}

// Static kernels have one class, the generic one, and what is given stays.
// CHECK-LABEL: kernel 3 static dims [] family elementwise
// CHECK-NOT:     class
// CHECK-LABEL: kernel 4 given dims [n] family mine
// CHECK:         class [n == 7] probability 0.5000 user
// CHECK-NOT:     class
pgkp.kernel private @static(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32>
    dims() args([4], [4]) {
  %r = linalg.exp ins(%x : tensor<4xf32>) outs(%out : tensor<4xf32>) -> tensor<4xf32>
  pgkp.return %r : tensor<4xf32>
}
pgkp.kernel private @given(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(n) args([n], [n]) attributes {
      classes = [#pgkp.class<[d0 == 7] probability 5.0e-01 provenance user>], family = "mine"} {
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%out : tensor<?xf32>) -> tensor<?xf32>
  pgkp.return %r : tensor<?xf32>
}

// Of a table that is only sliced, the slices are read.
// CHECK-LABEL: kernel 5 sliced dims [n]
// CHECK:         bytes sum(product(n, 64), 8)
pgkp.kernel private @sliced(%table: tensor<4096x8xf32>, %at: index, %out: tensor<?x8xf32>) -> tensor<?x8xf32>
    dims(n) args([4096, 8], [], [n, 8]) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %out, %c0 : tensor<?x8xf32>
  %s = tensor.extract_slice %table[%at, 0] [%n, 8] [1, 1] : tensor<4096x8xf32> to tensor<?x8xf32>
  %r = linalg.exp ins(%s : tensor<?x8xf32>) outs(%out : tensor<?x8xf32>) -> tensor<?x8xf32>
  pgkp.return %r : tensor<?x8xf32>
}

func.func @e(%x: tensor<?x8xf32> {pgkp.dims = ["seq", ""]}, %w: tensor<8x32xf32>) -> tensor<?x32xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %s = tensor.dim %x, %c0 : tensor<?x8xf32>
  %m = arith.muli %s, %c4 : index
  %a = tensor.empty(%m) : tensor<?x8xf32>
  %e = tensor.empty(%m) : tensor<?x32xf32>
  %r = pgkp.dispatch @quads[%m] {pgkp.extent_exprs = [#pgkp.expr<s0 * 4>]} ins(%a, %w : tensor<?x8xf32>, tensor<8x32xf32>) outs(%e : tensor<?x32xf32>) -> (tensor<?x32xf32>)
  return %r : tensor<?x32xf32>
}
