// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --split-input-file --pgkp-outline-kernels | FileCheck %s
// Outlining twice changes nothing.
// RUN: pgkp-opt %s --split-input-file --pgkp-outline-kernels -o %t.once
// RUN: pgkp-opt %s --split-input-file --pgkp-outline-kernels --pgkp-outline-kernels -o %t.twice
// RUN: diff %t.once %t.twice

// A contraction takes its fill and the elementwise operations on its result;
// the same product twice is one kernel; equal names are equal extents.

// CHECK-LABEL: pgkp.kernel private @matmul_0(
// CHECK-SAME:    %[[A:.*]]: tensor<?x64xf32>, %[[B:.*]]: tensor<64x32xf32>, %[[R:.*]]: tensor<?x32xf32>, %[[OUT:.*]]: tensor<?x32xf32>) -> tensor<?x32xf32>
// CHECK-SAME:    dims(m) args([m, 64], [64, 32], [m, 32], [m, 32])
// CHECK:         linalg.fill
// CHECK:         linalg.matmul ins(%[[A]], %[[B]]
// CHECK:         %[[SUM:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[R]] : {{.*}}) outs(%[[OUT]]
// CHECK:         pgkp.return %[[SUM]]
// CHECK-NOT:   pgkp.kernel
// CHECK-LABEL: func.func @product
// CHECK-SAME:    %[[X:.*]]: tensor<?x64xf32>{{.*}}, %[[W0:.*]]: tensor<64x32xf32>, %[[W1:.*]]: tensor<64x32xf32>, %[[Y:.*]]: tensor<?x32xf32>
// CHECK:         %[[M:.*]] = tensor.dim %[[X]]
// CHECK:         %[[E0:.*]] = tensor.empty(%[[M]])
// CHECK:         %[[P0:.*]] = pgkp.dispatch @matmul_0[%[[M]]] ins(%[[X]], %[[W0]], %[[Y]] : {{.*}}) outs(%[[E0]] :
// CHECK:         pgkp.dispatch @matmul_0[%[[M]]] ins(%[[X]], %[[W1]], %[[P0]] :
// CHECK-NOT:     linalg
func.func @product(%x: tensor<?x64xf32> {pgkp.dims = ["m", ""]}, %w0: tensor<64x32xf32>, %w1: tensor<64x32xf32>,
    %y: tensor<?x32xf32> {pgkp.dims = ["m", ""]}) -> tensor<?x32xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
  %p0 = linalg.matmul ins(%x, %w0 : tensor<?x64xf32>, tensor<64x32xf32>) outs(%i : tensor<?x32xf32>) -> tensor<?x32xf32>
  %s0 = arith.addf %p0, %y : tensor<?x32xf32>
  %m1 = tensor.dim %s0, %c0 : tensor<?x32xf32>
  %e1 = tensor.empty(%m1) : tensor<?x32xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x32xf32>) -> tensor<?x32xf32>
  %p1 = linalg.matmul ins(%x, %w1 : tensor<?x64xf32>, tensor<64x32xf32>) outs(%i1 : tensor<?x32xf32>) -> tensor<?x32xf32>
  %s1 = arith.addf %p1, %s0 : tensor<?x32xf32>
  return %s1 : tensor<?x32xf32>
}

// -----

// A whole softmax is one row kernel. The body's index is computed from extents.

// CHECK-LABEL: pgkp.kernel private @row_0(
// CHECK-SAME:    %[[IN:[a-z0-9]*]]: tensor<?x?xf32>, %[[OUT:[a-z0-9]*]]: tensor<?x?xf32>) -> tensor<?x?xf32> dims(rows, all) args([rows, all], [rows, all])
// CHECK:         %[[ROWS:.*]] = tensor.dim %[[IN]], %c0
// CHECK:         %[[ALL:.*]] = tensor.dim %[[IN]], %c1
// CHECK:         %[[NEGATED:.*]] = arith.muli %[[ROWS]], %c-1
// CHECK:         %[[PAST:.*]] = arith.addi %[[ALL]], %[[NEGATED]]
// CHECK:         arith.addi %[[PAST]],
// CHECK:         linalg.reduce
// CHECK:         math.exp
// CHECK:         linalg.reduce
// CHECK:         arith.divf
// CHECK:         pgkp.return
// CHECK-LABEL: func.func @softmax
// CHECK:         pgkp.dispatch @row_0[%{{.*}}, %{{.*}}] ins(%arg0 : tensor<?x?xf32>)
// CHECK-NOT:     pgkp.dispatch
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @softmax(%x: tensor<?x?xf32> {pgkp.dims = ["rows", "all"]}) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -1.0e30 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %past = arith.subi %n, %m : index
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %r = tensor.empty(%m) : tensor<?xf32>
  %masked = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
    ^bb0(%a: f32, %_: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %last = arith.addi %past, %i : index
      %seen = arith.cmpi ule, %j, %last : index
      %v = arith.select %seen, %a, %low : f32
      linalg.yield %v : f32
  } -> tensor<?x?xf32>
  %r0 = linalg.fill ins(%low : f32) outs(%r : tensor<?xf32>) -> tensor<?xf32>
  %max = linalg.reduce ins(%masked : tensor<?x?xf32>) outs(%r0 : tensor<?xf32>) dimensions = [1]
    (%a: f32, %acc: f32) {
      %v = arith.maximumf %a, %acc : f32
      linalg.yield %v : f32
    }
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%masked, %max : tensor<?x?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
    ^bb0(%a: f32, %b: f32, %_: f32):
      %d = arith.subf %a, %b : f32
      %v = math.exp %d : f32
      linalg.yield %v : f32
  } -> tensor<?x?xf32>
  %r1 = linalg.fill ins(%zero : f32) outs(%r : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.reduce ins(%exp : tensor<?x?xf32>) outs(%r1 : tensor<?xf32>) dimensions = [1]
    (%a: f32, %acc: f32) {
      %v = arith.addf %a, %acc : f32
      linalg.yield %v : f32
    }
  %q = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum : tensor<?x?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
    ^bb0(%a: f32, %b: f32, %_: f32):
      %v = arith.divf %a, %b : f32
      linalg.yield %v : f32
  } -> tensor<?x?xf32>
  return %q : tensor<?x?xf32>
}

