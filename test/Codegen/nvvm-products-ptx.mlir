// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --pgkp-codegen-nvvm=chip=sm_80 --pgkp-nvvm-to-ptx | FileCheck %s --implicit-check-not='.extern .func'
// RUN: pgkp-opt %s "--pgkp-codegen-nvvm=chip=sm_80 config={family = \"mma\", bm = 128, bn = 128, bk = 32, wm = 64, wn = 64}" --pgkp-nvvm-to-ptx | FileCheck %s --check-prefix=LARGE
// RUN: not pgkp-opt %s "--pgkp-codegen-nvvm=chip=sm_80 config={family = \"mma\", bm = 48}" 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not pgkp-opt %s "--pgkp-codegen-nvvm=chip=sm_80 config={family = \"mma\", bm = 256, bn = 256, bk = 128}" 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not pgkp-opt %s "--pgkp-codegen-nvvm=chip=sm_80 config=[1]" 2>&1 | FileCheck %s --check-prefix=DICT

// CHECK: shared_bytes = 65536 : i64
// CHECK: .target sm_80
// CHECK: .visible .entry pgkp_product(
// CHECK: cp.async.cg.shared.global
// CHECK: cp.async.commit_group
// CHECK-DAG: cp.async.wait_group
// CHECK-DAG: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-DAG: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK-DAG: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: st.global.v4.b32

// LARGE: grid = [#pgkp.expr<min(max((s0 ceildiv 128) * 2, 1), 2147483647)>
// LARGE: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32

// BAD: error: configuration #pgkp.config<{{.*}}> cannot be built: expected tiles of powers of two that warps divide
// DICT: error: option 'config' is '[1]'; expected a dictionary
pgkp.kernel private @product(%a: tensor<?x512xbf16>, %w: tensor<512x256xbf16>, %o: tensor<?x256xbf16>) -> (tensor<?x256xbf16>)
    dims(m) args([m, 512], [512, 256], [m, 256]) {
  %zero = arith.constant 0.0 : bf16
  %i = linalg.fill ins(%zero : bf16) outs(%o : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  %r = linalg.matmul ins(%a, %w : tensor<?x512xbf16>, tensor<512x256xbf16>) outs(%i : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  pgkp.return %r : tensor<?x256xbf16>
}
