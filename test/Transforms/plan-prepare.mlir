// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --pgkp-plan-prepare="flops-per-second=1e6 bytes-per-second=1e12 typical-extent=10" -o %t.once
// RUN: FileCheck %s < %t.once
// Planning twice changes nothing.
// RUN: pgkp-opt %t.once --pgkp-plan-prepare="flops-per-second=1e6 bytes-per-second=1e12 typical-extent=10" -o %t.twice
// RUN: diff %t.once %t.twice
// RUN: pgkp-opt %s --pgkp-plan-prepare="flops-per-second=1e6 bytes-per-second=1e12 typical-extent=10" --remarks-filter=pgkp -o %t.out 2>&1 | FileCheck %s --check-prefix=REMARK

pgkp.kernel private @slow(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(n) args([n], [n]) attributes {cost = #pgkp.cost<flops = s0 * 1000, bytes = s0 * 8>} {
  pgkp.return %x : tensor<?xf32>
}
pgkp.kernel private @k(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(n) args([n], [n]) {
  pgkp.return %x : tensor<?xf32>
}

// CHECK-LABEL: func.func @e
// The two halves are joined: 1 - 0.5 * 0.5. Between them and the dispatch lies one
// dispatch of 10 * 1000 operations at 1e6 per second.
// CHECK:         %[[N:.*]] = tensor.dim
// CHECK-NEXT:    pgkp.prepare @k[%[[N]]] {probability = 7.500000e-01 : f64, slack = 1.000000e-02 : f64}
// CHECK-NEXT:    pgkp.prepare @slow[%[[N]]]
// CHECK-NOT:     pgkp.prepare
// CHECK:         pgkp.dispatch @slow
// CHECK-NEXT:    pgkp.dispatch @k
// REMARK-DAG: merged 1 further prepares of 'k': probability 0.75
// REMARK-DAG: dropped prepare of 'slow': probability 0.0010 is below 0.0100
// REMARK-DAG: dropped prepare of 'k': no dispatch follows
// REMARK-DAG: prepare of 'k': probability 0.75, slack 10000.000 us
func.func @e(%x: tensor<?xf32> {pgkp.dims = ["n"]}) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  pgkp.prepare @k[%n] {probability = 0.5 : f64}
  pgkp.prepare @slow[%n]
  // The same extent, computed again.
  %again = tensor.dim %x, %c0 : tensor<?xf32>
  pgkp.prepare @k[%again] {probability = 0.5 : f64}
  %other = arith.addi %n, %c1 : index
  pgkp.prepare @k[%other]
  %rare = arith.muli %n, %n : index
  pgkp.prepare @slow[%rare] {probability = 0.001 : f64}
  %e = tensor.empty(%n) : tensor<?xf32>
  %0 = pgkp.dispatch @slow[%n] ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> (tensor<?xf32>)
  %1 = pgkp.dispatch @k[%n] ins(%0 : tensor<?xf32>) outs(%e : tensor<?xf32>) -> (tensor<?xf32>)
  return %1 : tensor<?xf32>
}