// -----

// Convexity: the last operation reads the product and, by way of a reduction over
// rows, the product again. Joining the product's kernel would make a cycle.

// CHECK-LABEL: func.func @convex
// CHECK:         %[[P:.*]] = pgkp.dispatch @matmul_0[%{{.*}}] ins(%arg0 :
// CHECK:         %[[R:.*]] = pgkp.dispatch @reduce_0[%{{.*}}] ins(%[[P]] :
// CHECK:         pgkp.dispatch @elementwise_0[%{{.*}}] ins(%[[P]], %[[R]] :
#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
func.func @convex(%x: tensor<?x?xf32> {pgkp.dims = ["n", "n"]}) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%n, %n) : tensor<?x?xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %p = linalg.matmul ins(%x, %x : tensor<?x?xf32>, tensor<?x?xf32>) outs(%i : tensor<?x?xf32>) -> tensor<?x?xf32>
  %f = tensor.empty(%n) : tensor<?xf32>
  %j = linalg.fill ins(%zero : f32) outs(%f : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.reduce ins(%p : tensor<?x?xf32>) outs(%j : tensor<?xf32>) dimensions = [0]
    (%a: f32, %acc: f32) {
      %v = arith.addf %a, %acc : f32
      linalg.yield %v : f32
    }
  %s = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %r : tensor<?x?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
    ^bb0(%a: f32, %b: f32, %_: f32):
      %v = arith.divf %a, %b : f32
      linalg.yield %v : f32
  } -> tensor<?x?xf32>
  return %s : tensor<?x?xf32>
}

// -----

// A result that others read too leaves the kernel as a second result.

