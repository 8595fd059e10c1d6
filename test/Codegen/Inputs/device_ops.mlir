// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels that the decoder does not have: what else a group of fused operations may hold.

// Two results from one reduction that is no single operation.
pgkp.kernel private @argmax(%a: tensor<?x?xf32>, %v: tensor<?xf32>, %i: tensor<?xi64>) -> (tensor<?xf32>, tensor<?xi64>)
    dims(m, n) args([m, n], [m], [m]) {
  %low = arith.constant -1.0e30 : f32
  %zero = arith.constant 0 : i64
  %v0 = linalg.fill ins(%low : f32) outs(%v : tensor<?xf32>) -> tensor<?xf32>
  %i0 = linalg.fill ins(%zero : i64) outs(%i : tensor<?xi64>) -> tensor<?xi64>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<?x?xf32>) outs(%v0, %i0 : tensor<?xf32>, tensor<?xi64>) {
  ^bb0(%x: f32, %best: f32, %at: i64):
    %j = linalg.index 1 : index
    %j64 = arith.index_cast %j : index to i64
    %c = arith.cmpf ogt, %x, %best : f32
    %nv = arith.select %c, %x, %best : f32
    %ni = arith.select %c, %j64, %at : i64
    linalg.yield %nv, %ni : f32, i64
  } -> (tensor<?xf32>, tensor<?xi64>)
  pgkp.return %r#0, %r#1 : tensor<?xf32>, tensor<?xi64>
}

// Rows chosen by data.
pgkp.kernel private @gather(%t: tensor<?x8xf32>, %ids: tensor<?xi64>, %o: tensor<?x8xf32>) -> (tensor<?x8xf32>)
    dims(m, n) args([m, 8], [n], [n, 8]) {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<?xi64>) outs(%o : tensor<?x8xf32>) {
  ^bb0(%id: i64, %_: f32):
    %i = arith.index_cast %id : i64 to index
    %j = linalg.index 1 : index
    %x = tensor.extract %t[%i, %j] : tensor<?x8xf32>
    linalg.yield %x : f32
  } -> tensor<?x8xf32>
  pgkp.return %r : tensor<?x8xf32>
}

// A norm fused into the product that reads it.
pgkp.kernel private @norm_matmul(%a: tensor<?x?xf32>, %w: tensor<?x24xf32>, %o: tensor<?x24xf32>) -> (tensor<?x24xf32>)
    dims(m, n) args([m, n], [n, 24], [m, 24]) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %eps = arith.constant 1.0e-3 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e1 = tensor.empty(%m) : tensor<?xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<?x?xf32>) outs(%s0 : tensor<?xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %p = arith.mulf %x, %x : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  } -> tensor<?xf32>
  %e2 = tensor.empty(%m, %n) : tensor<?x?xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%a, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%e2 : tensor<?x?xf32>) {
  ^bb0(%x: f32, %q: f32, %_: f32):
    %b = arith.addf %q, %eps : f32
    %r = math.rsqrt %b : f32
    %y = arith.mulf %x, %r : f32
    linalg.yield %y : f32
  } -> tensor<?x?xf32>
  %i = linalg.fill ins(%zero : f32) outs(%o : tensor<?x24xf32>) -> tensor<?x24xf32>
  %p = linalg.matmul ins(%h, %w : tensor<?x?xf32>, tensor<?x24xf32>) outs(%i : tensor<?x24xf32>) -> tensor<?x24xf32>
  pgkp.return %p : tensor<?x24xf32>
}

