// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The decoder layer: 15 kernels, 18 dispatches, every extent over batch, seq and kv, and one
// prepare per kernel and extents.
// RUN: pgkp-opt %models/llama_decoder.mlir --pgkp-prepare-pipeline -o %t.mlir
// RUN: pgkp-opt %t.mlir --pgkp-print-manifest -o %t.unused | FileCheck %s --implicit-check-not="{{^kernel}}" --implicit-check-not="{{^ *site}}"
// RUN: FileCheck %s --check-prefix=PREPARE < %t.mlir
// The whole pipeline is deterministic, and running it again changes nothing.
// RUN: pgkp-opt %models/llama_decoder.mlir --pgkp-prepare-pipeline -o %t.again.mlir
// RUN: diff %t.mlir %t.again.mlir
// RUN: pgkp-opt %t.mlir --pgkp-prepare-pipeline -o %t.twice.mlir
// RUN: diff %t.mlir %t.twice.mlir

// CHECK: kernel 0 row_0 dims [batch_seq] family row
// CHECK: kernel 1 matmul_0 dims [batch_seq] family matmul
// CHECK: kernel 2 matmul_1 dims [batch_seq] family matmul
// CHECK: kernel 3 elementwise_0 dims [batch, seq] family elementwise
// CHECK: kernel 4 elementwise_1 dims [batch, seq] family elementwise
// CHECK: kernel 5 transpose_0 dims [batch, seq] family copy
// CHECK: kernel 6 concat_0 dims [batch, kv, seq, seq_plus_kv] family copy
// CHECK: kernel 7 batch_matmul_0 dims [batch, seq_4, seq_plus_kv] family batch_matmul
// CHECK: kernel 8 row_1 dims [batch, seq, seq_plus_kv] family row
// CHECK: kernel 9 batch_matmul_1 dims [batch, seq_4, seq_plus_kv] family batch_matmul
// CHECK: kernel 10 transpose_1 dims [batch, seq] family copy
// CHECK: kernel 11 matmul_2 dims [batch_seq] family matmul
// CHECK: kernel 12 matmul_3 dims [batch_seq] family matmul
// CHECK: kernel 13 matmul_4 dims [batch_seq] family matmul
// CHECK: kernel 14 matmul_5 dims [batch_seq] family matmul
// CHECK: entry decoder symbol pgkp_entry_decoder roots [batch, seq, kv]
// CHECK: arg1 f32 [batch, 1, kv, 16] persistent
// CHECK: result f32 [batch, seq, 64]
// CHECK: result f32 [batch, 1, sum(seq, kv), 16] carries 1
// CHECK: site row_0 [product(batch, seq)] probability 1.00
// CHECK: site matmul_0 [product(batch, seq)]
// CHECK: site matmul_1 [product(batch, seq)]
// CHECK: site matmul_1 [product(batch, seq)]
// CHECK: site elementwise_0 [batch, seq]
// CHECK: site elementwise_1 [batch, seq]
// CHECK: site transpose_0 [batch, seq]
// CHECK: site concat_0 [batch, kv, seq, sum(seq, kv)]
// CHECK: site concat_0 [batch, kv, seq, sum(seq, kv)]
// CHECK: site batch_matmul_0 [batch, product(seq, 4), sum(seq, kv)]
// CHECK: site row_1 [batch, seq, sum(seq, kv)]
// CHECK: site batch_matmul_1 [batch, product(seq, 4), sum(seq, kv)]
// CHECK: site transpose_1 [batch, seq]
// CHECK: site matmul_2 [product(batch, seq)]
// CHECK: site row_0 [product(batch, seq)]
// CHECK: site matmul_3 [product(batch, seq)]
// CHECK: site matmul_4 [product(batch, seq)]
// CHECK: site matmul_5 [product(batch, seq)]

// PREPARE-LABEL: func.func @decoder
// PREPARE:         pgkp.observe @decoder
// PREPARE-COUNT-15: pgkp.prepare
// PREPARE-NOT:     pgkp.prepare
// PREPARE-COUNT-18: pgkp.dispatch
// PREPARE-NOT:     pgkp.dispatch
