// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Written by llama_decoder.py --hidden 64 --heads 4 --kv-heads 1 --head-dim 16 --ffn 176 --type f32 --max-positions 8192
// Do not edit. One llama decoder layer. Roots: batch, seq, kv (positions that the caches hold).
func.func @decoder(
    %x: tensor<?x?x64xf32> {pgkp.dims = ["batch", "seq", ""]},
    %k_cache: tensor<?x1x?x16xf32> {pgkp.dims = ["batch", "", "kv", ""], pgkp.persistent},
    %v_cache: tensor<?x1x?x16xf32> {pgkp.dims = ["batch", "", "kv", ""], pgkp.persistent},
    %cos: tensor<8192x8xf32> {pgkp.persistent},
    %sin: tensor<8192x8xf32> {pgkp.persistent},
    %attn_norm: tensor<64xf32> {pgkp.persistent},
    %wq: tensor<64x64xf32> {pgkp.persistent},
    %wk: tensor<64x16xf32> {pgkp.persistent},
    %wv: tensor<64x16xf32> {pgkp.persistent},
    %wo: tensor<64x64xf32> {pgkp.persistent},
    %mlp_norm: tensor<64xf32> {pgkp.persistent},
    %w_gate: tensor<64x176xf32> {pgkp.persistent},
    %w_up: tensor<64x176xf32> {pgkp.persistent},
    %w_down: tensor<176x64xf32> {pgkp.persistent})
    -> (tensor<?x?x64xf32>, tensor<?x1x?x16xf32> {pgkp.carries = 1 : i64}, tensor<?x1x?x16xf32> {pgkp.carries = 2 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c_kv_heads = arith.constant 1 : index
  %c_group = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %hidden = arith.constant 64.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %qk_scale = arith.constant 0.25 : f32
  // Finite, so that the difference to a row's maximum is never inf - inf.
  %masked_out = arith.constant -1.0e30 : f32

  %batch = tensor.dim %x, %c0 : tensor<?x?x64xf32>
  %seq = tensor.dim %x, %c1 : tensor<?x?x64xf32>
  %kv = tensor.dim %k_cache, %c2 : tensor<?x1x?x16xf32>
  %tokens = arith.muli %batch, %seq : index
  %length = arith.addi %kv, %seq : index
  %groups = arith.muli %batch, %c_kv_heads : index
  %rows = arith.muli %seq, %c_group : index

  // Attention block.
  %x_rows = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x64xf32> into tensor<?x64xf32>
  %h_zero_empty = tensor.empty(%tokens) : tensor<?xf32>
  %h_zero = linalg.fill ins(%zero : f32) outs(%h_zero_empty : tensor<?xf32>) -> tensor<?xf32>
  %h_sq = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x_rows : tensor<?x64xf32>)
      outs(%h_zero : tensor<?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %p = arith.mulf %a, %a : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
  } -> tensor<?xf32>
  %h_out = tensor.empty(%tokens) : tensor<?x64xf32>
  %h = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x_rows, %h_sq, %attn_norm : tensor<?x64xf32>, tensor<?xf32>, tensor<64xf32>)
      outs(%h_out : tensor<?x64xf32>) {
    ^bb0(%a: f32, %sq: f32, %w: f32, %_: f32):
      %mean = arith.divf %sq, %hidden : f32
      %biased = arith.addf %mean, %eps : f32
      %scale = math.rsqrt %biased : f32
      %n = arith.mulf %a, %scale : f32
      %r = arith.mulf %n, %w : f32
      linalg.yield %r : f32
  } -> tensor<?x64xf32>
  %qp_init_empty = tensor.empty(%tokens) : tensor<?x64xf32>
  %qp_init = linalg.fill ins(%zero : f32) outs(%qp_init_empty : tensor<?x64xf32>) -> tensor<?x64xf32>
  %qp = linalg.matmul ins(%h, %wq : tensor<?x64xf32>, tensor<64x64xf32>) outs(%qp_init : tensor<?x64xf32>) -> tensor<?x64xf32>
  %kp_init_empty = tensor.empty(%tokens) : tensor<?x16xf32>
  %kp_init = linalg.fill ins(%zero : f32) outs(%kp_init_empty : tensor<?x16xf32>) -> tensor<?x16xf32>
  %kp = linalg.matmul ins(%h, %wk : tensor<?x64xf32>, tensor<64x16xf32>) outs(%kp_init : tensor<?x16xf32>) -> tensor<?x16xf32>
  %vp_init_empty = tensor.empty(%tokens) : tensor<?x16xf32>
  %vp_init = linalg.fill ins(%zero : f32) outs(%vp_init_empty : tensor<?x16xf32>) -> tensor<?x16xf32>
  %vp = linalg.matmul ins(%h, %wv : tensor<?x64xf32>, tensor<64x16xf32>) outs(%vp_init : tensor<?x16xf32>) -> tensor<?x16xf32>

  // Rotary embedding of q and k; the new positions start at kv.
  %cos_now = tensor.extract_slice %cos[%kv, 0] [%seq, 8] [1, 1] : tensor<8192x8xf32> to tensor<?x8xf32>
  %sin_now = tensor.extract_slice %sin[%kv, 0] [%seq, 8] [1, 1] : tensor<8192x8xf32> to tensor<?x8xf32>
  %q_split = tensor.expand_shape %qp [[0, 1], [2, 3, 4]] output_shape [%batch, %seq, 4, 2, 8] : tensor<?x64xf32> into tensor<?x?x4x2x8xf32>
  %q_lo = tensor.extract_slice %q_split[0, 0, 0, 0, 0] [%batch, %seq, 4, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x4x2x8xf32> to tensor<?x?x4x8xf32>
  %q_hi = tensor.extract_slice %q_split[0, 0, 0, 1, 0] [%batch, %seq, 4, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x4x2x8xf32> to tensor<?x?x4x8xf32>
  %q_out = tensor.empty(%batch, %seq) : tensor<?x4x?x2x8xf32>
  %q_rot = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, t, j) -> (b, s, h, t, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (b, h, s, t, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%q_split, %q_lo, %q_hi, %cos_now, %sin_now : tensor<?x?x4x2x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
      outs(%q_out : tensor<?x4x?x2x8xf32>) {
    ^bb0(%a: f32, %lo: f32, %hi: f32, %c: f32, %d: f32, %_: f32):
      %t = linalg.index 3 : index
      %first = arith.cmpi eq, %t, %c0 : index
      %neg = arith.negf %hi : f32
      %other = arith.select %first, %neg, %lo : f32
      %ac = arith.mulf %a, %c : f32
      %od = arith.mulf %other, %d : f32
      %r = arith.addf %ac, %od : f32
      linalg.yield %r : f32
  } -> tensor<?x4x?x2x8xf32>
  %q = tensor.collapse_shape %q_rot [[0], [1], [2], [3, 4]] : tensor<?x4x?x2x8xf32> into tensor<?x4x?x16xf32>
  %k_new_split = tensor.expand_shape %kp [[0, 1], [2, 3, 4]] output_shape [%batch, %seq, 1, 2, 8] : tensor<?x16xf32> into tensor<?x?x1x2x8xf32>
  %k_new_lo = tensor.extract_slice %k_new_split[0, 0, 0, 0, 0] [%batch, %seq, 1, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x1x2x8xf32> to tensor<?x?x1x8xf32>
  %k_new_hi = tensor.extract_slice %k_new_split[0, 0, 0, 1, 0] [%batch, %seq, 1, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x1x2x8xf32> to tensor<?x?x1x8xf32>
  %k_new_out = tensor.empty(%batch, %seq) : tensor<?x1x?x2x8xf32>
  %k_new_rot = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, t, j) -> (b, s, h, t, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (b, h, s, t, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%k_new_split, %k_new_lo, %k_new_hi, %cos_now, %sin_now : tensor<?x?x1x2x8xf32>, tensor<?x?x1x8xf32>, tensor<?x?x1x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
      outs(%k_new_out : tensor<?x1x?x2x8xf32>) {
    ^bb0(%a: f32, %lo: f32, %hi: f32, %c: f32, %d: f32, %_: f32):
      %t = linalg.index 3 : index
      %first = arith.cmpi eq, %t, %c0 : index
      %neg = arith.negf %hi : f32
      %other = arith.select %first, %neg, %lo : f32
      %ac = arith.mulf %a, %c : f32
      %od = arith.mulf %other, %d : f32
      %r = arith.addf %ac, %od : f32
      linalg.yield %r : f32
  } -> tensor<?x1x?x2x8xf32>
  %k_new = tensor.collapse_shape %k_new_rot [[0], [1], [2], [3, 4]] : tensor<?x1x?x2x8xf32> into tensor<?x1x?x16xf32>
  %v_split = tensor.expand_shape %vp [[0, 1], [2, 3]] output_shape [%batch, %seq, 1, 16] : tensor<?x16xf32> into tensor<?x?x1x16xf32>
  %v_new_out = tensor.empty(%batch, %seq) : tensor<?x1x?x16xf32>
  %v_new = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, j) -> (b, s, h, j)>, affine_map<(b, h, s, j) -> (b, h, s, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v_split : tensor<?x?x1x16xf32>)
      outs(%v_new_out : tensor<?x1x?x16xf32>) {
    ^bb0(%a: f32, %_: f32):
      linalg.yield %a : f32
  } -> tensor<?x1x?x16xf32>

  // The caches grow by seq positions.
  %k = tensor.concat dim(2) %k_cache, %k_new : (tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>) -> tensor<?x1x?x16xf32>
  %v = tensor.concat dim(2) %v_cache, %v_new : (tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>) -> tensor<?x1x?x16xf32>

  // Grouped-query attention: the query heads of a group share a kv head, so they are rows of one product.
  %q_groups = tensor.expand_shape %q [[0], [1, 2], [3], [4]] output_shape [%batch, 1, 4, %seq, 16] : tensor<?x4x?x16xf32> into tensor<?x1x4x?x16xf32>
  %q_rows = tensor.collapse_shape %q_groups [[0, 1], [2, 3], [4]] : tensor<?x1x4x?x16xf32> into tensor<?x?x16xf32>
  %k_rows = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<?x1x?x16xf32> into tensor<?x?x16xf32>
  %v_rows = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<?x1x?x16xf32> into tensor<?x?x16xf32>
  %qk_init_empty = tensor.empty(%groups, %rows, %length) : tensor<?x?x?xf32>
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

  // Causal softmax: the query at position kv + i sees keys j <= kv + i.
  %qk_split = tensor.expand_shape %qk [[0], [1, 2], [3]] output_shape [%groups, 4, %seq, %length] : tensor<?x?x?xf32> into tensor<?x4x?x?xf32>
  %masked_init = tensor.empty(%groups, %seq, %length) : tensor<?x4x?x?xf32>
  %masked = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%qk_split : tensor<?x4x?x?xf32>)
      outs(%masked_init : tensor<?x4x?x?xf32>) {
    ^bb0(%a: f32, %_: f32):
      %i = linalg.index 2 : index
      %j = linalg.index 3 : index
      %position = arith.addi %kv, %i : index
      %seen = arith.cmpi ule, %j, %position : index
      %scaled = arith.mulf %a, %qk_scale : f32
      %r = arith.select %seen, %scaled, %masked_out : f32
      linalg.yield %r : f32
  } -> tensor<?x4x?x?xf32>
  %max_init_empty = tensor.empty(%groups, %seq) : tensor<?x4x?xf32>
  %max_init = linalg.fill ins(%lowest : f32) outs(%max_init_empty : tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %max = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%masked : tensor<?x4x?x?xf32>)
      outs(%max_init : tensor<?x4x?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %r = arith.maxnumf %acc, %a : f32
      linalg.yield %r : f32
  } -> tensor<?x4x?xf32>
  %exp_out = tensor.empty(%groups, %seq, %length) : tensor<?x4x?x?xf32>
  %exp = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>, affine_map<(b, g, i, j) -> (b, g, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%masked, %max : tensor<?x4x?x?xf32>, tensor<?x4x?xf32>)
      outs(%exp_out : tensor<?x4x?x?xf32>) {
    ^bb0(%a: f32, %m: f32, %_: f32):
      %d = arith.subf %a, %m : f32
      %r = math.exp %d : f32
      linalg.yield %r : f32
  } -> tensor<?x4x?x?xf32>
  %sum_init_empty = tensor.empty(%groups, %seq) : tensor<?x4x?xf32>
  %sum_init = linalg.fill ins(%zero : f32) outs(%sum_init_empty : tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %sum = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%exp : tensor<?x4x?x?xf32>)
      outs(%sum_init : tensor<?x4x?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %r = arith.addf %acc, %a : f32
      linalg.yield %r : f32
  } -> tensor<?x4x?xf32>
  %probs_out = tensor.empty(%groups, %seq, %length) : tensor<?x4x?x?xf32>
  %probs = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>, affine_map<(b, g, i, j) -> (b, g, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%exp, %sum : tensor<?x4x?x?xf32>, tensor<?x4x?xf32>)
      outs(%probs_out : tensor<?x4x?x?xf32>) {
    ^bb0(%a: f32, %s: f32, %_: f32):
      %r = arith.divf %a, %s : f32
      linalg.yield %r : f32
  } -> tensor<?x4x?x?xf32>

  %probs_rows = tensor.collapse_shape %probs [[0], [1, 2], [3]] : tensor<?x4x?x?xf32> into tensor<?x?x?xf32>
  %ctx_init_empty = tensor.empty(%groups, %rows) : tensor<?x?x16xf32>
  %ctx_init = linalg.fill ins(%zero : f32) outs(%ctx_init_empty : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %ctx = linalg.batch_matmul ins(%probs_rows, %v_rows : tensor<?x?x?xf32>, tensor<?x?x16xf32>) outs(%ctx_init : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %ctx_split = tensor.expand_shape %ctx [[0, 1], [2, 3], [4]] output_shape [%batch, 1, 4, %seq, 16] : tensor<?x?x16xf32> into tensor<?x1x4x?x16xf32>
  %heads_out = tensor.empty(%batch, %seq) : tensor<?x?x1x4x16xf32>
  %heads = linalg.generic {
      indexing_maps = [affine_map<(b, s, h, g, j) -> (b, h, g, s, j)>, affine_map<(b, s, h, g, j) -> (b, s, h, g, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%ctx_split : tensor<?x1x4x?x16xf32>)
      outs(%heads_out : tensor<?x?x1x4x16xf32>) {
    ^bb0(%a: f32, %_: f32):
      linalg.yield %a : f32
  } -> tensor<?x?x1x4x16xf32>
  %heads_rows = tensor.collapse_shape %heads [[0, 1], [2, 3, 4]] : tensor<?x?x1x4x16xf32> into tensor<?x64xf32>
  %op_init_empty = tensor.empty(%tokens) : tensor<?x64xf32>
  %op_init = linalg.fill ins(%zero : f32) outs(%op_init_empty : tensor<?x64xf32>) -> tensor<?x64xf32>
  %op = linalg.matmul ins(%heads_rows, %wo : tensor<?x64xf32>, tensor<64x64xf32>) outs(%op_init : tensor<?x64xf32>) -> tensor<?x64xf32>
  %x_attn_out = tensor.empty(%tokens) : tensor<?x64xf32>
  %x_attn = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%op, %x_rows : tensor<?x64xf32>, tensor<?x64xf32>)
      outs(%x_attn_out : tensor<?x64xf32>) {
    ^bb0(%p: f32, %a: f32, %_: f32):
      %r = arith.addf %p, %a : f32
      linalg.yield %r : f32
  } -> tensor<?x64xf32>

  // SwiGLU block.
  %g_zero_empty = tensor.empty(%tokens) : tensor<?xf32>
  %g_zero = linalg.fill ins(%zero : f32) outs(%g_zero_empty : tensor<?xf32>) -> tensor<?xf32>
  %g_sq = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x_attn : tensor<?x64xf32>)
      outs(%g_zero : tensor<?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %p = arith.mulf %a, %a : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
  } -> tensor<?xf32>
  %g_out = tensor.empty(%tokens) : tensor<?x64xf32>
  %g = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x_attn, %g_sq, %mlp_norm : tensor<?x64xf32>, tensor<?xf32>, tensor<64xf32>)
      outs(%g_out : tensor<?x64xf32>) {
    ^bb0(%a: f32, %sq: f32, %w: f32, %_: f32):
      %mean = arith.divf %sq, %hidden : f32
      %biased = arith.addf %mean, %eps : f32
      %scale = math.rsqrt %biased : f32
      %n = arith.mulf %a, %scale : f32
      %r = arith.mulf %n, %w : f32
      linalg.yield %r : f32
  } -> tensor<?x64xf32>
  %gate_init_empty = tensor.empty(%tokens) : tensor<?x176xf32>
  %gate_init = linalg.fill ins(%zero : f32) outs(%gate_init_empty : tensor<?x176xf32>) -> tensor<?x176xf32>
  %gate = linalg.matmul ins(%g, %w_gate : tensor<?x64xf32>, tensor<64x176xf32>) outs(%gate_init : tensor<?x176xf32>) -> tensor<?x176xf32>
  %up_init_empty = tensor.empty(%tokens) : tensor<?x176xf32>
  %up_init = linalg.fill ins(%zero : f32) outs(%up_init_empty : tensor<?x176xf32>) -> tensor<?x176xf32>
  %up = linalg.matmul ins(%g, %w_up : tensor<?x64xf32>, tensor<64x176xf32>) outs(%up_init : tensor<?x176xf32>) -> tensor<?x176xf32>
  %act_out = tensor.empty(%tokens) : tensor<?x176xf32>
  %act = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%gate, %up : tensor<?x176xf32>, tensor<?x176xf32>)
      outs(%act_out : tensor<?x176xf32>) {
    ^bb0(%a: f32, %u: f32, %_: f32):
      %n = arith.negf %a : f32
      %x_ = math.exp %n : f32
      %d = arith.addf %x_, %one : f32
      %silu = arith.divf %a, %d : f32
      %r = arith.mulf %silu, %u : f32
      linalg.yield %r : f32
  } -> tensor<?x176xf32>
  %down_init_empty = tensor.empty(%tokens) : tensor<?x64xf32>
  %down_init = linalg.fill ins(%zero : f32) outs(%down_init_empty : tensor<?x64xf32>) -> tensor<?x64xf32>
  %down = linalg.matmul ins(%act, %w_down : tensor<?x176xf32>, tensor<176x64xf32>) outs(%down_init : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y_rows_out = tensor.empty(%tokens) : tensor<?x64xf32>
  %y_rows = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%down, %x_attn : tensor<?x64xf32>, tensor<?x64xf32>)
      outs(%y_rows_out : tensor<?x64xf32>) {
    ^bb0(%p: f32, %a: f32, %_: f32):
      %r = arith.addf %p, %a : f32
      linalg.yield %r : f32
  } -> tensor<?x64xf32>
  %y = tensor.expand_shape %y_rows [[0, 1], [2]] output_shape [%batch, %seq, 64] : tensor<?x64xf32> into tensor<?x?x64xf32>
  return %y, %k, %v : tensor<?x?x64xf32>, tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>
}
