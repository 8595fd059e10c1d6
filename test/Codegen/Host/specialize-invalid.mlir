// RUN: not pgkp-opt %s --pgkp-specialize='facts="d1 == 1"' 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: not pgkp-opt %s --pgkp-specialize='facts="d0 == 1" kernel=nobody' 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not pgkp-opt %s --pgkp-specialize='facts="d0 = 1"' 2>&1 | FileCheck %s --check-prefix=SYNTAX
// RUN: not pgkp-opt %s --pgkp-specialize='facts="d0 == 3; d0 mod 2 == 0"' 2>&1 | FileCheck %s --check-prefix=EXCLUDE

// DIM: specialize-invalid.mlir:[[@LINE+4]]:1: error: 'pgkp.kernel' op fact {{.*}} is about extent 1; the kernel has 1
// NAME: error: has no kernel 'nobody'
// SYNTAX: error: option 'facts' has 'd0 = 1'; expected a fact such as 'd0 == 1'
// EXCLUDE: error: 'pgkp.kernel' op
pgkp.kernel private @k(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> dims(n) args([n], [n]) {
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) -> tensor<?xf32>
  pgkp.return %r : tensor<?xf32>
}
