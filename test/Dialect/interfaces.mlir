// RUN: pgkp-opt %s --split-input-file --test-pgkp-preparable --verify-diagnostics | FileCheck %s --check-prefix=PREPARE
// RUN: pgkp-opt %s --split-input-file --canonicalize --cse --loop-invariant-code-motion | FileCheck %s --check-prefix=CANON
// RUN: pgkp-opt %s --split-input-file --inline --sccp --symbol-dce | FileCheck %s --check-prefix=INLINE

// Not inlined although it is a call of a private symbol.
// INLINE-LABEL: pgkp.kernel private @scale
// INLINE-NOT: pgkp.kernel private @unused
// INLINE: pgkp.kernel private @prepared_only
// INLINE-LABEL: func.func @entry
// INLINE: pgkp.dispatch @scale

// expected-remark@+2 {{input #0 is [#pgkp.expr<s0>, #pgkp.expr<64>]}}
// expected-remark@+1 {{output #1 is [#pgkp.expr<s0>, #pgkp.expr<64>]}}
pgkp.kernel private @scale(%x: tensor<?x64xf32>, %out: tensor<?x64xf32>) -> tensor<?x64xf32>
    dims(m) args([m, 64], [m, 64]) attributes {cost = #pgkp.cost<flops = s0 * 64, bytes = s0 * 512>} {
  %r = linalg.exp ins(%x : tensor<?x64xf32>) outs(%out : tensor<?x64xf32>) -> tensor<?x64xf32>
  pgkp.return %r : tensor<?x64xf32>
}

// expected-remark@+1 {{output #0 is [#pgkp.expr<s0>]}}
pgkp.kernel private @unused(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
// expected-remark@+1 {{output #0 is [#pgkp.expr<s0>]}}
pgkp.kernel private @prepared_only(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])

// PREPARE-LABEL: func.func @entry(
// PREPARE-SAME:      %[[X:[a-z0-9]+]]: tensor<?x64xf32>
// CANON-LABEL: func.func @entry(
// CANON-SAME:      %[[X:[a-z0-9]+]]: tensor<?x64xf32>
// expected-remark@+1 {{entry with roots [batch]}}
func.func @entry(%x: tensor<?x64xf32> {pgkp.dims = ["batch", ""]}, %n: index) -> (tensor<?x64xf32>, index) {
  %c0 = arith.constant 0 : index
  // PREPARE: %[[M:.*]] = tensor.dim %[[X]]
  // CANON: %[[M:.*]] = tensor.dim %[[X]]
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  // Prepares stay, in place and all of them.
  // CANON: pgkp.prepare @prepared_only
  // CANON-NEXT: pgkp.prepare @prepared_only
  pgkp.prepare @prepared_only[%m]
  pgkp.prepare @prepared_only[%m]
  %init = tensor.empty(%m) : tensor<?x64xf32>
  // PREPARE: pgkp.prepare @scale[%[[M]]] {probability = 2.500000e-01 : f64, provenance = #pgkp.provenance<user>, slack = 5.000000e-01 : f64, stage = #pgkp.stage<compile>}
  // PREPARE-NEXT: pgkp.dispatch @scale
  // CANON: %[[R:.*]] = pgkp.dispatch @scale
  // expected-remark@+1 {{kernel @scale, source pgkp.kernel, cost #pgkp.cost<flops = s0 * 64, bytes = s0 * 512>}}
  %r = pgkp.dispatch @scale[%m] ins(%x : tensor<?x64xf32>) outs(%init : tensor<?x64xf32>) -> (tensor<?x64xf32>)
  // Equal and unused dispatches go.
  // CANON-NOT: pgkp.dispatch
  // expected-remark@+1 {{kernel @scale}}
  %s = pgkp.dispatch @scale[%m] ins(%x : tensor<?x64xf32>) outs(%init : tensor<?x64xf32>) -> (tensor<?x64xf32>)
  // expected-remark@+1 {{kernel @scale}}
  %unused = pgkp.dispatch @scale[%m] ins(%r : tensor<?x64xf32>) outs(%init : tensor<?x64xf32>) -> (tensor<?x64xf32>)
  // The extent of a result is that of its destination.
  // CANON: return %[[R]], %[[M]]
  %d = tensor.dim %s, %c0 : tensor<?x64xf32>
  return %s, %d : tensor<?x64xf32>, index
}

