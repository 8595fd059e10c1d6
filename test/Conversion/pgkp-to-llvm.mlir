// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: pgkp-opt %s --convert-pgkp-to-llvm | FileCheck %s
// RUN: pgkp-opt %s --convert-pgkp-to-llvm --convert-pgkp-to-llvm | FileCheck %s
// Nothing is left for a linker to find.
// RUN: pgkp-opt %s --convert-pgkp-to-llvm --expand-strided-metadata --lower-affine --convert-to-llvm --reconcile-unrealized-casts \
// RUN:   | FileCheck %s --check-prefix=LLVM --implicit-check-not="llvm.func @" --implicit-check-not=unrealized --implicit-check-not=memref

// LLVM: llvm.func @pgkp_entry_first
// LLVM: llvm.func @pgkp_entry_second

// CHECK-NOT: pgkp.kernel
pgkp.kernel private @other(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(n) args([n], [n])
pgkp.kernel private @k(%x: tensor<?xf32>, %s: f32, %out: tensor<?xf32>) -> tensor<?xf32>
    dims(n) args([n], [], [n])

// CHECK-LABEL: llvm.func @pgkp_entry_first(
// CHECK-SAME:    %[[CTX:.*]]: !llvm.ptr, %[[ARGS:.*]]: !llvm.ptr)
// CHECK:         %[[TABLE:.*]] = llvm.load %[[CTX]]
// CHECK:         %[[SIZE:.*]] = llvm.mlir.constant([[BYTES:[0-9]+]] : i64)
// CHECK:         %[[BUFFER:.*]] = llvm.alloca %[[SIZE]] x i8 {alignment = 64 : i64}
// Arguments are read through their headers.
// CHECK:         llvm.getelementptr %[[ARGS]][8]
// CHECK:         llvm.getelementptr %[[ARGS]][0]
//
// observe is the first function after abi and size, then prepare, dispatch, await, alloc,
// free, copy, fail.
// CHECK:         %[[SLOT0:.*]] = llvm.getelementptr %[[TABLE]][8]
// CHECK:         %[[OBSERVE:.*]] = llvm.load %[[SLOT0]]
// CHECK:         llvm.call %[[OBSERVE]](%[[CTX]], %{{.*}}) : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, i32) -> ()
// CHECK-DAG:     %[[P:.*]] = llvm.mlir.constant(5.000000e-01 : f64)
// CHECK-DAG:     %[[SLACK:.*]] = llvm.mlir.constant(2.500000e-01 : f64)
// CHECK:         llvm.getelementptr %[[TABLE]][16]
// CHECK:         llvm.call %{{.*}}(%[[CTX]], %[[K:.*]], %{{.*}}, %{{.*}}, %[[P]], %[[SLACK]], %{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, i32, f64, f64, i32, i32) -> ()
// CHECK:         llvm.getelementptr %[[TABLE]][40]
// CHECK:         llvm.call %{{.*}} : !llvm.ptr, (!llvm.ptr, i64) -> !llvm.ptr
//
// The extents and the argument array, then each argument behind the last one.
// CHECK:         llvm.getelementptr %[[BUFFER]][0]
// CHECK:         llvm.getelementptr %[[BUFFER]][16]
// CHECK:         llvm.getelementptr %[[BUFFER]][48]
// CHECK:         llvm.getelementptr %[[BUFFER]][96]
// CHECK:         llvm.getelementptr %[[BUFFER]][112]
// CHECK:         %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK:         llvm.getelementptr %[[TABLE]][24]
// CHECK:         llvm.call %{{.*}}(%[[CTX]], %{{.*}}) : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, i32, !llvm.ptr, i32) -> ()
// CHECK:         llvm.getelementptr %[[TABLE]][56]
// CHECK:         llvm.call %{{.*}} : !llvm.ptr, (!llvm.ptr, i32, i32, !llvm.ptr, !llvm.ptr) -> ()
// CHECK:         llvm.getelementptr %[[TABLE]][48]
// CHECK:         llvm.call %{{.*}} : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> ()
// CHECK:         llvm.getelementptr %[[TABLE]][32]
// CHECK:         llvm.call %{{.*}} : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, i32, i64) -> ()
// CHECK:         llvm.return
func.func @first(%ctx: !llvm.ptr, %x: memref<?xf32>, %out: memref<?xf32>) attributes {pgkp.roots = ["n"]} {
  %c0 = arith.constant 0 : index
  %s = arith.constant 2.0 : f32
  %n = memref.dim %x, %c0 : memref<?xf32>
  pgkp.observe @first[%n]
  pgkp.prepare @k[%n] {probability = 0.5 : f64, slack = 0.25 : f64}
  %t = memref.alloc(%n) : memref<?xf32>
  pgkp.dispatch @k[%n] ins(%x, %s : memref<?xf32>, f32) outs(%t : memref<?xf32>)
  memref.copy %t, %out : memref<?xf32> to memref<?xf32>
  memref.dealloc %t : memref<?xf32>
  pgkp.await @k[%n] {timeout_us = 1000 : i64}
  return
}

// Reshapes to two dynamic extents, and a failed assertion.
// CHECK-LABEL: llvm.func @pgkp_entry_second(
// CHECK-NOT:     memref.expand_shape
// CHECK-NOT:     memref.collapse_shape
// CHECK:         cf.cond_br %{{.*}}, ^[[AFTER:.*]], ^[[FAILED:.*]]
// CHECK:       ^[[FAILED]]:
// CHECK:         %[[TEXT:.*]] = llvm.mlir.addressof @pgkp_message_1_0
// CHECK:         llvm.getelementptr %{{.*}}[64]
// CHECK:         llvm.call %{{.*}}(%{{.*}}, %[[TEXT]]) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> ()
// CHECK:         cf.br ^[[AFTER]]
func.func @second(%ctx: !llvm.ptr, %x: memref<?x?x4xf32>, %out: memref<?x?x4xf32>) attributes {pgkp.roots = ["a", "b"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.dim %x, %c0 : memref<?x?x4xf32>
  %b = memref.dim %x, %c1 : memref<?x?x4xf32>
  %n = memref.dim %x, %c1 : memref<?x?x4xf32>
  %ok = arith.cmpi ule, %a, %b : index
  cf.assert %ok, "a is at most b"
  %flat = memref.collapse_shape %x [[0, 1, 2]] : memref<?x?x4xf32> into memref<?xf32>
  %deep = memref.expand_shape %flat [[0, 1, 2]] output_shape [%a, %b, 4] : memref<?xf32> into memref<?x?x4xf32>
  memref.copy %deep, %out : memref<?x?x4xf32> to memref<?x?x4xf32>
  return
}

// CHECK: llvm.mlir.global internal constant @pgkp_message_1_0("a is at most b\00")
// CHECK: llvm.mlir.global external constant @pgkp_program_abi(1 : i32)
// LLVM: llvm.mlir.global external constant @pgkp_program_abi(1 : i32)
