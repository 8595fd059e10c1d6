// RUN: pgkp-opt %s --split-input-file --verify-diagnostics --pgkp-codegen-host
// RUN: not pgkp-opt %S/codegen-host.mlir --pgkp-codegen-host='config=packed' 2>&1 | FileCheck %s

// CHECK: error: option 'config' is 'packed'; expected a dictionary

// expected-error @+1 {{has no body to generate code from}}
pgkp.kernel private @declaration(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> dims(n) args([n], [n])

// -----

// expected-error @+1 {{argument #0 has type 'tuple<f32>'; expected a ranked tensor or a scalar}}
pgkp.kernel private @tuple(%x: tuple<f32>, %o: tensor<?xf32>) -> tensor<?xf32> dims(n) args([], [n]) {
  pgkp.return %o : tensor<?xf32>
}