// A whole attention head.
pgkp.kernel private @attention(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %v: tensor<?x8xf32>, %o: tensor<?x8xf32>) -> (tensor<?x8xf32>)
    dims(m, n) args([m, 8], [n, 8], [n, 8], [m, 8]) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %m = tensor.dim %q, %c0 : tensor<?x8xf32>
  %n = tensor.dim %k, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>) outs(%s0 : tensor<?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %p = arith.mulf %x, %y : f32
    %t = arith.addf %acc, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %e1 = tensor.empty(%m) : tensor<?xf32>
  %m0 = linalg.fill ins(%low : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %max = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<?x?xf32>) outs(%m0 : tensor<?xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %r = arith.maximumf %x, %acc : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%s, %max : tensor<?x?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %_: f32):
    %d = arith.subf %a, %b : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%z0 : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %a, %acc : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %z : tensor<?x?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %_: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  %i = linalg.fill ins(%zero : f32) outs(%o : tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = linalg.matmul ins(%p, %v : tensor<?x?xf32>, tensor<?x8xf32>) outs(%i : tensor<?x8xf32>) -> tensor<?x8xf32>
  pgkp.return %r : tensor<?x8xf32>
}

// A margin, and a destination of which a part is kept.
pgkp.kernel private @pad(%a: tensor<?x5xf32>, %o: tensor<?x8xf32>) -> (tensor<?x8xf32>) dims(m) args([m, 5], [m, 8]) {
  %c7 = arith.constant 7.0 : f32
  %r = tensor.pad %a low[0, 2] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c7 : f32
  } : tensor<?x5xf32> to tensor<?x8xf32>
  pgkp.return %r : tensor<?x8xf32>
}
pgkp.kernel private @insert(%a: tensor<?x3xf32>, %o: tensor<?x8xf32>) -> (tensor<?x8xf32>) dims(m) args([m, 3], [m, 8]) {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %a, %c0 : tensor<?x3xf32>
  %r = tensor.insert_slice %a into %o[0, 1] [%m, 3] [1, 2] : tensor<?x3xf32> into tensor<?x8xf32>
  pgkp.return %r : tensor<?x8xf32>
}

// Accumulation onto what the destination holds, and a table of constants.
pgkp.kernel private @accumulate(%a: tensor<?x3xf32>, %o: tensor<?x2xf32>) -> (tensor<?x2xf32>) dims(m) args([m, 3], [m, 2]) {
  %w = arith.constant dense<[[1.0, -2.0], [3.0, 0.5], [0.25, 4.0]]> : tensor<3x2xf32>
  %r = linalg.matmul ins(%a, %w : tensor<?x3xf32>, tensor<3x2xf32>) outs(%o : tensor<?x2xf32>) -> tensor<?x2xf32>
  pgkp.return %r : tensor<?x2xf32>
}

// One block a row, and everything to one element.
pgkp.kernel private @row_sum(%a: tensor<?x?xf32>, %o: tensor<?xf32>) -> (tensor<?xf32>) dims(m, n) args([m, n], [m]) {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<?x?xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %s = arith.addf %x, %acc : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  pgkp.return %r : tensor<?xf32>
}
pgkp.kernel private @full_sum(%a: tensor<?x?xi32>, %o: tensor<i32>) -> (tensor<i32>) dims(m, n) args([m, n], []) {
  %zero = arith.constant 0 : i32
  %i = linalg.fill ins(%zero : i32) outs(%o : tensor<i32>) -> tensor<i32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%a : tensor<?x?xi32>) outs(%i : tensor<i32>) {
  ^bb0(%x: i32, %acc: i32):
    %s = arith.addi %x, %acc : i32
    linalg.yield %s : i32
  } -> tensor<i32>
  pgkp.return %r : tensor<i32>
}

// Other element types, a scalar argument, control flow in a body, two shapes of results.
pgkp.kernel private @types(%a: tensor<?xf16>, %b: tensor<?xi8>, %x: f32, %o: tensor<?xf16>, %p: tensor<?xi1>) -> (tensor<?xf16>, tensor<?xi1>)
    dims(m, n) args([m], [n], [], [m], [n]) {
  %zero = arith.constant 0 : i8
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%a : tensor<?xf16>) outs(%o : tensor<?xf16>) {
  ^bb0(%h: f16, %_: f16):
    %f = arith.extf %h : f16 to f32
    %c = arith.cmpf ogt, %f, %x : f32
    %s = scf.if %c -> (f32) {
      %e = math.exp %f : f32
      scf.yield %e : f32
    } else {
      scf.yield %f : f32
    }
    %t = arith.truncf %s : f32 to f16
    linalg.yield %t : f16
  } -> tensor<?xf16>
  %q = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%b : tensor<?xi8>) outs(%p : tensor<?xi1>) {
  ^bb0(%y: i8, %_: i1):
    %c = arith.cmpi ne, %y, %zero : i8
    linalg.yield %c : i1
  } -> tensor<?xi1>
  pgkp.return %r, %q : tensor<?xf16>, tensor<?xi1>
}

