// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --split-input-file --pgkp-print-roots -o %t | FileCheck %s

// CHECK-LABEL: entry @named
// CHECK-NEXT:    s0 = batch: argument 0, dimension 0
// CHECK-NEXT:    s1 = seq: argument 0, dimension 1
// CHECK-NEXT:    s2 = kv: argument 1, dimension 0
// CHECK-NEXT:    s3 = arg2_d0: argument 2, dimension 0
// CHECK-NEXT:    @k[s0 * s1, s1 + s2]
// CHECK-NEXT:    @k[s1 floordiv 4, s0 ceildiv 2]
// CHECK-NEXT:    @k[min(s0, 8), max(s1, s2)]
// CHECK-NEXT:    @k[s2 - s1, s3 mod 3]
// CHECK-NEXT:    @k[s0 * 2 + 1, s1 * 4]
// CHECK-NEXT:    @k[s0, s1 + s2 + 2]
// CHECK-NEXT:    @k[s0 * s1, s1 + 3]
// CHECK-NEXT:    @k[7, s0]
pgkp.kernel private @k(%x: tensor<?x?xf32>, %out: tensor<?x?xf32>) -> tensor<?x?xf32>
    dims(a, b) args([a, b], [a, b]) {
  pgkp.return %x : tensor<?x?xf32>
}
func.func @named(%x: tensor<?x?x4xf32> {pgkp.dims = ["batch", "seq", ""]},
    %c: tensor<?x?xf32> {pgkp.dims = ["kv", "seq"]}, %u: tensor<?xf32>, %d: tensor<?x?xf32> {pgkp.dims = ["batch", "seq"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x4xf32>
  %s = tensor.dim %x, %c1 : tensor<?x?x4xf32>
  %s2 = tensor.dim %c, %c1 : tensor<?x?xf32>
  %kv = tensor.dim %c, %c0 : tensor<?x?xf32>
  %n = tensor.dim %u, %c0 : tensor<?xf32>

  // Reshapes, concatenations, arithmetic.
  %rows = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x4xf32> into tensor<?x4xf32>
  %e0 = tensor.dim %rows, %c0 : tensor<?x4xf32>
  %t = tensor.empty(%s, %s2) : tensor<?x?xf32>
  %cat = tensor.concat dim(0) %c, %t : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %e1 = tensor.dim %cat, %c0 : tensor<?x?xf32>
  %0 = tensor.empty(%e0, %e1) : tensor<?x?xf32>
  pgkp.dispatch @k[%e0, %e1] ins(%0 : tensor<?x?xf32>) outs(%0 : tensor<?x?xf32>) -> (tensor<?x?xf32>)

  %q = arith.divui %s, %c4 : index
  %h = arith.ceildivsi %b, %c2 : index
  %1 = tensor.empty(%q, %h) : tensor<?x?xf32>
  pgkp.dispatch @k[%q, %h] ins(%1 : tensor<?x?xf32>) outs(%1 : tensor<?x?xf32>) -> (tensor<?x?xf32>)

  %lo = arith.minsi %b, %c8 : index
  %hi = arith.maxui %s, %kv : index
  %2 = tensor.empty(%lo, %hi) : tensor<?x?xf32>
  pgkp.dispatch @k[%lo, %hi] ins(%2 : tensor<?x?xf32>) outs(%2 : tensor<?x?xf32>) -> (tensor<?x?xf32>)

  %minus = arith.subi %kv, %s : index
  %mod = arith.remui %n, %c3 : index
  %3 = tensor.empty(%minus, %mod) : tensor<?x?xf32>
  pgkp.dispatch @k[%minus, %mod] ins(%3 : tensor<?x?xf32>) outs(%3 : tensor<?x?xf32>) -> (tensor<?x?xf32>)

  %apply = affine.apply affine_map<(d0)[s0] -> (d0 + s0 + 1)>(%b)[%b]
  %i64 = arith.index_cast %s : index to i64
  %four = arith.constant 4 : i64
  %times = arith.muli %i64, %four : i64
  %back = arith.index_cast %times : i64 to index
  %4 = tensor.empty(%apply, %back) : tensor<?x?xf32>
  pgkp.dispatch @k[%apply, %back] ins(%4 : tensor<?x?xf32>) outs(%4 : tensor<?x?xf32>) -> (tensor<?x?xf32>)

  // Through a slice, a pad and a destination.
  %slice = tensor.extract_slice %x[0, 0, 0] [%b, %e1, 1] [1, 1, 1] : tensor<?x?x4xf32> to tensor<?x?xf32>
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %slice low[0, 1] high[0, 1] {
    ^bb0(%i: index, %j: index):
      tensor.yield %zero : f32
  } : tensor<?x?xf32> to tensor<?x?xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%pad : tensor<?x?xf32>) -> tensor<?x?xf32>
  %p0 = tensor.dim %fill, %c0 : tensor<?x?xf32>
  %p1 = tensor.dim %fill, %c1 : tensor<?x?xf32>
  %5 = pgkp.dispatch @k[%p0, %p1] ins(%fill : tensor<?x?xf32>) outs(%fill : tensor<?x?xf32>) -> (tensor<?x?xf32>)

  // Through a dispatch, an expansion and a cast.
  %flat = tensor.collapse_shape %d [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %g0 = tensor.dim %flat, %c0 : tensor<?xf32>
  %plus = arith.addi %s, %c3 : index
  %6 = tensor.empty(%g0, %plus) : tensor<?x?xf32>
  %7 = pgkp.dispatch @k[%g0, %plus] ins(%6 : tensor<?x?xf32>) outs(%6 : tensor<?x?xf32>) -> (tensor<?x?xf32>)

  %8 = tensor.empty(%b) : tensor<7x?xf32>
  %9 = tensor.cast %8 : tensor<7x?xf32> to tensor<?x?xf32>
  %k0 = tensor.dim %9, %c0 : tensor<?x?xf32>
  %k1 = tensor.dim %9, %c1 : tensor<?x?xf32>
  pgkp.dispatch @k[%k0, %k1] ins(%9 : tensor<?x?xf32>) outs(%9 : tensor<?x?xf32>) -> (tensor<?x?xf32>)
  return
}

// -----

// What depends on data is a root of its own; private functions have none.

// CHECK-LABEL: entry @data
// CHECK-NEXT:    s0 = arg0_d0: argument 0, dimension 0
// CHECK-NEXT:    s1 = data0: data-dependent
// CHECK-NEXT:    @k[s1]
// CHECK-NEXT:    @k[s0 + s1]
// CHECK-NOT:   entry @helper
pgkp.kernel private @k(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(n) args([n], [n]) {
  pgkp.return %x : tensor<?xf32>
}
func.func @data(%x: tensor<?xf32>, %count: tensor<index>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?xf32>
  %n = tensor.extract %count[] : tensor<index>
  %0 = tensor.empty(%n) : tensor<?xf32>
  %1 = pgkp.dispatch @k[%n] ins(%0 : tensor<?xf32>) outs(%0 : tensor<?xf32>) -> (tensor<?xf32>)
  %s = arith.addi %n, %m : index
  %2 = tensor.empty(%s) : tensor<?xf32>
  %3 = pgkp.dispatch @k[%s] ins(%2 : tensor<?xf32>) outs(%2 : tensor<?xf32>) -> (tensor<?xf32>)
  return %1, %3 : tensor<?xf32>, tensor<?xf32>
}
func.func private @helper(%x: tensor<?xf32>) {
  return
}

// -----

// Branches that agree, loops that keep their shape, and those that do not.

// CHECK-LABEL: entry @control
// CHECK-NEXT:    s0 = n: argument 0, dimension 0
// CHECK-NEXT:    s1 = m: argument 1, dimension 0
// CHECK-NEXT:    s2 = data0: data-dependent
// CHECK-NEXT:    s3 = data1: data-dependent
// CHECK-NEXT:    @k[s0]
// CHECK-NEXT:    @k[s2]
// CHECK-NEXT:    @k[s0]
// CHECK-NEXT:    @k[s3]
pgkp.kernel private @k(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(n) args([n], [n]) {
  pgkp.return %x : tensor<?xf32>
}
func.func @control(%x: tensor<?xf32> {pgkp.dims = ["n"]}, %y: tensor<?xf32> {pgkp.dims = ["m"]}, %cond: tensor<i1>)
    -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c = tensor.extract %cond[] : tensor<i1>
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %same = scf.if %c -> tensor<?xf32> {
    %e = tensor.empty(%n) : tensor<?xf32>
    scf.yield %e : tensor<?xf32>
  } else {
    scf.yield %x : tensor<?xf32>
  }
  %other = scf.if %c -> tensor<?xf32> {
    scf.yield %x : tensor<?xf32>
  } else {
    scf.yield %y : tensor<?xf32>
  }
  %kept = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> tensor<?xf32> {
    %d = tensor.dim %a, %c0 : tensor<?xf32>
    %e = tensor.empty(%d) : tensor<?xf32>
    scf.yield %e : tensor<?xf32>
  }
  %grown = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> tensor<?xf32> {
    %d = tensor.dim %a, %c0 : tensor<?xf32>
    %t = arith.addi %d, %c1 : index
    %e = tensor.empty(%t) : tensor<?xf32>
    scf.yield %e : tensor<?xf32>
  }
  %n0 = tensor.dim %same, %c0 : tensor<?xf32>
  %0 = pgkp.dispatch @k[%n0] ins(%same : tensor<?xf32>) outs(%same : tensor<?xf32>) -> (tensor<?xf32>)
  %n1 = tensor.dim %other, %c0 : tensor<?xf32>
  %1 = pgkp.dispatch @k[%n1] ins(%other : tensor<?xf32>) outs(%other : tensor<?xf32>) -> (tensor<?xf32>)
  %n2 = tensor.dim %kept, %c0 : tensor<?xf32>
  %2 = pgkp.dispatch @k[%n2] ins(%kept : tensor<?xf32>) outs(%kept : tensor<?xf32>) -> (tensor<?xf32>)
  %n3 = tensor.dim %grown, %c0 : tensor<?xf32>
  %3 = pgkp.dispatch @k[%n3] ins(%grown : tensor<?xf32>) outs(%grown : tensor<?xf32>) -> (tensor<?xf32>)
  return %0, %1, %2, %3 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
