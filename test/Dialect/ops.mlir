// RUN: pgkp-opt %s | FileCheck %s
// RUN: pgkp-opt %s | pgkp-opt | FileCheck %s
// RUN: pgkp-opt %s --mlir-print-op-generic | pgkp-opt | FileCheck %s

// CHECK-LABEL: pgkp.kernel private @matmul(
// CHECK-SAME:      %[[A:[a-z0-9]+]]: tensor<?x64xf32>, %[[W:[a-z0-9]+]]: tensor<64x128xf32> {pgkp.persistent}, %[[OUT:[a-z0-9]+]]: tensor<?x128xf32>)
// CHECK-SAME:      -> tensor<?x128xf32> dims(m) args([m, 64], [64, 128], [m, 128])
// CHECK-SAME:      attributes {classes = [#pgkp.class<[] probability 1.000000e+00 provenance structure>, #pgkp.class<[d0 == 1] probability 5.000000e-01 provenance profile>],
// CHECK-SAME:                  config_space = [#pgkp.config<{mr = 6 : i64, script = "packed"}>],
// CHECK-SAME:                  cost = #pgkp.cost<flops = s0 * 16384, bytes = s0 * 768 + 32768>, family = "matmul"} {
// CHECK-NEXT:    %[[R:.*]] = linalg.matmul ins(%[[A]], %[[W]]
// CHECK-NEXT:    pgkp.return %[[R]] : tensor<?x128xf32>
pgkp.kernel private @matmul(%a: tensor<?x64xf32>, %w: tensor<64x128xf32> {pgkp.persistent}, %out: tensor<?x128xf32>)
    -> (tensor<?x128xf32>)
    dims(m) args([m, 64], [64, 128], [m, 128])
    attributes {classes = [#pgkp.class<[] probability 1.0 provenance structure>,
                           #pgkp.class<[d0 == 1] probability 0.5 provenance profile>],
                config_space = [#pgkp.config<{script = "packed", mr = 6}>],
                cost = #pgkp.cost<flops = 2 * 64 * 128 * s0, bytes = 4 * (s0 * 64 + 64 * 128 + s0 * 128)>,
                family = "matmul"} {
  %r = linalg.matmul ins(%a, %w : tensor<?x64xf32>, tensor<64x128xf32>) outs(%out : tensor<?x128xf32>) -> tensor<?x128xf32>
  pgkp.return %r : tensor<?x128xf32>
}

// Two results, two symbols, scalars, a rank-0 tensor.
// CHECK-LABEL: pgkp.kernel private @two(
// CHECK-SAME:      -> (tensor<?x?xf32>, tensor<f32>) dims(m, n) args([n], [], [], [m, n], []) {
pgkp.kernel private @two(%x: tensor<?xf32>, %s: f32, %i: index, %o0: tensor<?x?xf32>, %o1: tensor<f32>)
    -> (tensor<?x?xf32>, tensor<f32>) dims(m, n) args([n], [], [], [m, n], []) {
  pgkp.return %o0, %o1 : tensor<?x?xf32>, tensor<f32>
}

// A static kernel has no symbols; its name is a string if it is not an identifier.
// CHECK-LABEL: pgkp.kernel private @static(
// CHECK-SAME:      dims() args([4]) {
pgkp.kernel private @static(%o: tensor<4xf32>) -> tensor<4xf32> dims() args([4]) {
  pgkp.return %o : tensor<4xf32>
}

// CHECK: pgkp.kernel private @quoted(tensor<?xf32>) -> tensor<?xf32> dims("a b") args(["a b"])
pgkp.kernel private @quoted(tensor<?xf32>) -> tensor<?xf32> dims("a b") args(["a b"])

// A declaration, as a module keeps it once its kernels were exported.
// CHECK: pgkp.kernel private @declared(tensor<?x?xi32> {pgkp.range = [0, 31999]}, tensor<?xf32>) -> tensor<?xf32> dims(b, s) args([b, s], [b]) attributes {family = "row"}{{$}}
pgkp.kernel private @declared(tensor<?x?xi32> {pgkp.range = [0, 31999]}, tensor<?xf32>) -> tensor<?xf32>
    dims(b, s) args([b, s], [b]) attributes {family = "row"}

// CHECK-LABEL: func.func @entry(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: tensor<?x64xf32> {pgkp.dims = ["batch", ""]}
// CHECK-SAME:      %{{[a-z0-9]+}}: tensor<?x64xf32> {pgkp.dims = ["batch", ""]}
// CHECK-SAME:      %[[WW:[a-z0-9]+]]: tensor<64x128xf32> {pgkp.persistent}
// CHECK-SAME:      %{{[a-z0-9]+}}: tensor<?x128xf32> {pgkp.dims = ["kv", ""], pgkp.persistent}
// CHECK-SAME:      tensor<?x128xf32> {pgkp.carries = 3 : i64})
func.func @entry(%x: tensor<?x64xf32> {pgkp.dims = ["batch", ""]}, %e: tensor<?x64xf32> {pgkp.dims = ["batch", ""]},
                 %w: tensor<64x128xf32> {pgkp.persistent}, %c: tensor<?x128xf32> {pgkp.persistent, pgkp.dims = ["kv", ""]})
    -> (tensor<?x128xf32>, tensor<?x128xf32> {pgkp.carries = 3 : i64}) {
  %c0 = arith.constant 0 : index
  // CHECK: %[[M:.*]] = tensor.dim %[[X]]
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %kv = tensor.dim %c, %c0 : tensor<?x128xf32>
  // CHECK: pgkp.observe @entry[%[[M]], %{{.*}}]{{$}}
  pgkp.observe @entry[%m, %kv]
  // Defaults are not printed.
  // CHECK: pgkp.prepare @matmul[%[[M]]]{{$}}
  pgkp.prepare @matmul[%m] {probability = 1.0 : f64, slack = 0.0 : f64, stage = #pgkp.stage<load>, provenance = #pgkp.provenance<structure>}
  // CHECK: pgkp.prepare @matmul[%[[M]]] {probability = 5.000000e-01 : f64, provenance = #pgkp.provenance<announcement>, slack = 1.000000e-02 : f64, stage = #pgkp.stage<tune>}
  pgkp.prepare @matmul[%m] {probability = 0.5 : f64, slack = 0.01 : f64, stage = #pgkp.stage<tune>, provenance = #pgkp.provenance<announcement>}
  // CHECK: pgkp.prepare @static[]{{$}}
  pgkp.prepare @static[]
  // CHECK: pgkp.await @matmul[%[[M]]] {timeout_us = 1000 : i64}
  pgkp.await @matmul[%m] {timeout_us = 1000 : i64}
  %init = tensor.empty(%m) : tensor<?x128xf32>
  // CHECK: %[[D:.*]] = pgkp.dispatch @matmul[%[[M]]] ins(%[[X]], %[[WW]] : tensor<?x64xf32>, tensor<64x128xf32>) outs(%{{.*}} : tensor<?x128xf32>) -> (tensor<?x128xf32>)
  %r = pgkp.dispatch @matmul[%m] ins(%x, %w : tensor<?x64xf32>, tensor<64x128xf32>) outs(%init : tensor<?x128xf32>) -> (tensor<?x128xf32>)
  return %r, %c : tensor<?x128xf32>, tensor<?x128xf32>
}

// CHECK-LABEL: func.func @buffers(
func.func @buffers(%x: memref<?x64xf32>, %w: memref<64x128xf32>, %o: memref<?x128xf32>, %m: index) {
  // CHECK: pgkp.dispatch @matmul[%{{.*}}] {note = "x"} ins(%{{.*}}, %{{.*}} : memref<?x64xf32>, memref<64x128xf32>) outs(%{{.*}} : memref<?x128xf32>){{$}}
  pgkp.dispatch @matmul[%m] {note = "x"} ins(%x, %w : memref<?x64xf32>, memref<64x128xf32>) outs(%o : memref<?x128xf32>)
  return
}

// Operands may be more static than the kernel's arguments; `ins` may be absent.
// CHECK-LABEL: func.func @more_static(
func.func @more_static(%x: tensor<1x64xf32>, %w: tensor<64x128xf32>, %o: tensor<1x128xf32>, %q: tensor<4xf32>) -> (tensor<1x128xf32>, tensor<4xf32>) {
  %c1 = arith.constant 1 : index
  // CHECK: -> (tensor<1x128xf32>)
  %r = pgkp.dispatch @matmul[%c1] ins(%x, %w : tensor<1x64xf32>, tensor<64x128xf32>) outs(%o : tensor<1x128xf32>) -> (tensor<1x128xf32>)
  // CHECK: pgkp.dispatch @static[] outs(%{{.*}} : tensor<4xf32>) -> (tensor<4xf32>)
  %s = pgkp.dispatch @static[] outs(%q : tensor<4xf32>) -> (tensor<4xf32>)
  return %r, %s : tensor<1x128xf32>, tensor<4xf32>
}

// The order of roots is stated, and includes those that no argument names.
// CHECK: func.func @roots(%{{.*}}: tensor<?x?xf32> {pgkp.dims = ["a", ""]}) attributes {pgkp.roots = ["r", "a"]}
func.func @roots(%x: tensor<?x?xf32> {pgkp.dims = ["a", ""]}) attributes {pgkp.roots = ["r", "a"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tensor.dim %x, %c0 : tensor<?x?xf32>
  %r = tensor.dim %x, %c1 : tensor<?x?xf32>
  pgkp.observe @roots[%r, %a]
  return
}

// A prepare may stand in a loop that is not parallel.
// CHECK-LABEL: func.func @serial_loop(
func.func @serial_loop(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    // CHECK: pgkp.prepare @matmul[%{{.*}}]
    pgkp.prepare @matmul[%i]
  }
  return
}

// Passes may mark the arguments and results of private functions.
// CHECK: func.func private @marked(tensor<?xf32> {pgkp.anything = 1 : i64}) -> (f32 {pgkp.anything = 2 : i64})
func.func private @marked(tensor<?xf32> {pgkp.anything = 1 : i64}) -> (f32 {pgkp.anything = 2 : i64})
