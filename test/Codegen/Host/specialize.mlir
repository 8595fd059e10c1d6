// RUN: pgkp-opt %s --pgkp-specialize='facts="d0 == 1"' | FileCheck %s --check-prefix=EQ
// RUN: pgkp-opt %s --pgkp-specialize='facts="d0 mod 16 == 0; d0 in [16, 512]" kernel=norm' | FileCheck %s --check-prefix=DIV
// RUN: pgkp-opt %s --pgkp-specialize | FileCheck %s --check-prefix=NONE

// The signature stays; the body is static.
// EQ-LABEL: pgkp.kernel private @matmul(
// EQ-SAME: %[[A:.*]]: tensor<?x64xf32>, %[[W:.*]]: tensor<64x32xf32>, %[[O:.*]]: tensor<?x32xf32>) -> tensor<?x32xf32>
// EQ-SAME: pgkp.facts = [#pgkp.fact<d0 == 1>]
// EQ-DAG: %[[A1:.*]] = tensor.cast %[[A]] : tensor<?x64xf32> to tensor<1x64xf32>
// EQ-DAG: %[[O1:.*]] = tensor.cast %[[O]] : tensor<?x32xf32> to tensor<1x32xf32>
// EQ: %[[R:.*]] = linalg.matmul ins(%[[A1]], %[[W]] : tensor<1x64xf32>, tensor<64x32xf32>)
// EQ: %[[C:.*]] = tensor.cast %[[R]] : tensor<1x32xf32> to tensor<?x32xf32>
// EQ: pgkp.return %[[C]] : tensor<?x32xf32>

// Without facts nothing changes.
// NONE-LABEL: pgkp.kernel private @matmul(
// NONE-NOT: pgkp.facts
// NONE-NOT: tensor.cast
pgkp.kernel private @matmul(%a: tensor<?x64xf32>, %w: tensor<64x32xf32>, %o: tensor<?x32xf32>) -> tensor<?x32xf32>
    dims(m) args([m, 64], [64, 32], [m, 32]) {
  %r = linalg.matmul ins(%a, %w : tensor<?x64xf32>, tensor<64x32xf32>) outs(%o : tensor<?x32xf32>) -> tensor<?x32xf32>
  pgkp.return %r : tensor<?x32xf32>
}

// A divisor becomes part of what the dimension is.
// DIV-LABEL: pgkp.kernel private @norm(
// DIV-SAME: pgkp.facts = [#pgkp.fact<d0 mod 16 == 0>, #pgkp.fact<d0 in [16, 512]>]
// DIV: %[[N:.*]] = tensor.dim
// DIV: %[[Q:.*]] = arith.divui %[[N]], %[[K:.*]] : index
// DIV: %[[P:.*]] = arith.muli %[[Q]], %[[K]] : index
// DIV: arith.index_cast %[[P]] : index to i64
pgkp.kernel private @norm(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> dims(n) args([n], [n]) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %i = arith.index_cast %n : index to i64
  %f = arith.sitofp %i : i64 to f32
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) {
    ^bb0(%a: f32, %_: f32):
      %y = arith.divf %a, %f : f32
      linalg.yield %y : f32
  } -> tensor<?xf32>
  pgkp.return %r : tensor<?xf32>
}
