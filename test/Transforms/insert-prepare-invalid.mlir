// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: not pgkp-opt %s --pgkp-insert-prepare=branch-probability=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not pgkp-opt %s --pgkp-insert-prepare=branch-probability=1.5 2>&1 | FileCheck %s --check-prefix=MORE

// ZERO: error: option 'branch-probability' is 0.000000e+00; expected a number in (0, 1]
// MORE: error: option 'branch-probability' is 1.500000e+00; expected a number in (0, 1]
module {
}
