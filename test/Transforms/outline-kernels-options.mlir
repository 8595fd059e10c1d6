// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --pgkp-outline-kernels | FileCheck %s --check-prefixes=CHECK,FUSED
// RUN: pgkp-opt %s --pgkp-outline-kernels=fuse-elementwise=false | FileCheck %s --check-prefixes=CHECK,PLAIN
// RUN: pgkp-opt %s --pgkp-outline-kernels="fuse-elementwise=false max-ops=1" | FileCheck %s --check-prefix=SINGLE
// RUN: pgkp-opt %s --pgkp-outline-kernels --remarks-filter=pgkp -o %t 2>&1 | FileCheck %s --check-prefix=REMARK

// CHECK:  pgkp.kernel private @elementwise_0
// FUSED:    linalg.generic
// FUSED:      arith.mulf
// FUSED-NEXT: math.exp
// PLAIN:    linalg.generic
// PLAIN:      arith.mulf
// PLAIN:    linalg.generic
// PLAIN:      math.exp
// CHECK-LABEL: func.func @chain
// CHECK:    pgkp.dispatch @elementwise_0
// CHECK-NOT: pgkp.dispatch

// SINGLE: pgkp.dispatch @elementwise_0
// SINGLE: pgkp.dispatch @elementwise_1

// REMARK: remark: {{.*}}Category:pgkp{{.*}}Function=chain{{.*}}'elementwise_0': 1 operations, 2 inputs, 1 results, 1 dynamic extents
#id = affine_map<(d0) -> (d0)>
func.func @chain(%x: tensor<?xf32> {pgkp.dims = ["n"]}, %y: tensor<?xf32> {pgkp.dims = ["n"]}) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %p = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%a: f32, %b: f32, %_: f32):
      %v = arith.mulf %a, %b : f32
      linalg.yield %v : f32
  } -> tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%p : tensor<?xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%a: f32, %_: f32):
      %v = math.exp %a : f32
      linalg.yield %v : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