// -----

// A dispatch on tensors leaves a loop; a prepare in it stays.
// expected-remark@+2 {{input #0 is [#pgkp.expr<s0>]}}
// expected-remark@+1 {{output #1 is [#pgkp.expr<s0>]}}
pgkp.kernel private @k(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32> dims(m) args([m], [m]) {
  pgkp.return %out : tensor<?xf32>
}
// CANON-LABEL: func.func private @loop(
// CANON: pgkp.dispatch @k
// CANON: scf.for
// CANON-NEXT: pgkp.prepare @k
func.func private @loop(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?xf32> {
    pgkp.prepare @k[%n]
    // expected-remark@+1 {{kernel @k, source pgkp.kernel}}
    %s = pgkp.dispatch @k[%n] ins(%x : tensor<?xf32>) outs(%x : tensor<?xf32>) -> (tensor<?xf32>)
    %t = linalg.add ins(%a, %s : tensor<?xf32>, tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>
    scf.yield %t : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// -----

// On buffers nothing moves and nothing is dropped: the destination is written.
pgkp.kernel private @k(tensor<4xf32>) -> tensor<4xf32> dims() args([4]) // expected-remark {{output #0 is [#pgkp.expr<4>]}}
// CANON-LABEL: func.func private @buffers(
// CANON: scf.for
// CANON-NEXT: pgkp.dispatch @k[] outs(%{{.*}} : memref<4xf32>)
// CANON-NEXT: pgkp.dispatch @k[] outs(%{{.*}} : memref<4xf32>)
func.func private @buffers(%x: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    // expected-remark@+1 {{kernel @k, source pgkp.kernel}}
    pgkp.dispatch @k[] outs(%x : memref<4xf32>)
    // expected-remark@+1 {{kernel @k, source pgkp.kernel}}
    pgkp.dispatch @k[] outs(%x : memref<4xf32>)
  }
  return
}

// -----

// Casts fold into a dispatch; the kernel takes the more static operand.
pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m]) // expected-remark {{output #0 is [#pgkp.expr<s0>]}}
// CANON-LABEL: func.func private @casts(
// CANON: %[[R:.*]] = pgkp.dispatch @k[%{{.*}}] outs(%{{.*}} : tensor<4xf32>) -> (tensor<4xf32>)
// CANON: tensor.cast %[[R]]
func.func private @casts(%x: tensor<4xf32>) -> tensor<?xf32> {
  %c4 = arith.constant 4 : index
  %y = tensor.cast %x : tensor<4xf32> to tensor<?xf32>
  // expected-remark@+1 {{kernel @k, source pgkp.kernel}}
  %r = pgkp.dispatch @k[%c4] outs(%y : tensor<?xf32>) -> (tensor<?xf32>)
  return %r : tensor<?xf32>
}

// -----

// Roots in the stated order; without it, once each by first appearance.
// expected-remark@+1 {{entry with roots [kv, seq]}}
func.func @stated(%x: tensor<?x?xf32> {pgkp.dims = ["seq", "kv"]}) attributes {pgkp.roots = ["kv", "seq"]} {
  return
}
// expected-remark@+1 {{entry with roots [seq, kv]}}
func.func @appearance(%x: tensor<?x4x?xf32> {pgkp.dims = ["seq", "", "kv"]}, %y: tensor<?xf32> {pgkp.dims = ["seq"]}, %z: tensor<?xf32>) {
  return
}
