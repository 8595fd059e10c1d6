// RUN: pgkp-opt %s --split-input-file --verify-diagnostics --pgkp-codegen-host
// RUN: not pgkp-opt %S/codegen-host.mlir --pgkp-codegen-host='config=]' 2>&1 | FileCheck %s

// CHECK: error: option 'config' is ']'; expected a dictionary

// expected-error @+1 {{has no body to generate code from}}
pgkp.kernel private @declaration(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> dims(n) args([n], [n])

// -----

// expected-error @+1 {{argument #0 has type 'tensor<?xcomplex<f32>>'; expected elements that are integers, indices or floats}}
pgkp.kernel private @complex(%x: tensor<?xcomplex<f32>>, %o: tensor<?xcomplex<f32>>) -> tensor<?xcomplex<f32>> dims(n) args([n], [n]) {
  pgkp.return %x : tensor<?xcomplex<f32>>
}
