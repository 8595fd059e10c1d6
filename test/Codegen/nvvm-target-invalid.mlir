// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LLVM ends the process on targets that it does not know; each must be one error before.
// RUN: not pgkp-opt %s --pgkp-codegen-nvvm=chip=sm_12345 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not pgkp-opt %s --pgkp-codegen-nvvm=chip=gfx90a 2>&1 | FileCheck %s --check-prefix=VENDOR
// RUN: not pgkp-opt %s "--pgkp-codegen-nvvm=chip=sm_90 features=+ptx12345" 2>&1 | FileCheck %s --check-prefix=FEATURES
// RUN: not pgkp-opt %s "--pgkp-codegen-nvvm=chip=sm_90a features=+ptx70" 2>&1 | FileCheck %s --check-prefix=PTX
// RUN: not pgkp-opt %s --pgkp-codegen-nvvm=chip=sm_90 --pgkp-nvvm-to-ptx=opt-level=4 2>&1 | FileCheck %s --check-prefix=LEVEL
// RUN: not pgkp-opt %s --pgkp-codegen-nvvm=chip=sm_90 --pgkp-nvvm-to-ptx=format=elf 2>&1 | FileCheck %s --check-prefix=FORMAT

// CHIP: error: unknown chip 'sm_12345'; expected one that LLVM 22{{.*}} knows, such as sm_80, sm_90 or sm_90a
// VENDOR: error: unknown chip 'gfx90a'
// FEATURES: error: unknown features '+ptx12345'; expected none or '+ptxNN' with a PTX version that LLVM knows
// PTX: error: features '+ptx70' are too old for chip 'sm_90a', which needs at least '+ptx80'
// LEVEL: error: 'opt-level' is 4; expected 0 to 3
// FORMAT: error: 'format' is 'elf'; expected 'ptx' or 'llvm'
pgkp.kernel private @copy(%a: tensor<?xf32>, %o: tensor<?xf32>) -> (tensor<?xf32>) dims(m) args([m], [m]) {
  pgkp.return %a : tensor<?xf32>
}
