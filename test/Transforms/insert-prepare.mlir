// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --split-input-file --pgkp-insert-prepare | FileCheck %s
// Inserting twice changes nothing.
// RUN: pgkp-opt %s --split-input-file --pgkp-insert-prepare -o %t.once
// RUN: pgkp-opt %s --split-input-file --pgkp-insert-prepare --pgkp-insert-prepare -o %t.twice
// RUN: diff %t.once %t.twice
// RUN: pgkp-opt %s --split-input-file --pgkp-insert-prepare=branch-probability=0.25 | FileCheck %s --check-prefix=QUARTER
// RUN: pgkp-opt %s --split-input-file --pgkp-insert-prepare --remarks-filter=pgkp -o %t.out 2>&1 | FileCheck %s --check-prefix=REMARK

pgkp.kernel private @k(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(n) args([n], [n]) {
  pgkp.return %x : tensor<?xf32>
}
pgkp.kernel private @static(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32>
    dims() args([4], [4]) {
  pgkp.return %x : tensor<4xf32>
}

// The observe comes first, with all roots; the prepare where its extent is known,
// out of the branch and the loop.
// CHECK-LABEL: func.func @hoisted
// CHECK-SAME:    pgkp.roots = ["n", "m"]
// CHECK-DAG:     %[[N:.*]] = tensor.dim %arg0
// CHECK-DAG:     %[[M:.*]] = tensor.dim %arg1
// CHECK:         pgkp.observe @hoisted[%[[N]], %[[M]]]
// CHECK:         %[[D:.*]] = tensor.dim %arg0
// CHECK:         %[[T:.*]] = arith.addi %[[D]]
// CHECK-NEXT:    pgkp.prepare @k[%[[T]]] {probability = 5.000000e-01 : f64}
// CHECK-NOT:     pgkp.prepare
// CHECK:         scf.if
// CHECK:           scf.for
// CHECK-NOT:         pgkp.prepare
// CHECK:             pgkp.dispatch @k[%[[T]]]
// CHECK:             pgkp.dispatch @static[]
// QUARTER-LABEL: func.func @hoisted
// QUARTER:         probability = 2.500000e-01
// REMARK-DAG:  prepare of 'k' with probability 0.50, hoisted out of 2 regions
// REMARK-DAG:  no prepare of 'static': it has no dynamic extents
func.func @hoisted(%x: tensor<?xf32> {pgkp.dims = ["n"]}, %y: tensor<?xf32> {pgkp.dims = ["m"]}, %cond: tensor<i1>, %s: tensor<4xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c = tensor.extract %cond[] : tensor<i1>
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %t = arith.addi %n, %c1 : index
  %e = tensor.empty(%t) : tensor<?xf32>
  %r = scf.if %c -> tensor<?xf32> {
    %l = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %e) -> tensor<?xf32> {
      %0 = pgkp.dispatch @k[%t] ins(%e : tensor<?xf32>) outs(%a : tensor<?xf32>) -> (tensor<?xf32>)
      %1 = pgkp.dispatch @static[] ins(%s : tensor<4xf32>) outs(%s : tensor<4xf32>) -> (tensor<4xf32>)
      scf.yield %0 : tensor<?xf32>
    }
    scf.yield %l : tensor<?xf32>
  } else {
    scf.yield %e : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// An extent that is known only inside a loop is prepared there, not in a parallel one.
// CHECK-LABEL: func.func @inside
// CHECK:         pgkp.observe @inside
// CHECK:         scf.for
// CHECK:           %[[T:.*]] = arith.addi
// CHECK-NEXT:      pgkp.prepare @k[%[[T]]]
// CHECK:         scf.forall
// CHECK-NOT:       pgkp.prepare
// CHECK:           pgkp.dispatch
// REMARK-DAG:  no prepare of 'k': its extents are known only inside a parallel loop
func.func @inside(%x: tensor<?xf32> {pgkp.dims = ["n"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %t = arith.addi %i, %c1 : index
    %e = tensor.empty(%t) : tensor<?xf32>
    %0 = pgkp.dispatch @k[%t] ins(%e : tensor<?xf32>) outs(%e : tensor<?xf32>) -> (tensor<?xf32>)
  }
  scf.forall (%i) in (%n) {
    %e = tensor.empty(%i) : tensor<?xf32>
    %0 = pgkp.dispatch @k[%i] ins(%e : tensor<?xf32>) outs(%e : tensor<?xf32>) -> (tensor<?xf32>)
  }
  return
}

// -----

// Nothing dynamic: no prepare and no observe.
pgkp.kernel private @static(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32>
    dims() args([4], [4]) {
  pgkp.return %x : tensor<4xf32>
}
// CHECK-LABEL: func.func @nothing
// CHECK-NOT:     pgkp.observe
// CHECK-NOT:     pgkp.prepare
// CHECK:         return
func.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = pgkp.dispatch @static[] ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> (tensor<4xf32>)
  return %0 : tensor<4xf32>
}
