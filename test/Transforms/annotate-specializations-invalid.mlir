// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: not pgkp-opt %s --pgkp-annotate-specializations=max-classes=0 2>&1 | FileCheck %s --check-prefix=CLASSES
// RUN: not pgkp-opt %s --pgkp-annotate-specializations=divisor=1 2>&1 | FileCheck %s --check-prefix=DIVISOR
// RUN: not pgkp-opt %s --pgkp-annotate-specializations=profile=%t.none 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not pgkp-opt %s --pgkp-annotate-specializations=profile=%s 2>&1 | FileCheck %s --check-prefix=DAMAGED

// CLASSES: error: option 'max-classes' is 0; expected 1 to 64
// DIVISOR: error: option 'divisor' is 1; expected at least 2
// MISSING: error: cannot read profile: {{.*}}.none
// DAMAGED: error: cannot read profile: {{.*}}annotate-specializations-invalid.mlir
module {
}