func.func @ops(%a: tensor<?x?xf32> {pgkp.dims = ["m", "n"]}, %w: tensor<?x24xf32>, %t: tensor<?x8xf32>, %k: tensor<?x8xf32>,
               %ids: tensor<?xi64>, %five: tensor<?x5xf32>, %three: tensor<?x3xf32>, %two: tensor<?x2xf32>,
               %ints: tensor<?x?xi32>, %half: tensor<?xf16>, %bytes: tensor<?xi8>, %x: f32,
               %of: tensor<?xf32>, %oi: tensor<?xi64>, %o8: tensor<?x8xf32>, %o8n: tensor<?x8xf32>, %o24: tensor<?x24xf32>, %os: tensor<i32>,
               %oh: tensor<?xf16>, %ob: tensor<?xi1>)
    -> (tensor<?xf32>, tensor<?xi64>, tensor<?x8xf32>, tensor<?x24xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>,
        tensor<?x2xf32>, tensor<?xf32>, tensor<i32>, tensor<?xf16>, tensor<?xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %r0:2 = pgkp.dispatch @argmax[%m, %n] ins(%a : tensor<?x?xf32>) outs(%of, %oi : tensor<?xf32>, tensor<?xi64>) -> (tensor<?xf32>, tensor<?xi64>)
  %r1 = pgkp.dispatch @gather[%m, %n] ins(%t, %ids : tensor<?x8xf32>, tensor<?xi64>) outs(%o8n : tensor<?x8xf32>) -> (tensor<?x8xf32>)
  %r2 = pgkp.dispatch @norm_matmul[%m, %n] ins(%a, %w : tensor<?x?xf32>, tensor<?x24xf32>) outs(%o24 : tensor<?x24xf32>) -> (tensor<?x24xf32>)
  %r3 = pgkp.dispatch @attention[%m, %n] ins(%t, %k, %k : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) outs(%o8 : tensor<?x8xf32>) -> (tensor<?x8xf32>)
  %r4 = pgkp.dispatch @pad[%m] ins(%five : tensor<?x5xf32>) outs(%o8 : tensor<?x8xf32>) -> (tensor<?x8xf32>)
  %r5 = pgkp.dispatch @insert[%m] ins(%three : tensor<?x3xf32>) outs(%o8 : tensor<?x8xf32>) -> (tensor<?x8xf32>)
  %r6 = pgkp.dispatch @accumulate[%m] ins(%three : tensor<?x3xf32>) outs(%two : tensor<?x2xf32>) -> (tensor<?x2xf32>)
  %r7 = pgkp.dispatch @row_sum[%m, %n] ins(%a : tensor<?x?xf32>) outs(%of : tensor<?xf32>) -> (tensor<?xf32>)
  %r8 = pgkp.dispatch @full_sum[%m, %n] ins(%ints : tensor<?x?xi32>) outs(%os : tensor<i32>) -> (tensor<i32>)
  %r9:2 = pgkp.dispatch @types[%m, %n] ins(%half, %bytes, %x : tensor<?xf16>, tensor<?xi8>, f32) outs(%oh, %ob : tensor<?xf16>, tensor<?xi1>) -> (tensor<?xf16>, tensor<?xi1>)
  return %r0#0, %r0#1, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9#0, %r9#1
      : tensor<?xf32>, tensor<?xi64>, tensor<?x8xf32>, tensor<?x24xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>,
        tensor<?x2xf32>, tensor<?xf32>, tensor<i32>, tensor<?xf16>, tensor<?xi1>
}
