// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --pgkp-codegen-nvvm=chip=sm_90 | FileCheck %s

// One thread 16 bytes where every tensor starts at a multiple of them, else one
// element; the grid covers all, the loops any other grid.
// CHECK-LABEL: pgkp.kernel private @add
// CHECK: gpu.module @add_sm_90 [#nvvm.target<O = 3, chip = "sm_90">]
// CHECK-SAME: block = array<i32: 128, 1, 1>
// CHECK-SAME: grid = [#pgkp.expr<min(max((s0 * 64) ceildiv 512, 1), 2147483647)>, #pgkp.expr<1>, #pgkp.expr<1>]
// CHECK-SAME: {index = 0 : i64, kind = "pointer"}, {index = 1 : i64, kind = "pointer"}, {index = 2 : i64, kind = "pointer"}, {index = 0 : i64, kind = "extent"}
// CHECK: llvm.func @pgkp_add(%[[A:.*]]: !llvm.ptr<1>, %[[B:.*]]: !llvm.ptr<1>, %[[O:.*]]: !llvm.ptr<1>, %[[M:.*]]: i64) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>}
// CHECK: scf.if
// CHECK: scf.for
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK-COUNT-4: arith.addf
// CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xf32>
// CHECK: else
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: arith.addf
// CHECK: llvm.store {{.*}} : f32
pgkp.kernel private @add(%a: tensor<?x64xf32>, %b: tensor<?x64xf32>, %o: tensor<?x64xf32>) -> (tensor<?x64xf32>)
    dims(m) args([m, 64], [m, 64], [m, 64]) {
  %r = linalg.add ins(%a, %b : tensor<?x64xf32>, tensor<?x64xf32>) outs(%o : tensor<?x64xf32>) -> tensor<?x64xf32>
  pgkp.return %r : tensor<?x64xf32>
}

// A product has tiles in a ring of stages; its epilogue is on the way to the result.
// CHECK-LABEL: gpu.module @matmul_sm_90
// CHECK-SAME: grid = [#pgkp.expr<min(max(s0 ceildiv 64, 1), 2147483647)>
// CHECK-SAME: shared_bytes = 18432 : i64
// CHECK: llvm.mlir.global external @dynamic_shared() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for {{.*}} iter_args
// CHECK: nvvm.cp.async.wait.group 1
// CHECK: nvvm.barrier
// CHECK: llvm.intr.fma
// CHECK: scf.yield
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: arith.negf
// CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// CHECK: arith.negf
// CHECK: llvm.store {{.*}} : f32, !llvm.ptr<1>
pgkp.kernel private @matmul(%a: tensor<?x?xf32>, %w: tensor<?x32xf32>, %o: tensor<?x32xf32>) -> (tensor<?x32xf32>)
    dims(m, k) args([m, k], [k, 32], [m, 32]) {
  %zero = arith.constant 0.0 : f32
  %i = linalg.fill ins(%zero : f32) outs(%o : tensor<?x32xf32>) -> tensor<?x32xf32>
  %p = linalg.matmul ins(%a, %w : tensor<?x?xf32>, tensor<?x32xf32>) outs(%i : tensor<?x32xf32>) -> tensor<?x32xf32>
  %r = linalg.negf ins(%p : tensor<?x32xf32>) outs(%o : tensor<?x32xf32>) -> tensor<?x32xf32>
  pgkp.return %r : tensor<?x32xf32>
}

// One block a row; it computes the maximum and the sum together.
// CHECK-LABEL: gpu.module @softmax_sm_90
// CHECK-SAME: grid = [#pgkp.expr<min(max(s0, 1), 2147483647)>, #pgkp.expr<1>, #pgkp.expr<1>]
// CHECK: llvm.mlir.global internal @partial_0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<128 x f32>
// CHECK: scf.for
// CHECK: %[[MAX:.*]] = scf.for {{.*}} iter_args
// CHECK: arith.maxnumf
// CHECK: nvvm.barrier
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args
// CHECK: math.exp
// CHECK: nvvm.barrier
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK: math.exp
// CHECK: arith.divf
// CHECK: llvm.store
pgkp.kernel private @softmax(%a: tensor<?x?xf32>, %o: tensor<?x?xf32>) -> (tensor<?x?xf32>)
    dims(m, n) args([m, n], [m, n]) {
  %r = linalg.softmax dimension(1) ins(%a : tensor<?x?xf32>) outs(%o : tensor<?x?xf32>) -> tensor<?x?xf32>
  pgkp.return %r : tensor<?x?xf32>
}

// Every part of a concatenation is read where it applies.
// CHECK-LABEL: gpu.module @concat_sm_90
// CHECK: scf.if
// CHECK: llvm.load
// CHECK: else
// CHECK: llvm.load
pgkp.kernel private @concat(%a: tensor<2x?xf32>, %b: tensor<2x?xf32>, %o: tensor<2x?xf32>) -> (tensor<2x?xf32>)
    dims(m, n, p) args([2, m], [2, n], [2, p]) {
  %r = tensor.concat dim(1) %a, %b : (tensor<2x?xf32>, tensor<2x?xf32>) -> tensor<2x?xf32>
  pgkp.return %r : tensor<2x?xf32>
}

// A fact is a constant in the code, and the parameter stays.
// CHECK-LABEL: gpu.module @fixed_sm_90
// CHECK: llvm.func @pgkp_fixed(%{{.*}}: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %[[M:.*]]: i64)
// CHECK: %[[N:.*]] = arith.constant 192 : index
// CHECK-NOT: arith.index_cast %[[M]]
// CHECK: scf.for %{{.*}} to %[[N]]
pgkp.kernel private @fixed(%a: tensor<?x64xf32>, %o: tensor<?x64xf32>) -> (tensor<?x64xf32>)
    dims(m) args([m, 64], [m, 64]) attributes {pgkp.facts = [#pgkp.fact<d0 == 3>]} {
  %r = linalg.negf ins(%a : tensor<?x64xf32>) outs(%o : tensor<?x64xf32>) -> tensor<?x64xf32>
  pgkp.return %r : tensor<?x64xf32>
}
