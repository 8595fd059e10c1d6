// RUN: pgkp-opt %s --split-input-file --pgkp-codegen-host | FileCheck %s
// RUN: pgkp-opt %s --split-input-file --pgkp-codegen-host='config={script="scalar"}' | FileCheck %s --check-prefix=SCALAR

// A register block of 6 rows by 16 lanes, accumulators carried by the loop over k,
// the fill folded into their start; no allocation.
// CHECK-LABEL: func.func private @matmul(
// CHECK-SAME: memref<?x64xf32>{{.*}} memref<64x32xf32>{{.*}} memref<?x32xf32>{{.*}} %{{.*}}: memref<?xi8>)
// CHECK-NOT: memref.alloc
// CHECK-NOT: linalg.
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK: vector.load {{.*}} : memref<64x32xf32>, vector<16xf32>
// CHECK: vector.broadcast
// 32 columns divide by 16 lanes: nothing is masked.
// CHECK-NOT: vector.create_mask
// SCALAR-LABEL: func.func private @matmul(
// SCALAR-NOT: vector<
pgkp.kernel private @matmul(%a: tensor<?x64xf32>, %w: tensor<64x32xf32>, %o: tensor<?x32xf32>) -> tensor<?x32xf32>
    dims(m) args([m, 64], [64, 32], [m, 32])
    attributes {config_space = [#pgkp.config<{script = "direct", mr = 6, nr = 16}>]} {
  %z = arith.constant 0.0 : f32
  %i = linalg.fill ins(%z : f32) outs(%o : tensor<?x32xf32>) -> tensor<?x32xf32>
  %r = linalg.matmul ins(%a, %w : tensor<?x64xf32>, tensor<64x32xf32>) outs(%i : tensor<?x32xf32>) -> tensor<?x32xf32>
  pgkp.return %r : tensor<?x32xf32>
}

// -----

// The panel of a transposed operand lives in the workspace: 16 lanes of n floats.
// CHECK: #[[BYTES:.*]] = affine_map<()[s0, s1, s2] -> (s2 * 64)>
// CHECK-LABEL: func.func private @transposed(
// CHECK-SAME: pgkp.workspace = #[[BYTES]]
// CHECK: memref.view %{{.*}} : memref<?xi8> to memref<?x16xf32>
// CHECK: vector.maskedstore
pgkp.kernel private @transposed(%a: tensor<?x?xf32>, %w: tensor<?x?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32>
    dims(m, n, k) args([m, k], [n, k], [m, n])
    attributes {config_space = [#pgkp.config<{script = "packed"}>]} {
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %w : tensor<?x?xf32>, tensor<?x?xf32>) outs(%o : tensor<?x?xf32>) {
    ^bb0(%x: f32, %y: f32, %acc: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
  } -> tensor<?x?xf32>
  pgkp.return %r : tensor<?x?xf32>
}

// -----

// A payload that does not map over vectors is scalar, not an error.
// CHECK-LABEL: func.func private @gather(
// CHECK-NOT: vector<
// CHECK: memref.load
pgkp.kernel private @gather(%x: tensor<?xf32>, %p: tensor<?xi32>, %o: tensor<?xf32>) -> tensor<?xf32>
    dims(n) args([n], [n], [n]) {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%p : tensor<?xi32>) outs(%o : tensor<?xf32>) {
    ^bb0(%i: i32, %_: f32):
      %at = arith.index_cast %i : i32 to index
      %y = tensor.extract %x[%at] : tensor<?xf32>
      linalg.yield %y : f32
  } -> tensor<?xf32>
  pgkp.return %r : tensor<?xf32>
}
