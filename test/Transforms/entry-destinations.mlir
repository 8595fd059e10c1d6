// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --pgkp-entry-destinations | FileCheck %s
// RUN: pgkp-opt %s --pgkp-entry-destinations --pgkp-entry-destinations | FileCheck %s

// CHECK: pgkp.kernel private @k({{.*}}) -> tensor<?xf32> dims(n) args([n], [n])
// CHECK-NOT: pgkp.return
pgkp.kernel private @k(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(n) args([n], [n]) {
  pgkp.return %x : tensor<?xf32>
}

// CHECK-LABEL: func.func @e(
// CHECK-SAME:    %{{.*}}: !llvm.ptr, %[[X:.*]]: memref<?xf32>, %[[S:.*]]: memref<4xf32>, %[[O0:.*]]: memref<?xf32>, %[[O1:.*]]: memref<4xf32>)
// CHECK-SAME:    attributes {pgkp.roots = ["n"]}
// CHECK-DAG:     %[[T:.*]] = bufferization.to_tensor %[[X]] restrict
// CHECK-DAG:     %[[U:.*]] = bufferization.to_tensor %[[S]] restrict
// CHECK:         pgkp.observe @e
// CHECK:         %[[R:.*]] = pgkp.dispatch @k
// CHECK:         bufferization.materialize_in_destination %[[R]] in restrict writable %[[O0]]
// CHECK:         bufferization.materialize_in_destination %[[U]] in restrict writable %[[O1]]
// CHECK:         return{{$}}
func.func @e(%x: tensor<?xf32> {pgkp.dims = ["n"], pgkp.persistent}, %s: tensor<4xf32>)
    -> (tensor<?xf32> {pgkp.carries = 0 : i64}, tensor<4xf32>) attributes {pgkp.roots = ["n"]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  pgkp.observe @e[%n]
  %e = tensor.empty(%n) : tensor<?xf32>
  %0 = pgkp.dispatch @k[%n] ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> (tensor<?xf32>)
  return %0, %s : tensor<?xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func private @helper(%{{.*}}: tensor<4xf32>)
func.func private @helper(%x: tensor<4xf32>) {
  return
}
