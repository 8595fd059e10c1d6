// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --pgkp-codegen-nvvm=chip=sm_90 --pgkp-nvvm-to-ptx | FileCheck %s
// RUN: pgkp-opt %s --pgkp-codegen-nvvm=chip=sm_90 --pgkp-nvvm-to-ptx | FileCheck %s --check-prefix=EXTERN --implicit-check-not='.extern .func'
// RUN: pgkp-opt %s "--pgkp-codegen-nvvm=chip=sm_80 features=+ptx80" --pgkp-nvvm-to-ptx | FileCheck %s --check-prefix=OLD
// RUN: pgkp-opt %s --pgkp-codegen-nvvm=chip=sm_90 --pgkp-nvvm-to-ptx=format=llvm | FileCheck %s --check-prefix=LLVM

// EXTERN: gpu.binary @math_sm_90
// OLD: .version 8.0{{.*}}.target sm_80
// LLVM: define ptx_kernel void @pgkp_math

// Functions of f32 are computed in place, those of f16 in f32.
// CHECK: gpu.binary @math_sm_90 [#gpu.object<#nvvm.target<O = 3, chip = "sm_90">, properties = {launch = {block = array<i32: 128, 1, 1>
// CHECK-SAME: assembly = "{{.*}}.target sm_90
// CHECK-SAME: .visible .entry pgkp_math(
// CHECK-SAME: .reqntid 128
pgkp.kernel private @math(%a: tensor<?xf32>, %b: tensor<?xf16>, %o: tensor<?xf32>) -> (tensor<?xf32>)
    dims(m) args([m], [m], [m]) {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<?xf32>, tensor<?xf16>) outs(%o : tensor<?xf32>) {
  ^bb0(%x: f32, %h: f16, %_: f32):
    %0 = math.exp %x : f32
    %1 = math.log %0 : f32
    %2 = math.tanh %1 : f32
    %3 = math.erf %2 : f32
    %4 = math.rsqrt %3 : f32
    %5 = math.powf %4, %0 : f32
    %6 = math.sin %5 : f32
    %7 = math.cos %6 : f32
    %8 = math.exp %h : f16
    %9 = arith.extf %8 : f16 to f32
    %10 = arith.addf %7, %9 : f32
    linalg.yield %10 : f32
  } -> tensor<?xf32>
  pgkp.return %r : tensor<?xf32>
}
