// Bytecode keeps everything: read back, the module prints as the text does.
// RUN: pgkp-opt %s -o %t.text.mlir
// RUN: pgkp-opt %s --emit-bytecode -o %t.mlirbc
// RUN: pgkp-opt %t.mlirbc -o %t.back.mlir
// RUN: diff %t.text.mlir %t.back.mlir
// RUN: FileCheck %s < %t.back.mlir

// The file is bytecode, not text.
// RUN: head -c 4 %t.mlirbc | od -An -c | FileCheck %s --check-prefix=MAGIC
// MAGIC: M L

// Every attribute kind of the dialect, on operations that take them.
// CHECK: pgkp.kernel private @k
// CHECK-SAME: classes = [#pgkp.class<[d0 == 1] probability 0.33333333333333331 provenance profile>, #pgkp.class<[d0 mod 16 == 0, d0 in [16, 4096]] probability 2.500000e-01 provenance history>]
// CHECK-SAME: config_space = [#pgkp.config<{script = "packed", tiles = array<i64: 6, 16>}>]
// CHECK-SAME: cost = #pgkp.cost<flops = s0 * 2 + 1, bytes = min(s0, 7) * 4>
pgkp.kernel private @k(%o: tensor<?xf32>) -> tensor<?xf32> dims(m) args([m]) attributes {
    classes = [#pgkp.class<[d0 == 1] probability 0.33333333333333331 provenance profile>,
               #pgkp.class<[d0 mod 16 == 0, d0 in [16, 4096]] probability 0.25 provenance history>],
    config_space = [#pgkp.config<{script = "packed", tiles = array<i64: 6, 16>}>],
    cost = #pgkp.cost<flops = 2 * s0 + 1, bytes = 4 * min(s0, 7)>} {
  pgkp.return %o : tensor<?xf32>
}

// CHECK: func.func @entry(%{{.*}}: tensor<?xf32> {pgkp.dims = ["n"], pgkp.persistent}, %{{.*}}: tensor<?xi32> {pgkp.range = [-1, 5]}) -> (tensor<?xf32> {pgkp.carries = 0 : i64})
// CHECK-SAME: test.fact = #pgkp.fact<d0 == 3>
func.func @entry(%x: tensor<?xf32> {pgkp.dims = ["n"], pgkp.persistent}, %i: tensor<?xi32> {pgkp.range = [-1, 5]})
    -> (tensor<?xf32> {pgkp.carries = 0 : i64}) attributes {test.fact = #pgkp.fact<d0 == 3>, pgkp.roots = ["n"]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  pgkp.observe @entry[%n]
  pgkp.prepare @k[%n] {probability = 0.1 : f64, slack = 1.0e-3 : f64, stage = #pgkp.stage<generate>, provenance = #pgkp.provenance<history>}
  pgkp.await @k[%n] {timeout_us = 7 : i64}
  %r = pgkp.dispatch @k[%n] outs(%x : tensor<?xf32>) -> (tensor<?xf32>)
  return %r : tensor<?xf32>
}
