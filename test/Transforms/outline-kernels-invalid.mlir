// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --verify-diagnostics --pgkp-outline-kernels=max-ops=0

// expected-error @below {{option 'max-ops' is 0; expected at least 1}}
module {
}
