// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --split-input-file --verify-diagnostics --pgkp-entry-destinations

// expected-error @below {{entry 'e': argument 1 has type 'index'; expected a ranked tensor}}
func.func @e(%x: tensor<?xf32>, %n: index) {
  return
}

// -----

// expected-error @below {{entry 'e': result 0 has type 'f32'; expected a ranked tensor}}
func.func @e(%x: tensor<?xf32>) -> f32 {
  %c = arith.constant 0.0 : f32
  return %c : f32
}

// -----

// expected-error @below {{entry 'e' is called; expected it to be inlined before it gets destinations}}
func.func @e(%x: tensor<?xf32>) {
  return
}
func.func @f(%x: tensor<?xf32>) {
  // expected-note @below {{called here}}
  call @e(%x) : (tensor<?xf32>) -> ()
  return
}
