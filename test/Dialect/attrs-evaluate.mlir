// RUN: pgkp-opt %s --allow-unregistered-dialect --test-pgkp-attributes --verify-diagnostics

module {
  // expected-remark@+1 {{value 26, 2 symbols}}
  "t.e"() {expr = #pgkp.expr<s0 * s1 + 5>, at = array<i64: 3, 7>} : () -> ()
  // expected-remark@+1 {{value 4, 1 symbols}}
  "t.e"() {expr = #pgkp.expr<s0 ceildiv 16>, at = array<i64: 63>} : () -> ()
  // expected-remark@+1 {{value 3, 1 symbols}}
  "t.e"() {expr = #pgkp.expr<s0 floordiv 16>, at = array<i64: 63>} : () -> ()
  // expected-remark@+1 {{value 15, 1 symbols}}
  "t.e"() {expr = #pgkp.expr<s0 mod 16>, at = array<i64: 63>} : () -> ()
  // expected-remark@+1 {{value 256, 2 symbols}}
  "t.e"() {expr = #pgkp.expr<min(s1, 256)>, at = array<i64: 0, 300>} : () -> ()
  // expected-remark@+1 {{value 300, 2 symbols}}
  "t.e"() {expr = #pgkp.expr<max(s0, s1)>, at = array<i64: 0, 300>} : () -> ()
  // A symbol without a value.
  // expected-remark@+1 {{no value, 3 symbols}}
  "t.e"() {expr = #pgkp.expr<s2>, at = array<i64: 1, 2>} : () -> ()
  // Divisors that are not positive.
  // expected-remark@+1 {{no value, 2 symbols}}
  "t.e"() {expr = #pgkp.expr<s0 floordiv s1>, at = array<i64: 1, 0>} : () -> ()
  // expected-remark@+1 {{no value, 2 symbols}}
  "t.e"() {expr = #pgkp.expr<s0 mod s1>, at = array<i64: 1, 0>} : () -> ()
  // expected-remark@+1 {{no value, 2 symbols}}
  "t.e"() {expr = #pgkp.expr<s0 ceildiv s1>, at = array<i64: -9223372036854775808, -1>} : () -> ()
  // expected-remark@+1 {{no value, 0 symbols}}
  "t.e"() {expr = #pgkp.expr<4 mod 0>} : () -> ()
  // Results outside 64 bits.
  // expected-remark@+1 {{no value, 2 symbols}}
  "t.e"() {expr = #pgkp.expr<s0 + s1>, at = array<i64: 9223372036854775807, 1>} : () -> ()
  // expected-remark@+1 {{no value, 3 symbols}}
  "t.e"() {expr = #pgkp.expr<s0 * s1 * s2>, at = array<i64: 9223372036854775807, 9223372036854775807, 9223372036854775807>} : () -> ()
  // expected-remark@+1 {{value 0, 3 symbols}}
  "t.e"() {expr = #pgkp.expr<s0 * s1 * s2>, at = array<i64: 9223372036854775807, 9223372036854775807, 0>} : () -> ()
  // expected-remark@+1 {{value -9223372036854775808, 2 symbols}}
  "t.e"() {expr = #pgkp.expr<s0 * s1>, at = array<i64: -4611686018427387904, 2>} : () -> ()
  // expected-remark@+1 {{no value, 2 symbols}}
  "t.e"() {expr = #pgkp.expr<s0 * s1>, at = array<i64: -4611686018427387904, -2>} : () -> ()
  // expected-remark@+1 {{value 9223372036854775807, 3 symbols}}
  "t.e"() {expr = #pgkp.expr<s0 + s1 + s2>, at = array<i64: 9223372036854775807, 5, -5>} : () -> ()

  // Substitution gives the canonical form.
  // expected-remark@+1 {{replaced: #pgkp.expr<s0 * s1 * 2 + s0 * 6>}}
  "t.e"() {expr = #pgkp.expr<s0 * s1>, replace = [#pgkp.expr<2 * s0>, #pgkp.expr<s1 + 3>]} : () -> ()
  // expected-remark@+1 {{replaced: #pgkp.expr<8>}}
  "t.e"() {expr = #pgkp.expr<s0 ceildiv 16>, replace = [#pgkp.expr<128>]} : () -> ()
  // expected-remark@+1 {{symbol without replacement}}
  "t.e"() {expr = #pgkp.expr<s1 + 1>, replace = [#pgkp.expr<128>]} : () -> ()

  // expected-remark@+1 {{fact holds}}
  "t.f"() {fact = #pgkp.fact<d1 == 4>, at = array<i64: 1, 4>} : () -> ()
  // expected-remark@+1 {{fact fails}}
  "t.f"() {fact = #pgkp.fact<d1 == 4>, at = array<i64: 4>} : () -> ()
  // expected-remark@+1 {{fact fails}}
  "t.f"() {fact = #pgkp.fact<d0 mod 16 == 0>, at = array<i64: 40>} : () -> ()
  // expected-remark@+1 {{fact holds}}
  "t.f"() {fact = #pgkp.fact<d0 mod 16 == 0>, at = array<i64: 48>} : () -> ()
  // expected-remark@+1 {{fact holds}}
  "t.f"() {fact = #pgkp.fact<d0 in [2, 63]>, at = array<i64: 63>} : () -> ()
  // expected-remark@+1 {{fact fails}}
  "t.f"() {fact = #pgkp.fact<d0 in [2, 63]>, at = array<i64: 64>} : () -> ()
  // expected-remark@+1 {{fact fails}}
  "t.f"() {fact = #pgkp.fact<d0 in [2, 63]>, at = array<i64: 1>} : () -> ()

  // expected-remark@+1 {{class matches}}
  "t.c"() {class = #pgkp.class<[d0 == 1, d1 mod 16 == 0] probability 0.5 provenance user>, at = array<i64: 1, 32>} : () -> ()
  // expected-remark@+1 {{class differs}}
  "t.c"() {class = #pgkp.class<[d0 == 1, d1 mod 16 == 0] probability 0.5 provenance user>, at = array<i64: 1, 33>} : () -> ()
  // expected-remark@+1 {{class matches, generic}}
  "t.c"() {class = #pgkp.class<[] probability 0.5 provenance user>, at = array<i64: 1, 33>} : () -> ()

  // expected-remark@+3 {{#pgkp.expr<s1 + s0 * 4 + 3>}}
  // expected-remark@+2 {{#pgkp.expr<s0 floordiv 8>}}
  // expected-remark@+1 {{#pgkp.expr<s0 mod s1>}}
  "t.m"() {map = affine_map<(d0)[s0] -> (d0 * 4 + s0 + 3, d0 floordiv 8, d0 mod s0)>} : () -> ()
}
