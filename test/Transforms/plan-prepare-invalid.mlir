// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: not pgkp-opt %s --pgkp-plan-prepare=min-probability=-1 2>&1 | FileCheck %s --check-prefix=PROBABILITY
// RUN: not pgkp-opt %s --pgkp-plan-prepare=flops-per-second=0 2>&1 | FileCheck %s --check-prefix=FLOPS
// RUN: not pgkp-opt %s --pgkp-plan-prepare=bytes-per-second=-1 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not pgkp-opt %s --pgkp-plan-prepare=typical-extent=0 2>&1 | FileCheck %s --check-prefix=EXTENT

// PROBABILITY: error: option 'min-probability' is -1.000000e+00; expected a number in [0, 1]
// FLOPS: error: option 'flops-per-second' is 0.000000e+00; expected a number greater than 0
// BYTES: error: option 'bytes-per-second' is -1.000000e+00; expected a number greater than 0
// EXTENT: error: option 'typical-extent' is 0; expected at least 1
module {
}
