// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --split-input-file --verify-diagnostics --pgkp-codegen-nvvm=chip=sm_90 --pgkp-nvvm-to-ptx

// The neighbour that another thread writes may be old or new.
// expected-error @below {{destination argument #0 is read at other elements than the one that is written; this needs a second launch}}
pgkp.kernel private @shift(%o: tensor<?xf32>) -> (tensor<?xf32>) dims(m) args([m]) {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%o : tensor<?xf32>) {
  ^bb0(%_: f32):
    %i = linalg.index 0 : index
    %c2 = arith.constant 2 : index
    %j = arith.divui %i, %c2 : index
    %v = tensor.extract %o[%j] : tensor<?xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  pgkp.return %r : tensor<?xf32>
}

// -----

pgkp.kernel private @unknown(%a: tensor<?xf32>, %o: tensor<?xf32>) -> (tensor<?xf32>) dims(m) args([m], [m]) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // expected-error @below {{'scf.for' is not supported in a kernel for NVVM}}
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %a) -> tensor<?xf32> {
    scf.yield %t : tensor<?xf32>
  }
  pgkp.return %r : tensor<?xf32>
}

// -----

pgkp.kernel private @wide(%a: tensor<?xf64>, %o: tensor<?xf64>) -> (tensor<?xf64>) dims(m) args([m], [m]) {
  // expected-error @below {{'math.exp' on 'f64' has no form without a library for NVVM}}
  %r = linalg.exp ins(%a : tensor<?xf64>) outs(%o : tensor<?xf64>) -> tensor<?xf64>
  pgkp.return %r : tensor<?xf64>
}

// -----

// expected-error @below {{argument #0 of type 'tensor<?xf8E4M3FN>' is not supported in a kernel for NVVM}}
pgkp.kernel private @narrow(%a: tensor<?xf8E4M3FN>, %o: tensor<?xf32>) -> (tensor<?xf32>) dims(m) args([m], [m]) {
  pgkp.return %o : tensor<?xf32>
}

// -----

// expected-error @below {{fact on extent 3 of kernel 'facts', which has 1}}
pgkp.kernel private @facts(%a: tensor<?xf32>, %o: tensor<?xf32>) -> (tensor<?xf32>) dims(m) args([m], [m])
    attributes {pgkp.facts = [#pgkp.fact<d3 == 1>]} {
  pgkp.return %a : tensor<?xf32>
}
