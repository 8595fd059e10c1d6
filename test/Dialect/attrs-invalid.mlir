// RUN: pgkp-opt %s --allow-unregistered-dialect --verify-diagnostics --split-input-file

// expected-error@+1 {{expected an integer, a symbol 's<N>', 'min', 'max' or '('}}
"test.op"() {a = #pgkp.expr<s0 +>} : () -> ()

// -----

// expected-error@+1 {{expected a symbol 's<N>', got 'd0'}}
"test.op"() {a = #pgkp.expr<d0>} : () -> ()

// -----

// expected-error@+1 {{expected a symbol 's<N>', got 's99999999999'}}
"test.op"() {a = #pgkp.expr<s99999999999>} : () -> ()

// -----

// expected-error@+1 {{'min' needs at least one operand}}
"test.op"() {a = #pgkp.expr<min()>} : () -> ()

// -----

// expected-error@+1 {{expected '>'}}
"test.op"() {a = #pgkp.expr<s0 s1>} : () -> ()

// -----

// expected-error@+1 {{integer value too large}}
"test.op"() {a = #pgkp.expr<9223372036854775808>} : () -> ()

// -----

// expected-error@+1 {{expression is nested more than 128 deep}}
"test.op"() {a = #pgkp.expr<((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((s0))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))>} : () -> ()

// -----

// expected-error@+1 {{expected an extent 'd<N>', got 's0'}}
"test.op"() {a = #pgkp.fact<s0 == 1>} : () -> ()

// -----

// expected-error@+1 {{expected '==', 'mod' or 'in' after 'd0'}}
"test.op"() {a = #pgkp.fact<d0 >= 1>} : () -> ()

// -----

// expected-error@+1 {{fact on d0: extent -1 is negative}}
"test.op"() {a = #pgkp.fact<d0 == -1>} : () -> ()

// -----

// expected-error@+1 {{fact on d3: divisor is 1; expected at least 2}}
"test.op"() {a = #pgkp.fact<d3 mod 1 == 0>} : () -> ()

// -----

// expected-error@+1 {{expected remainder 0, got 1}}
"test.op"() {a = #pgkp.fact<d0 mod 16 == 1>} : () -> ()

// -----

// expected-error@+1 {{fact on d0: range is [4, 3]; expected 0 <= lower <= upper}}
"test.op"() {a = #pgkp.fact<d0 in [4, 3]>} : () -> ()

// -----

// expected-error@+1 {{fact on d0: range is [-1, 3]; expected 0 <= lower <= upper}}
"test.op"() {a = #pgkp.fact<d0 in [-1, 3]>} : () -> ()

// -----

// expected-error@+1 {{class probability is 1.500000e+00; expected a value in [0, 1]}}
"test.op"() {a = #pgkp.class<[] probability 1.5 provenance structure>} : () -> ()

// -----

// expected-error@+1 {{expected structure, profile, announcement, history or user, got 'guess'}}
"test.op"() {a = #pgkp.class<[] probability 0.5 provenance guess>} : () -> ()

// -----

// expected-error@+1 {{facts 'd0 == 1' and 'd0 == 2' exclude each other}}
"test.op"() {a = #pgkp.class<[d0 == 2, d0 == 1] probability 0.5 provenance user>} : () -> ()

// -----

// expected-error@+1 {{facts 'd0 == 5' and 'd0 mod 2 == 0' exclude each other}}
"test.op"() {a = #pgkp.class<[d0 mod 2 == 0, d0 == 5] probability 0.5 provenance user>} : () -> ()

// -----

// expected-error@+1 {{facts 'd0 in [1, 2]' and 'd0 in [3, 4]' exclude each other}}
"test.op"() {a = #pgkp.class<[d0 in [3, 4], d0 in [1, 2]] probability 0.5 provenance user>} : () -> ()

// -----

// expected-error@+1 {{facts 'd1 mod 16 == 0' and 'd1 in [17, 31]' exclude each other}}
"test.op"() {a = #pgkp.class<[d1 in [17, 31], d1 mod 16 == 0] probability 0.5 provenance user>} : () -> ()

// -----

// expected-error@+1 {{configuration value 'a' is 1 : i32; expected an i64, float, bool, string or array<i64>}}
"test.op"() {a = #pgkp.config<{a = 1 : i32}>} : () -> ()

// -----

// expected-error@+1 {{expected 'bytes'}}
"test.op"() {a = #pgkp.cost<flops = s0, 3>} : () -> ()
