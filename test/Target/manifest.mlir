// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --pgkp-print-manifest -o %t.mlir | FileCheck %s
// RUN: pgkp-opt %s --pgkp-print-manifest=hashes -o %t.mlir | FileCheck %s --check-prefix=HASH

// CHECK:      kernel 0 k dims [m, n] family row configs 2
// CHECK-NEXT:   arg f32 [m, n]
// CHECK-NEXT:   arg index []
// CHECK-NEXT:   arg i64 [4]
// CHECK-NEXT:   out f32 [m, n]
// CHECK-NEXT:   class [m == 1, n mod 16 == 0] probability 0.2500 profile
// CHECK-NEXT:   class [n in [2, 63]] probability 0.5000 structure
// CHECK-NEXT:   flops product(product(m, n), 2)
// CHECK-NEXT:   bytes sum(product(product(m, n), 8), 32)
// Equal kernels hash equal whatever their names, annotations and locations are.
// HASH:       kernel 0 k dims
// HASH-NEXT:    hash [[#%x,]]
// HASH:       kernel 1 same
// HASH-NEXT:    hash [[HASH:[0-9a-f]{64}$]]
// HASH:       kernel 2 same_again
// HASH-NEXT:    hash [[HASH]]
pgkp.kernel private @k(%x: tensor<?x?xf32>, %i: index, %t: tensor<4xi64>, %out: tensor<?x?xf32>) -> tensor<?x?xf32>
    dims(m, n) args([m, n], [], [4], [m, n]) attributes {
      classes = [#pgkp.class<[d0 == 1, d1 mod 16 == 0] probability 2.5e-01 provenance profile>,
                 #pgkp.class<[d1 in [2, 63]] probability 5.0e-01 provenance structure>],
      config_space = [#pgkp.config<{v = 32 : i64}>, #pgkp.config<{v = 16 : i64, script = "rows"}>],
      cost = #pgkp.cost<flops = s0 * s1 * 2, bytes = s0 * s1 * 8 + 32>, family = "row"} {
  pgkp.return %x : tensor<?x?xf32>
}
pgkp.kernel private @same(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(a) args([a], [a]) attributes {family = "copy"} {
  pgkp.return %x : tensor<?xf32>
}
pgkp.kernel private @same_again(%y: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(b) args([b], [b]) {
  pgkp.return %y : tensor<?xf32>
}

// CHECK:      entry e symbol pgkp_entry_e roots [batch, seq]
// CHECK-NEXT:   arg0 f32 [batch, seq] persistent
// CHECK-NEXT:   arg1 i64 [4] in [0, 31]
// CHECK-NEXT:   arg2 i1 []
// CHECK-NEXT:   result f32 [batch, seq] carries 0
// CHECK-NEXT:   result f32 [product(batch, seq)]
// CHECK-NEXT:   site k [batch, seq] probability 1.00
// CHECK-NEXT:   site same [product(batch, seq)] probability 0.50
// CHECK-NEXT:   site same [] probability 0.50
func.func @e(%x: tensor<?x?xf32> {pgkp.dims = ["batch", "seq"], pgkp.persistent}, %t: tensor<4xi64> {pgkp.range = [0, 31]},
    %cond: tensor<i1>) -> (tensor<?x?xf32> {pgkp.carries = 0 : i64}, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %0 = pgkp.dispatch @k[%m, %n] ins(%x, %n, %t : tensor<?x?xf32>, index, tensor<4xi64>) outs(%e : tensor<?x?xf32>) -> (tensor<?x?xf32>)
  %flat = tensor.collapse_shape %0 [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %mn = arith.muli %m, %n : index
  %f = tensor.empty(%mn) : tensor<?xf32>
  %c = tensor.extract %cond[] : tensor<i1>
  scf.if %c {
    %1 = pgkp.dispatch @same[%mn] ins(%flat : tensor<?xf32>) outs(%f : tensor<?xf32>) -> (tensor<?xf32>)
  } else {
    %i = tensor.extract %t[%c0] : tensor<4xi64>
    %j = arith.index_cast %i : i64 to index
    %g = tensor.empty(%j) : tensor<?xf32>
    %1 = pgkp.dispatch @same[%j] ins(%g : tensor<?xf32>) outs(%g : tensor<?xf32>) -> (tensor<?xf32>)
  }
  return %0, %flat : tensor<?x?xf32>, tensor<?xf32>
}
