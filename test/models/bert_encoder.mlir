// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Written by bert_encoder.py --hidden 96 --heads 6 --ffn 384 --type f32
// Do not edit. One BERT encoder layer. Roots: batch, seq.
func.func @encoder(
    %x: tensor<?x?x96xf32> {pgkp.dims = ["batch", "seq", ""]},
    %wq: tensor<96x96xf32> {pgkp.persistent},
    %bq: tensor<96xf32> {pgkp.persistent},
    %wk: tensor<96x96xf32> {pgkp.persistent},
    %bk: tensor<96xf32> {pgkp.persistent},
    %wv: tensor<96x96xf32> {pgkp.persistent},
    %bv: tensor<96xf32> {pgkp.persistent},
    %wo: tensor<96x96xf32> {pgkp.persistent},
    %bo: tensor<96xf32> {pgkp.persistent},
    %attn_gain: tensor<96xf32> {pgkp.persistent},
    %attn_shift: tensor<96xf32> {pgkp.persistent},
    %w_in: tensor<96x384xf32> {pgkp.persistent},
    %b_in: tensor<384xf32> {pgkp.persistent},
    %w_out: tensor<384x96xf32> {pgkp.persistent},
    %b_out: tensor<96xf32> {pgkp.persistent},
    %mlp_gain: tensor<96xf32> {pgkp.persistent},
    %mlp_shift: tensor<96xf32> {pgkp.persistent})
    -> (tensor<?x?x96xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c_heads = arith.constant 6 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %n_hidden = arith.constant 96.0 : f32
  %eps = arith.constant 1.0e-12 : f32
  %qk_scale = arith.constant 0.25 : f32
  %inv_sqrt2 = arith.constant 0.7071067811865476 : f32

  %batch = tensor.dim %x, %c0 : tensor<?x?x96xf32>
  %seq = tensor.dim %x, %c1 : tensor<?x?x96xf32>
  %tokens = arith.muli %batch, %seq : index
  %matrices = arith.muli %batch, %c_heads : index

  // Attention block.
  %x_rows = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x96xf32> into tensor<?x96xf32>
  %qp_init_empty = tensor.empty(%tokens) : tensor<?x96xf32>
  %qp_init = linalg.fill ins(%zero : f32) outs(%qp_init_empty : tensor<?x96xf32>) -> tensor<?x96xf32>
  %qp = linalg.matmul ins(%x_rows, %wq : tensor<?x96xf32>, tensor<96x96xf32>) outs(%qp_init : tensor<?x96xf32>) -> tensor<?x96xf32>
  %q_flat_out = tensor.empty(%tokens) : tensor<?x96xf32>
  %q_flat = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%qp, %bq : tensor<?x96xf32>, tensor<96xf32>)
      outs(%q_flat_out : tensor<?x96xf32>) {
    ^bb0(%p: f32, %z: f32, %_: f32):
      %y = arith.addf %p, %z : f32
      linalg.yield %y : f32
  } -> tensor<?x96xf32>
  %q_split = tensor.expand_shape %q_flat [[0, 1], [2, 3]] output_shape [%batch, %seq, 6, 16] : tensor<?x96xf32> into tensor<?x?x6x16xf32>
  %q_moved_out = tensor.empty(%batch, %seq) : tensor<?x6x?x16xf32>
  %q_moved = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, j) -> (b, s, h, j)>, affine_map<(b, h, s, j) -> (b, h, s, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%q_split : tensor<?x?x6x16xf32>)
      outs(%q_moved_out : tensor<?x6x?x16xf32>) {
    ^bb0(%a: f32, %_: f32):
      linalg.yield %a : f32
  } -> tensor<?x6x?x16xf32>
  %q_rows = tensor.collapse_shape %q_moved [[0, 1], [2], [3]] : tensor<?x6x?x16xf32> into tensor<?x?x16xf32>
  %kp_init_empty = tensor.empty(%tokens) : tensor<?x96xf32>
  %kp_init = linalg.fill ins(%zero : f32) outs(%kp_init_empty : tensor<?x96xf32>) -> tensor<?x96xf32>
  %kp = linalg.matmul ins(%x_rows, %wk : tensor<?x96xf32>, tensor<96x96xf32>) outs(%kp_init : tensor<?x96xf32>) -> tensor<?x96xf32>
  %k_flat_out = tensor.empty(%tokens) : tensor<?x96xf32>
  %k_flat = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%kp, %bk : tensor<?x96xf32>, tensor<96xf32>)
      outs(%k_flat_out : tensor<?x96xf32>) {
    ^bb0(%p: f32, %z: f32, %_: f32):
      %y = arith.addf %p, %z : f32
      linalg.yield %y : f32
  } -> tensor<?x96xf32>
  %k_split = tensor.expand_shape %k_flat [[0, 1], [2, 3]] output_shape [%batch, %seq, 6, 16] : tensor<?x96xf32> into tensor<?x?x6x16xf32>
  %k_moved_out = tensor.empty(%batch, %seq) : tensor<?x6x?x16xf32>
  %k_moved = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, j) -> (b, s, h, j)>, affine_map<(b, h, s, j) -> (b, h, s, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%k_split : tensor<?x?x6x16xf32>)
      outs(%k_moved_out : tensor<?x6x?x16xf32>) {
    ^bb0(%a: f32, %_: f32):
      linalg.yield %a : f32
  } -> tensor<?x6x?x16xf32>
  %k_rows = tensor.collapse_shape %k_moved [[0, 1], [2], [3]] : tensor<?x6x?x16xf32> into tensor<?x?x16xf32>
  %vp_init_empty = tensor.empty(%tokens) : tensor<?x96xf32>
  %vp_init = linalg.fill ins(%zero : f32) outs(%vp_init_empty : tensor<?x96xf32>) -> tensor<?x96xf32>
  %vp = linalg.matmul ins(%x_rows, %wv : tensor<?x96xf32>, tensor<96x96xf32>) outs(%vp_init : tensor<?x96xf32>) -> tensor<?x96xf32>
  %v_flat_out = tensor.empty(%tokens) : tensor<?x96xf32>
  %v_flat = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%vp, %bv : tensor<?x96xf32>, tensor<96xf32>)
      outs(%v_flat_out : tensor<?x96xf32>) {
    ^bb0(%p: f32, %z: f32, %_: f32):
      %y = arith.addf %p, %z : f32
      linalg.yield %y : f32
  } -> tensor<?x96xf32>
  %v_split = tensor.expand_shape %v_flat [[0, 1], [2, 3]] output_shape [%batch, %seq, 6, 16] : tensor<?x96xf32> into tensor<?x?x6x16xf32>
  %v_moved_out = tensor.empty(%batch, %seq) : tensor<?x6x?x16xf32>
  %v_moved = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, j) -> (b, s, h, j)>, affine_map<(b, h, s, j) -> (b, h, s, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v_split : tensor<?x?x6x16xf32>)
      outs(%v_moved_out : tensor<?x6x?x16xf32>) {
    ^bb0(%a: f32, %_: f32):
      linalg.yield %a : f32
  } -> tensor<?x6x?x16xf32>
  %v_rows = tensor.collapse_shape %v_moved [[0, 1], [2], [3]] : tensor<?x6x?x16xf32> into tensor<?x?x16xf32>
  %qk_init_empty = tensor.empty(%matrices, %seq, %seq) : tensor<?x?x?xf32>
  %qk_init = linalg.fill ins(%zero : f32) outs(%qk_init_empty : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %qk = linalg.generic {
      indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q_rows, %k_rows : tensor<?x?x16xf32>, tensor<?x?x16xf32>)
      outs(%qk_init : tensor<?x?x?xf32>) {
    ^bb0(%a: f32, %w: f32, %acc: f32):
      %p = arith.mulf %a, %w : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
  } -> tensor<?x?x?xf32>
  %scaled_out = tensor.empty(%matrices, %seq, %seq) : tensor<?x?x?xf32>
  %scaled = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%qk : tensor<?x?x?xf32>)
      outs(%scaled_out : tensor<?x?x?xf32>) {
    ^bb0(%a: f32, %_: f32):
      %r = arith.mulf %a, %qk_scale : f32
      linalg.yield %r : f32
  } -> tensor<?x?x?xf32>
  %max_init_empty = tensor.empty(%matrices, %seq) : tensor<?x?xf32>
  %max_init = linalg.fill ins(%lowest : f32) outs(%max_init_empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %max = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%scaled : tensor<?x?x?xf32>)
      outs(%max_init : tensor<?x?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %r = arith.maxnumf %acc, %a : f32
      linalg.yield %r : f32
  } -> tensor<?x?xf32>
  %exp_out = tensor.empty(%matrices, %seq, %seq) : tensor<?x?x?xf32>
  %exp = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i)>, affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scaled, %max : tensor<?x?x?xf32>, tensor<?x?xf32>)
      outs(%exp_out : tensor<?x?x?xf32>) {
    ^bb0(%a: f32, %m: f32, %_: f32):
      %d = arith.subf %a, %m : f32
      %r = math.exp %d : f32
      linalg.yield %r : f32
  } -> tensor<?x?x?xf32>
  %sum_init_empty = tensor.empty(%matrices, %seq) : tensor<?x?xf32>
  %sum_init = linalg.fill ins(%zero : f32) outs(%sum_init_empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sum = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%exp : tensor<?x?x?xf32>)
      outs(%sum_init : tensor<?x?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %r = arith.addf %acc, %a : f32
      linalg.yield %r : f32
  } -> tensor<?x?xf32>
  %probs_out = tensor.empty(%matrices, %seq, %seq) : tensor<?x?x?xf32>
  %probs = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i)>, affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%exp, %sum : tensor<?x?x?xf32>, tensor<?x?xf32>)
      outs(%probs_out : tensor<?x?x?xf32>) {
    ^bb0(%a: f32, %s: f32, %_: f32):
      %r = arith.divf %a, %s : f32
      linalg.yield %r : f32
  } -> tensor<?x?x?xf32>
  %ctx_init_empty = tensor.empty(%matrices, %seq) : tensor<?x?x16xf32>
  %ctx_init = linalg.fill ins(%zero : f32) outs(%ctx_init_empty : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %ctx = linalg.batch_matmul ins(%probs, %v_rows : tensor<?x?x?xf32>, tensor<?x?x16xf32>) outs(%ctx_init : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %ctx_split = tensor.expand_shape %ctx [[0, 1], [2], [3]] output_shape [%batch, 6, %seq, 16] : tensor<?x?x16xf32> into tensor<?x6x?x16xf32>
  %ctx_moved_out = tensor.empty(%batch, %seq) : tensor<?x?x6x16xf32>
  %ctx_moved = linalg.generic {
      indexing_maps = [affine_map<(b, s, h, j) -> (b, h, s, j)>, affine_map<(b, s, h, j) -> (b, s, h, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%ctx_split : tensor<?x6x?x16xf32>)
      outs(%ctx_moved_out : tensor<?x?x6x16xf32>) {
    ^bb0(%a: f32, %_: f32):
      linalg.yield %a : f32
  } -> tensor<?x?x6x16xf32>
  %ctx_flat = tensor.collapse_shape %ctx_moved [[0, 1], [2, 3]] : tensor<?x?x6x16xf32> into tensor<?x96xf32>
  %op_init_empty = tensor.empty(%tokens) : tensor<?x96xf32>
  %op_init = linalg.fill ins(%zero : f32) outs(%op_init_empty : tensor<?x96xf32>) -> tensor<?x96xf32>
  %op = linalg.matmul ins(%ctx_flat, %wo : tensor<?x96xf32>, tensor<96x96xf32>) outs(%op_init : tensor<?x96xf32>) -> tensor<?x96xf32>
  %attended_out = tensor.empty(%tokens) : tensor<?x96xf32>
  %attended = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%op, %bo, %x_rows : tensor<?x96xf32>, tensor<96xf32>, tensor<?x96xf32>)
      outs(%attended_out : tensor<?x96xf32>) {
    ^bb0(%p: f32, %z: f32, %old: f32, %_: f32):
      %y = arith.addf %p, %z : f32
      %r = arith.addf %y, %old : f32
      linalg.yield %r : f32
  } -> tensor<?x96xf32>
  %h_zero_empty = tensor.empty(%tokens) : tensor<?xf32>
  %h_zero = linalg.fill ins(%zero : f32) outs(%h_zero_empty : tensor<?xf32>) -> tensor<?xf32>
  %h_sum = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%attended : tensor<?x96xf32>)
      outs(%h_zero : tensor<?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<?xf32>
  %h_sq = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%attended, %h_sum : tensor<?x96xf32>, tensor<?xf32>)
      outs(%h_zero : tensor<?xf32>) {
    ^bb0(%a: f32, %total: f32, %acc: f32):
      %mean = arith.divf %total, %n_hidden : f32
      %d = arith.subf %a, %mean : f32
      %p = arith.mulf %d, %d : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
  } -> tensor<?xf32>
  %h_out = tensor.empty(%tokens) : tensor<?x96xf32>
  %h = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%attended, %h_sum, %h_sq, %attn_gain, %attn_shift : tensor<?x96xf32>, tensor<?xf32>, tensor<?xf32>, tensor<96xf32>, tensor<96xf32>)
      outs(%h_out : tensor<?x96xf32>) {
    ^bb0(%a: f32, %total: f32, %sq: f32, %g: f32, %low: f32, %_: f32):
      %mean = arith.divf %total, %n_hidden : f32
      %d = arith.subf %a, %mean : f32
      %var = arith.divf %sq, %n_hidden : f32
      %biased = arith.addf %var, %eps : f32
      %scale = math.rsqrt %biased : f32
      %u = arith.mulf %d, %scale : f32
      %v = arith.mulf %u, %g : f32
      %r = arith.addf %v, %low : f32
      linalg.yield %r : f32
  } -> tensor<?x96xf32>

  // Feed forward: gelu(x) = x / 2 * (1 + erf(x / sqrt 2)).
  %inner_init_empty = tensor.empty(%tokens) : tensor<?x384xf32>
  %inner_init = linalg.fill ins(%zero : f32) outs(%inner_init_empty : tensor<?x384xf32>) -> tensor<?x384xf32>
  %inner = linalg.matmul ins(%h, %w_in : tensor<?x96xf32>, tensor<96x384xf32>) outs(%inner_init : tensor<?x384xf32>) -> tensor<?x384xf32>
  %act_out = tensor.empty(%tokens) : tensor<?x384xf32>
  %act = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%inner, %b_in : tensor<?x384xf32>, tensor<384xf32>)
      outs(%act_out : tensor<?x384xf32>) {
    ^bb0(%p: f32, %z: f32, %_: f32):
      %y = arith.addf %p, %z : f32
      %u = arith.mulf %y, %inv_sqrt2 : f32
      %f = math.erf %u : f32
      %g = arith.addf %f, %one : f32
      %hy = arith.mulf %y, %half : f32
      %r = arith.mulf %hy, %g : f32
      linalg.yield %r : f32
  } -> tensor<?x384xf32>
  %outer_init_empty = tensor.empty(%tokens) : tensor<?x96xf32>
  %outer_init = linalg.fill ins(%zero : f32) outs(%outer_init_empty : tensor<?x96xf32>) -> tensor<?x96xf32>
  %outer = linalg.matmul ins(%act, %w_out : tensor<?x384xf32>, tensor<384x96xf32>) outs(%outer_init : tensor<?x96xf32>) -> tensor<?x96xf32>
  %mixed_out = tensor.empty(%tokens) : tensor<?x96xf32>
  %mixed = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%outer, %b_out, %h : tensor<?x96xf32>, tensor<96xf32>, tensor<?x96xf32>)
      outs(%mixed_out : tensor<?x96xf32>) {
    ^bb0(%p: f32, %z: f32, %old: f32, %_: f32):
      %y = arith.addf %p, %z : f32
      %r = arith.addf %y, %old : f32
      linalg.yield %r : f32
  } -> tensor<?x96xf32>
  %y_rows_zero_empty = tensor.empty(%tokens) : tensor<?xf32>
  %y_rows_zero = linalg.fill ins(%zero : f32) outs(%y_rows_zero_empty : tensor<?xf32>) -> tensor<?xf32>
  %y_rows_sum = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%mixed : tensor<?x96xf32>)
      outs(%y_rows_zero : tensor<?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      linalg.yield %s : f32
  } -> tensor<?xf32>
  %y_rows_sq = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%mixed, %y_rows_sum : tensor<?x96xf32>, tensor<?xf32>)
      outs(%y_rows_zero : tensor<?xf32>) {
    ^bb0(%a: f32, %total: f32, %acc: f32):
      %mean = arith.divf %total, %n_hidden : f32
      %d = arith.subf %a, %mean : f32
      %p = arith.mulf %d, %d : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
  } -> tensor<?xf32>
  %y_rows_out = tensor.empty(%tokens) : tensor<?x96xf32>
  %y_rows = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%mixed, %y_rows_sum, %y_rows_sq, %mlp_gain, %mlp_shift : tensor<?x96xf32>, tensor<?xf32>, tensor<?xf32>, tensor<96xf32>, tensor<96xf32>)
      outs(%y_rows_out : tensor<?x96xf32>) {
    ^bb0(%a: f32, %total: f32, %sq: f32, %g: f32, %low: f32, %_: f32):
      %mean = arith.divf %total, %n_hidden : f32
      %d = arith.subf %a, %mean : f32
      %var = arith.divf %sq, %n_hidden : f32
      %biased = arith.addf %var, %eps : f32
      %scale = math.rsqrt %biased : f32
      %u = arith.mulf %d, %scale : f32
      %v = arith.mulf %u, %g : f32
      %r = arith.addf %v, %low : f32
      linalg.yield %r : f32
  } -> tensor<?x96xf32>
  %y_all = tensor.expand_shape %y_rows [[0, 1], [2]] output_shape [%batch, %seq, 96] : tensor<?x96xf32> into tensor<?x?x96xf32>
  return %y_all : tensor<?x?x96xf32>
}
