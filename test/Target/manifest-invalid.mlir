// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --split-input-file --verify-diagnostics --pgkp-print-manifest

// expected-error @below {{entry 'e': argument 1 has type 'tensor<4xi3>'; expected a ranked tensor of f32, f16, bf16, f64, i1, i8, i16, i32, i64 or index}}
func.func @e(%x: tensor<?xf32>, %y: tensor<4xi3>) {
  return
}

// -----

// expected-error @below {{entry 'e': result 0 has type 'f32'}}
func.func @e(%x: tensor<?xf32>) -> f32 {
  %c = arith.constant 0.0 : f32
  return %c : f32
}

// -----

// expected-error @below {{entry 'e': dimension 0 of result 0 does not follow from the arguments' shapes; expected an expression over the entry's roots}}
func.func @e(%x: tensor<?xf32>, %count: tensor<index>) -> tensor<?xf32> {
  %n = tensor.extract %count[] : tensor<index>
  %e = tensor.empty(%n) : tensor<?xf32>
  return %e : tensor<?xf32>
}

// -----

// expected-error @below {{argument 0 of kernel 'k' has type 'tensor<4xi3>'}}
pgkp.kernel private @k(%x: tensor<4xi3>, %out: tensor<4xi3>) -> tensor<4xi3>
    dims() args([4], [4]) {
  pgkp.return %x : tensor<4xi3>
}
