// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --split-input-file --verify-diagnostics --convert-pgkp-to-llvm

// expected-error @below {{entry 'e' has no context argument; expected 'pgkp-entry-destinations' to run first}}
func.func @e(%x: memref<?xf32>) {
  return
}

// -----

// expected-error @below {{entry 'e' argument 2 has type 'tensor<?xf32>'; expected a memref of identity layout}}
func.func @e(%ctx: !llvm.ptr, %x: memref<?xf32>, %y: tensor<?xf32>) {
  return
}

// -----

pgkp.kernel private @k(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(n) args([n], [n])
func.func private @helper(%x: memref<?xf32>, %n: index) {
  // expected-error @below {{'pgkp.dispatch' op is in 'helper', which is no entry; expected it to be inlined into one}}
  pgkp.dispatch @k[%n] ins(%x : memref<?xf32>) outs(%x : memref<?xf32>)
  return
}

// -----

func.func @e(%ctx: !llvm.ptr, %x: memref<?xf32>, %n: memref<?xf32>) {
  // expected-error @below {{allocates 'memref<4xf32, strided<[2]>>'; expected an identity layout and scalar elements}}
  %a = memref.alloc() : memref<4xf32, strided<[2]>>
  return
}

// -----

pgkp.kernel private @k(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(n) args([n], [n])
func.func @e(%ctx: !llvm.ptr, %x: memref<?xf32>, %n: index) {
  return
}
// expected-error @-3 {{entry 'e' argument 2 has type 'index'; expected a memref of identity layout}}

// -----

pgkp.kernel private @k(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(n) args([n], [n])
func.func @e(%ctx: !llvm.ptr, %x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %t = tensor.empty(%n) : tensor<?xf32>
  // expected-error @below {{has tensor results; expected it to be bufferized}}
  %r = pgkp.dispatch @k[%n] ins(%t : tensor<?xf32>) outs(%t : tensor<?xf32>) -> (tensor<?xf32>)
  return
}
