// RUN: pgkp-opt %s --allow-unregistered-dialect | FileCheck %s
// RUN: pgkp-opt %s --allow-unregistered-dialect | pgkp-opt --allow-unregistered-dialect | FileCheck %s
// RUN: pgkp-opt %s --allow-unregistered-dialect --emit-bytecode | pgkp-opt --allow-unregistered-dialect | FileCheck %s

// Canonical forms of expressions.
// CHECK-LABEL: "test.expressions"
"test.expressions"() {
  // CHECK-SAME: e00 = #pgkp.expr<s0 * s1 + 4>
  e00 = #pgkp.expr<4 + s1 * s0>,
  // CHECK-SAME: e01 = #pgkp.expr<7>
  e01 = #pgkp.expr<1 + 2 * 3>,
  // CHECK-SAME: e02 = #pgkp.expr<s0 * 5 - s1>
  e02 = #pgkp.expr<s0 + 3 * s0 - s1 + s0>,
  // CHECK-SAME: e03 = #pgkp.expr<0>
  e03 = #pgkp.expr<s0 - s0>,
  // CHECK-SAME: e04 = #pgkp.expr<s0 * s1 + s0 * 2 + s1 * 3 + 6>
  e04 = #pgkp.expr<(s0 + 3) * (s1 + 2)>,
  // CHECK-SAME: e05 = #pgkp.expr<s1 + s0 * 2>
  e05 = #pgkp.expr<(s0 * 32 + 16 * s1 + 3) floordiv 16>,
  // CHECK-SAME: e06 = #pgkp.expr<s1 + s0 * 2 + 1>
  e06 = #pgkp.expr<(s0 * 32 + 16 * s1 + 3) ceildiv 16>,
  // CHECK-SAME: e07 = #pgkp.expr<3>
  e07 = #pgkp.expr<(s0 * 32 + 16 * s1 + 3) mod 16>,
  // CHECK-SAME: e08 = #pgkp.expr<(s0 + 4) floordiv 16 + 1>
  e08 = #pgkp.expr<(s0 + 20) floordiv 16>,
  // CHECK-SAME: e09 = #pgkp.expr<s0 floordiv 12>
  e09 = #pgkp.expr<(s0 floordiv 3) floordiv 4>,
  // CHECK-SAME: e10 = #pgkp.expr<s0 ceildiv 12>
  e10 = #pgkp.expr<(s0 ceildiv 3) ceildiv 4>,
  // CHECK-SAME: e11 = #pgkp.expr<s0 mod 4>
  e11 = #pgkp.expr<(s0 mod 8) mod 4>,
  // CHECK-SAME: e12 = #pgkp.expr<s0 mod 4>
  e12 = #pgkp.expr<(s0 mod 4) mod 8>,
  // CHECK-SAME: e13 = #pgkp.expr<min(s0, s1, 8)>
  e13 = #pgkp.expr<min(16, min(s1, 8), s0, s1)>,
  // CHECK-SAME: e14 = #pgkp.expr<max(s0, 16)>
  e14 = #pgkp.expr<max(16, s0, 3)>,
  // CHECK-SAME: e15 = #pgkp.expr<s0>
  e15 = #pgkp.expr<max(s0, s0)>,
  // CHECK-SAME: e16 = #pgkp.expr<s0>
  e16 = #pgkp.expr<s0 floordiv 1>,
  // CHECK-SAME: e17 = #pgkp.expr<-3>
  e17 = #pgkp.expr<-5 floordiv 2>,
  // CHECK-SAME: e18 = #pgkp.expr<-2>
  e18 = #pgkp.expr<-5 ceildiv 2>,
  // CHECK-SAME: e19 = #pgkp.expr<1>
  e19 = #pgkp.expr<-5 mod 2>,
  // CHECK-SAME: e20 = #pgkp.expr<s0 floordiv s1>
  e20 = #pgkp.expr<s0 floordiv s1>,
  // CHECK-SAME: e21 = #pgkp.expr<s0 - s1 * 2 - 3>
  e21 = #pgkp.expr<s0 - 2 * s1 - 3>,
  // CHECK-SAME: e22 = #pgkp.expr<s0 * -1>
  e22 = #pgkp.expr<s1 - s0 - s1>,
  // CHECK-SAME: e23 = #pgkp.expr<(s0 * s1) floordiv 3>
  e23 = #pgkp.expr<s1 * s0 floordiv 3>,
  // CHECK-SAME: e24 = #pgkp.expr<s0 * (s1 floordiv 3)>
  e24 = #pgkp.expr<s0 * (s1 floordiv 3)>,
  // Left associative.
  // CHECK-SAME: e25 = #pgkp.expr<(s0 floordiv 3) mod 2>
  e25 = #pgkp.expr<s0 floordiv 3 mod 2>} : () -> ()

// What has no value is kept as it is: nothing traps, nothing wraps.
// CHECK-LABEL: "test.undefined"
"test.undefined"() {
  // CHECK-SAME: u0 = #pgkp.expr<s0 floordiv 0>
  u0 = #pgkp.expr<s0 floordiv 0>,
  // CHECK-SAME: u1 = #pgkp.expr<4 mod 0>
  u1 = #pgkp.expr<4 mod 0>,
  // CHECK-SAME: u2 = #pgkp.expr<s0 ceildiv -2>
  u2 = #pgkp.expr<s0 ceildiv -2>,
  // CHECK-SAME: u3 = #pgkp.expr<1 + 9223372036854775807>
  u3 = #pgkp.expr<9223372036854775807 + 1>,
  // CHECK-SAME: u4 = #pgkp.expr<s0 * 4 * 9223372036854775807>
  u4 = #pgkp.expr<s0 * 9223372036854775807 * 4>,
  // The same whatever the order of operands.
  // CHECK-SAME: u5 = #pgkp.expr<9223372036854775807>
  u5 = #pgkp.expr<9223372036854775807 + 1 - 1>,
  // CHECK-SAME: u6 = #pgkp.expr<-9223372036854775808>
  u6 = #pgkp.expr<-9223372036854775808>,
  // CHECK-SAME: u7 = #pgkp.expr<s0 + -9223372036854775808>
  u7 = #pgkp.expr<s0 + -9223372036854775808>,
  // CHECK-SAME: u8 = #pgkp.expr<0>
  u8 = #pgkp.expr<9223372036854775807 * 9223372036854775807 * 0>,
  // CHECK-SAME: u9 = #pgkp.expr<-9223372036854775808 floordiv -1>
  u9 = #pgkp.expr<-9223372036854775808 floordiv -1>} : () -> ()

// 6 x 6 terms are over the limit for expansion; the product stays one.
// CHECK-LABEL: "test.long_product"
// CHECK-SAME: long = #pgkp.expr<(s0 + s1 + s2 + s3 + s4 + 1) * (s0 + s1 + s2 + s3 + s5 + 1)>
// CHECK-SAME: longer = #pgkp.expr<(s0 + s1 + s2 + s3 + s4 + 1) * (s0 + s1 + s2 + s3 + s5 + 1) * 3>
"test.long_product"() {
  long = #pgkp.expr<(s0 + s1 + s2 + s3 + s5 + 1) * (1 + s4 + s3 + s2 + s1 + s0)>,
  longer = #pgkp.expr<(s0 + s1 + s2 + s3 + s5 + 1) * 2 * (1 + s4 + s3 + s2 + s1 + s0) + (s0 + s1 + s2 + s3 + s5 + 1) * (1 + s4 + s3 + s2 + s1 + s0)>} : () -> ()

// CHECK-LABEL: "test.facts"
"test.facts"() {
  // CHECK-SAME: f0 = #pgkp.fact<d0 == 1>
  f0 = #pgkp.fact<d0 == 1>,
  // CHECK-SAME: f1 = #pgkp.fact<d1 mod 16 == 0>
  f1 = #pgkp.fact<d1 mod 16 == 0>,
  // CHECK-SAME: f2 = #pgkp.fact<d2 in [2, 63]>
  f2 = #pgkp.fact<d2 in [2, 63]>,
  // CHECK-SAME: f3 = #pgkp.fact<d0 == 5>
  f3 = #pgkp.fact<d0 in [5, 5]>} : () -> ()

// CHECK-LABEL: "test.classes"
"test.classes"() {
  // CHECK-SAME: c0 = #pgkp.class<[] probability 1.000000e+00 provenance structure>
  c0 = #pgkp.class<[] probability 1.0 provenance structure>,
  // CHECK-SAME: c1 = #pgkp.class<[d0 == 1, d1 mod 16 == 0] probability 7.500000e-01 provenance profile>
  c1 = #pgkp.class<[d1 mod 16 == 0, d0 == 1] probability 0.75 provenance profile>,
  // Facts on one extent are joined.
  // CHECK-SAME: c2 = #pgkp.class<[d0 mod 24 == 0, d0 in [8, 63]] probability 0.000000e+00 provenance history>
  c2 = #pgkp.class<[d0 mod 8 == 0, d0 in [2, 63], d0 mod 12 == 0, d0 in [8, 100]] probability 0.0 provenance history>,
  // CHECK-SAME: c3 = #pgkp.class<[d0 == 16] probability 1.000000e-01 provenance user>
  c3 = #pgkp.class<[d0 mod 8 == 0, d0 in [2, 63], d0 == 16, d0 == 16] probability 0.1 provenance user>,
  // The meeting point of two ranges is an equality, which absorbs the rest.
  // CHECK-SAME: c4 = #pgkp.class<[d0 == 16] probability 1.000000e-01 provenance announcement>
  c4 = #pgkp.class<[d0 mod 8 == 0, d0 in [2, 16], d0 in [16, 20]] probability 0.1 provenance announcement>} : () -> ()

// CHECK-LABEL: "test.others"
"test.others"() {
  // CHECK-SAME: o0 = #pgkp.config<{flag = true, mr = 6 : i64, ratio = 5.000000e-01 : f64, script = "packed", tiles = array<i64: 6, 16>}>
  o0 = #pgkp.config<{script = "packed", mr = 6, flag = true, ratio = 0.5 : f64, tiles = array<i64: 6, 16>}>,
  // CHECK-SAME: o1 = #pgkp.config<{}>
  o1 = #pgkp.config<{}>,
  // CHECK-SAME: o2 = #pgkp.cost<flops = s0 * s1 * 2, bytes = s0 * 4 + s1 * 4>
  o2 = #pgkp.cost<flops = 2 * s0 * s1, bytes = 4 * (s0 + s1)>,
  // CHECK-SAME: o3 = [#pgkp.stage<generate>, #pgkp.stage<compile>, #pgkp.stage<load>, #pgkp.stage<tune>, #pgkp.stage<configure>]
  o3 = [#pgkp.stage<generate>, #pgkp.stage<compile>, #pgkp.stage<load>, #pgkp.stage<tune>, #pgkp.stage<configure>],
  // CHECK-SAME: o4 = [#pgkp.provenance<structure>, #pgkp.provenance<profile>, #pgkp.provenance<announcement>, #pgkp.provenance<history>, #pgkp.provenance<user>]
  o4 = [#pgkp.provenance<structure>, #pgkp.provenance<profile>, #pgkp.provenance<announcement>, #pgkp.provenance<history>, #pgkp.provenance<user>]} : () -> ()
