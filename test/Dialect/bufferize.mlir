// RUN: pgkp-opt %s --one-shot-bufferize=bufferize-function-boundaries | FileCheck %s

pgkp.kernel private @k(tensor<?x4xf32>, f32, tensor<?x4xf32>) -> tensor<?x4xf32> dims(m) args([m, 4], [], [m, 4])

// The destination's buffer is the result's.
// CHECK-LABEL: func.func @in_place(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: memref<?x4xf32, strided<[?, ?], offset: ?>>, %[[S:[a-z0-9]+]]: f32
// CHECK:         %[[ALLOC:.*]] = memref.alloc(%[[M:.*]]) {{.*}}: memref<?x4xf32>
// The argument's layout is unknown: the kernel gets a copy.
// CHECK:         %[[COPY:.*]] = memref.alloc(%{{.*}}) {{.*}}: memref<?x4xf32>
// CHECK:         memref.copy %[[X]], %[[COPY]]
// CHECK:         pgkp.dispatch @k[%[[M]]] ins(%[[COPY]], %[[S]] : memref<?x4xf32>, f32) outs(%[[ALLOC]] : memref<?x4xf32>){{$}}
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @in_place(%x: tensor<?x4xf32>, %s: f32) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x4xf32>
  %init = tensor.empty(%m) : tensor<?x4xf32>
  %r = pgkp.dispatch @k[%m] ins(%x, %s : tensor<?x4xf32>, f32) outs(%init : tensor<?x4xf32>) -> (tensor<?x4xf32>)
  return %r : tensor<?x4xf32>
}

// A destination that is a slice: computed in a copy, copied back.
// CHECK-LABEL: func.func @slice(
// CHECK:         %[[BASE:.*]] = memref.alloc(%[[M:.*]]) {{.*}}: memref<?x8xf32>
// CHECK:         %[[VIEW:.*]] = memref.subview %[[BASE]]
// CHECK:         memref.alloc(%{{.*}}) {{.*}}: memref<?x4xf32>
// CHECK:         %[[TMP:.*]] = memref.alloc(%{{.*}}) {{.*}}: memref<?x4xf32>
// CHECK:         memref.copy %[[VIEW]], %[[TMP]]
// CHECK:         pgkp.dispatch @k[%{{.*}}] ins(%{{.*}}) outs(%[[TMP]] : memref<?x4xf32>){{$}}
// CHECK:         memref.copy %[[TMP]], %[[VIEW]]
func.func @slice(%x: tensor<?x4xf32>, %s: f32) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x4xf32>
  %base = tensor.empty(%m) : tensor<?x8xf32>
  %init = tensor.extract_slice %base[0, 4] [%m, 4] [1, 1] : tensor<?x8xf32> to tensor<?x4xf32>
  %r = pgkp.dispatch @k[%m] ins(%x, %s : tensor<?x4xf32>, f32) outs(%init : tensor<?x4xf32>) -> (tensor<?x4xf32>)
  %all = tensor.insert_slice %r into %base[0, 4] [%m, 4] [1, 1] : tensor<?x4xf32> into tensor<?x8xf32>
  return %all : tensor<?x8xf32>
}

// A destination that is read again later is copied first.
// CHECK-LABEL: func.func @conflict(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: memref<?x4xf32
// CHECK:         %[[OUT:.*]] = memref.alloc
// CHECK:         memref.copy %[[X]], %[[OUT]]
// CHECK:         pgkp.dispatch @k[%{{.*}}] ins({{.*}}) outs(%[[OUT]] : memref<?x4xf32>){{$}}
// CHECK:         return %[[OUT]], %[[X]]
func.func @conflict(%x: tensor<?x4xf32> {bufferization.buffer_layout = affine_map<(i, j) -> (i, j)>}, %s: f32, %m: index)
    -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %r = pgkp.dispatch @k[%m] ins(%x, %s : tensor<?x4xf32>, f32) outs(%x : tensor<?x4xf32>) -> (tensor<?x4xf32>)
  return %r, %x : tensor<?x4xf32>, tensor<?x4xf32>
}

// Attributes stay; buffers of identity layout are passed as they are.
// CHECK-LABEL: func.func @chain(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: memref<?x4xf32>
// CHECK-NOT:     memref.copy
// CHECK:         pgkp.dispatch @k[%{{.*}}] {note = 1 : i64} ins(%[[X]], %{{.*}}) outs(%[[A:.*]] : memref<?x4xf32>){{$}}
// CHECK-NOT:     memref.copy
// CHECK:         pgkp.dispatch @k[%{{.*}}] ins(%[[A]], %{{.*}}) outs(%[[B:.*]] : memref<?x4xf32>){{$}}
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @chain(%x: tensor<?x4xf32> {bufferization.buffer_layout = affine_map<(i, j) -> (i, j)>}, %s: f32, %m: index) -> tensor<?x4xf32> {
  %i0 = tensor.empty(%m) : tensor<?x4xf32>
  %i1 = tensor.empty(%m) : tensor<?x4xf32>
  pgkp.prepare @k[%m]
  %a = pgkp.dispatch @k[%m] {note = 1} ins(%x, %s : tensor<?x4xf32>, f32) outs(%i0 : tensor<?x4xf32>) -> (tensor<?x4xf32>)
  %b = pgkp.dispatch @k[%m] ins(%a, %s : tensor<?x4xf32>, f32) outs(%i1 : tensor<?x4xf32>) -> (tensor<?x4xf32>)
  return %b : tensor<?x4xf32>
}