// CHECK-LABEL: pgkp.kernel private @matmul_0(
// CHECK-SAME:    -> (tensor<?x8xf32>, tensor<?x8xf32>)
// CHECK:         pgkp.return %{{.*}}, %{{.*}} : tensor<?x8xf32>, tensor<?x8xf32>
// CHECK-LABEL: func.func @escapes
// CHECK:         %[[R:.*]]:2 = pgkp.dispatch @matmul_0
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @escapes(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%m) : tensor<?x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x8xf32>, tensor<8x8xf32>) outs(%i : tensor<?x8xf32>) -> tensor<?x8xf32>
  %s = linalg.exp ins(%p : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %p, %s : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// A slice is cloned into the kernel that reads it; its offset, which is no
// extent of an argument, becomes one. A product wants dense operands: there the slice
// is a kernel of its own.

// CHECK:       pgkp.kernel private @slice_0(
// CHECK:         tensor.extract_slice
// CHECK:       pgkp.kernel private @elementwise_0(%{{.*}}: tensor<32x8xf32>, %{{.*}}: tensor<?x8xf32>, %[[AT:.*]]: index, %{{.*}}: tensor<?x8xf32>)
// CHECK-SAME:    args([32, 8], [seq, 8], [], [seq, 8])
// CHECK:         tensor.extract_slice %{{.*}}[%[[AT]], 0]
// CHECK:         linalg.mul
// CHECK-LABEL: func.func @slices
// CHECK-DAG:     %[[SEQ:.*]] = tensor.dim %arg1, %c0
// CHECK-DAG:     %[[KV:.*]] = tensor.dim %arg2, %c0
// CHECK-DAG:     %[[S:.*]] = pgkp.dispatch @slice_0[%[[SEQ]]] ins(%arg0, %[[KV]] :
// CHECK-DAG:     pgkp.dispatch @elementwise_0[%[[SEQ]]] ins(%arg0, %arg1, %[[KV]] :
// CHECK:         pgkp.dispatch @matmul_0[%[[SEQ]]] ins(%[[S]],
func.func @slices(%table: tensor<32x8xf32>, %x: tensor<?x8xf32> {pgkp.dims = ["seq", ""]},
    %past: tensor<?x8xf32> {pgkp.dims = ["kv", ""]}, %w: tensor<8x4xf32>) -> (tensor<?x8xf32>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %seq = tensor.dim %x, %c0 : tensor<?x8xf32>
  %kv = tensor.dim %past, %c0 : tensor<?x8xf32>
  %now = tensor.extract_slice %table[%kv, 0] [%seq, 8] [1, 1] : tensor<32x8xf32> to tensor<?x8xf32>
  %e = tensor.empty(%seq) : tensor<?x8xf32>
  %r = linalg.mul ins(%now, %x : tensor<?x8xf32>, tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %f = tensor.empty(%seq) : tensor<?x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%f : tensor<?x4xf32>) -> tensor<?x4xf32>
  %p = linalg.matmul ins(%now, %w : tensor<?x8xf32>, tensor<8x4xf32>) outs(%i : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r, %p : tensor<?x8xf32>, tensor<?x4xf32>
}

// -----

// A fill and a concatenation are kernels where they are results; static shapes have
// no symbols.

// CHECK:       pgkp.kernel private @concat_0(%{{.*}}: tensor<2x4xf32>, %{{.*}}: tensor<3x4xf32>, %{{.*}}: tensor<5x4xf32>) -> tensor<5x4xf32> dims() args([2, 4], [3, 4], [5, 4])
// CHECK:       pgkp.kernel private @elementwise_0(%{{.*}}: tensor<4xf32>) -> tensor<4xf32> dims() args([4])
// CHECK-LABEL: func.func @static
// CHECK-DAG:     pgkp.dispatch @concat_0[] ins(%arg0, %arg1 :
// CHECK-DAG:     pgkp.dispatch @elementwise_0[] outs(
func.func @static(%a: tensor<2x4xf32>, %b: tensor<3x4xf32>) -> (tensor<5x4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = tensor.concat dim(0) %a, %b : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %c, %f : tensor<5x4xf32>, tensor<4xf32>
}

// -----

// What is not ours stays: unknown tensor operations, private functions, functions
// without tensors. Branches are outlined inside.

// CHECK-LABEL: func.func @foreign
// CHECK:         %[[U:.*]] = tensor.gather
// CHECK:         scf.if
// CHECK:           pgkp.dispatch @elementwise_0[%{{.*}}] ins(%[[U]] :
// CHECK:         else
// CHECK-NEXT:      scf.yield %[[U]]
// CHECK-LABEL: func.func private @helper
// CHECK-NEXT:    linalg.exp
// CHECK-LABEL: func.func @scalars
func.func @foreign(%x: tensor<?x8xf32>, %at: tensor<?x1xindex>, %c: tensor<i1>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %cond = tensor.extract %c[] : tensor<i1>
  %u = tensor.gather %x[%at] gather_dims([0]) : (tensor<?x8xf32>, tensor<?x1xindex>) -> tensor<?x8xf32>
  %r = scf.if %cond -> tensor<?x8xf32> {
    %n = tensor.dim %u, %c0 : tensor<?x8xf32>
    %e = tensor.empty(%n) : tensor<?x8xf32>
    %v = linalg.exp ins(%u : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
    scf.yield %v : tensor<?x8xf32>
  } else {
    scf.yield %u : tensor<?x8xf32>
  }
  return %r : tensor<?x8xf32>
}
func.func private @helper(%x: tensor<8xf32>) -> tensor<8xf32> {
  %v = linalg.exp ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) -> tensor<8xf32>
  return %v : tensor<8xf32>
}
func.func @scalars(%x: f32) -> f32 {
  return %x : f32
}

// -----

// An extent that data gives as an integer is one that kernels take as an index.

// CHECK-LABEL: func.func @counted
// CHECK:         %[[N:.*]] = tensor.extract
// CHECK:         %[[I:.*]] = arith.index_cast %[[N]] : i32 to index
// CHECK:         pgkp.dispatch @elementwise_0[%{{.*}}, %[[I]]] ins(%{{.*}}, %{{.*}} : tensor<?xf32>, index)
func.func @counted(%x: tensor<?xf32>, %counts: tensor<4xi32>, %at: tensor<4xindex>) -> tensor<?xf32> {
  %c1 = arith.constant 1 : index
  %count = tensor.extract %counts[%c1] : tensor<4xi32>
  %n = arith.index_cast %count : i32 to index
  %from = tensor.extract %at[%c1] : tensor<4xindex>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<?xf32>) {
    ^bb0(%out: f32):
      %i = linalg.index 0 : index
      %j = arith.addi %i, %from : index
      %v = tensor.extract %x[%j] : tensor<?xf32>
      linalg.yield %v : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
