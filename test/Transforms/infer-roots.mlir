// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --split-input-file --pgkp-infer-roots | FileCheck %s
// RUN: pgkp-opt %s --split-input-file --pgkp-infer-roots --pgkp-infer-roots | FileCheck %s
// RUN: pgkp-opt %s --split-input-file --pgkp-infer-roots --remarks-filter=pgkp -o %t 2>&1 | FileCheck %s --check-prefix=REMARK

pgkp.kernel private @k(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(n) args([n], [n]) {
  pgkp.return %x : tensor<?xf32>
}

// CHECK-LABEL: func.func @entry
// CHECK-SAME:    attributes {pgkp.roots = ["batch", "seq", "arg1_d0"]}
// CHECK:         pgkp.dispatch @k[%{{.*}}] {pgkp.extent_exprs = [#pgkp.expr<s0 * s1>]}
// CHECK:         pgkp.dispatch @k[%{{.*}}] {pgkp.extent_exprs = [#pgkp.expr<s2>]}
func.func @entry(%x: tensor<?x?xf32> {pgkp.dims = ["batch", "seq"]}, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<?x?xf32>
  %s = tensor.dim %x, %c1 : tensor<?x?xf32>
  %n = arith.muli %b, %s : index
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %0 = pgkp.dispatch @k[%n] ins(%flat : tensor<?xf32>) outs(%e : tensor<?xf32>) -> (tensor<?xf32>)
  %m = tensor.dim %y, %c0 : tensor<?xf32>
  %f = tensor.empty(%m) : tensor<?xf32>
  %1 = pgkp.dispatch @k[%m] ins(%y : tensor<?xf32>) outs(%f : tensor<?xf32>) -> (tensor<?xf32>)
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}

// Static arguments have no roots.
// CHECK-LABEL: func.func @static
// CHECK-SAME:    attributes {pgkp.roots = []}
func.func @static(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// CHECK-LABEL: func.func private @helper
// CHECK-NOT:     pgkp.roots
func.func private @helper(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// -----

// Never an error: what depends on data becomes a root, with a remark.

pgkp.kernel private @k(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(n) args([n], [n]) {
  pgkp.return %x : tensor<?xf32>
}
// CHECK-LABEL: func.func @data
// CHECK-SAME:    attributes {pgkp.data_roots = ["data0"], pgkp.roots = ["arg0_d0"]}
// CHECK:         pgkp.dispatch @k[%{{.*}}] {pgkp.extent_exprs = [#pgkp.expr<s0 + s1>]}
// REMARK: remark: {{.*}}data root{{.*}}Function=data{{.*}}extent of 'k' does not follow from the entry's arguments; it becomes root 'data0'
func.func @data(%x: tensor<?xf32>, %count: tensor<index>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?xf32>
  %n = tensor.extract %count[] : tensor<index>
  %s = arith.addi %n, %m : index
  %e = tensor.empty(%s) : tensor<?xf32>
  %0 = pgkp.dispatch @k[%s] ins(%e : tensor<?xf32>) outs(%e : tensor<?xf32>) -> (tensor<?xf32>)
  return %0 : tensor<?xf32>
}
