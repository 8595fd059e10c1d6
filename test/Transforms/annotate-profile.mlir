// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Classes that earlier runs used come with the share of runs that used them; the
// lattice fills up what is left. A profile of another kernel is not used.
// RUN: pgkp-opt %s --pgkp-print-manifest=hashes -o %t.mlir | awk '$1 == "hash" {printf $2}' > %t.hash
// RUN: %python %S/Inputs/make_profile.py %S/../../runtime/schema/profile.fbs %t.profile 8 \
// RUN:   $(cat %t.hash):0=40:8 $(cat %t.hash):0=1:3 0000000000000000000000000000000000000000000000000000000000000000:0=9:8 $(cat %t.hash):7=1:8
// RUN: pgkp-opt %s --pgkp-annotate-specializations="profile=%t.profile max-classes=4" --pgkp-print-manifest -o %t.out.mlir | FileCheck %s
// RUN: pgkp-opt %s --pgkp-annotate-specializations=profile=%t.profile --remarks-filter=pgkp -o %t.out.mlir 2>&1 | FileCheck %s --check-prefix=REMARK

// CHECK:      class [m == 1] probability 0.4000 profile
// CHECK-NEXT: class [m == 40] probability 0.9000 profile
// CHECK-NEXT: class [m in [2, 63]] probability 0.4000 structure
// CHECK-NEXT: class [m mod 16 == 0] probability 0.0219 structure
// CHECK-NOT:  class
// REMARK: profile has a fact that does not fit kernel 'product'
// REMARK: 4 classes, 2 from the profile
pgkp.kernel private @product(%a: tensor<?x64xf32>, %w: tensor<64x32xf32>, %out: tensor<?x32xf32>) -> tensor<?x32xf32>
    dims(m) args([m, 64], [64, 32], [m, 32]) {
  %zero = arith.constant 0.0 : f32
  %i = linalg.fill ins(%zero : f32) outs(%out : tensor<?x32xf32>) -> tensor<?x32xf32>
  %r = linalg.matmul ins(%a, %w : tensor<?x64xf32>, tensor<64x32xf32>) outs(%i : tensor<?x32xf32>) -> tensor<?x32xf32>
  pgkp.return %r : tensor<?x32xf32>
}
