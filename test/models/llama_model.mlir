// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Written by llama_model.py --hidden 64 --heads 4 --kv-heads 1 --head-dim 16 --ffn 176 --type f32 --max-positions 8192 --layers 4 --vocabulary 2000
// Do not edit. A whole llama model.
func.func @llama(
    %ids: tensor<?x?xi32> {pgkp.dims = ["batch", "seq"], pgkp.range = [0, 1999]},
    %k_cache_0: tensor<?x1x?x16xf32> {pgkp.dims = ["batch", "", "kv", ""], pgkp.persistent},
    %v_cache_0: tensor<?x1x?x16xf32> {pgkp.dims = ["batch", "", "kv", ""], pgkp.persistent},
    %k_cache_1: tensor<?x1x?x16xf32> {pgkp.dims = ["batch", "", "kv", ""], pgkp.persistent},
    %v_cache_1: tensor<?x1x?x16xf32> {pgkp.dims = ["batch", "", "kv", ""], pgkp.persistent},
    %k_cache_2: tensor<?x1x?x16xf32> {pgkp.dims = ["batch", "", "kv", ""], pgkp.persistent},
    %v_cache_2: tensor<?x1x?x16xf32> {pgkp.dims = ["batch", "", "kv", ""], pgkp.persistent},
    %k_cache_3: tensor<?x1x?x16xf32> {pgkp.dims = ["batch", "", "kv", ""], pgkp.persistent},
    %v_cache_3: tensor<?x1x?x16xf32> {pgkp.dims = ["batch", "", "kv", ""], pgkp.persistent},
    %cos: tensor<8192x8xf32> {pgkp.persistent},
    %sin: tensor<8192x8xf32> {pgkp.persistent},
    %embedding: tensor<2000x64xf32> {pgkp.persistent},
    %attn_norm_0: tensor<64xf32> {pgkp.persistent},
    %wq_0: tensor<64x64xf32> {pgkp.persistent},
    %wk_0: tensor<64x16xf32> {pgkp.persistent},
    %wv_0: tensor<64x16xf32> {pgkp.persistent},
    %wo_0: tensor<64x64xf32> {pgkp.persistent},
    %mlp_norm_0: tensor<64xf32> {pgkp.persistent},
    %w_gate_0: tensor<64x176xf32> {pgkp.persistent},
    %w_up_0: tensor<64x176xf32> {pgkp.persistent},
    %w_down_0: tensor<176x64xf32> {pgkp.persistent},
    %attn_norm_1: tensor<64xf32> {pgkp.persistent},
    %wq_1: tensor<64x64xf32> {pgkp.persistent},
    %wk_1: tensor<64x16xf32> {pgkp.persistent},
    %wv_1: tensor<64x16xf32> {pgkp.persistent},
    %wo_1: tensor<64x64xf32> {pgkp.persistent},
    %mlp_norm_1: tensor<64xf32> {pgkp.persistent},
    %w_gate_1: tensor<64x176xf32> {pgkp.persistent},
    %w_up_1: tensor<64x176xf32> {pgkp.persistent},
    %w_down_1: tensor<176x64xf32> {pgkp.persistent},
    %attn_norm_2: tensor<64xf32> {pgkp.persistent},
    %wq_2: tensor<64x64xf32> {pgkp.persistent},
    %wk_2: tensor<64x16xf32> {pgkp.persistent},
    %wv_2: tensor<64x16xf32> {pgkp.persistent},
    %wo_2: tensor<64x64xf32> {pgkp.persistent},
    %mlp_norm_2: tensor<64xf32> {pgkp.persistent},
    %w_gate_2: tensor<64x176xf32> {pgkp.persistent},
    %w_up_2: tensor<64x176xf32> {pgkp.persistent},
    %w_down_2: tensor<176x64xf32> {pgkp.persistent},
    %attn_norm_3: tensor<64xf32> {pgkp.persistent},
    %wq_3: tensor<64x64xf32> {pgkp.persistent},
    %wk_3: tensor<64x16xf32> {pgkp.persistent},
    %wv_3: tensor<64x16xf32> {pgkp.persistent},
    %wo_3: tensor<64x64xf32> {pgkp.persistent},
    %mlp_norm_3: tensor<64xf32> {pgkp.persistent},
    %w_gate_3: tensor<64x176xf32> {pgkp.persistent},
    %w_up_3: tensor<64x176xf32> {pgkp.persistent},
    %w_down_3: tensor<176x64xf32> {pgkp.persistent},
    %final_norm: tensor<64xf32> {pgkp.persistent},
    %head: tensor<64x2000xf32> {pgkp.persistent})
    -> (tensor<?x?x2000xf32>, tensor<?x1x?x16xf32> {pgkp.carries = 1 : i64}, tensor<?x1x?x16xf32> {pgkp.carries = 2 : i64}, tensor<?x1x?x16xf32> {pgkp.carries = 3 : i64}, tensor<?x1x?x16xf32> {pgkp.carries = 4 : i64}, tensor<?x1x?x16xf32> {pgkp.carries = 5 : i64}, tensor<?x1x?x16xf32> {pgkp.carries = 6 : i64}, tensor<?x1x?x16xf32> {pgkp.carries = 7 : i64}, tensor<?x1x?x16xf32> {pgkp.carries = 8 : i64}) {
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

  %batch = tensor.dim %ids, %c0 : tensor<?x?xi32>
  %seq = tensor.dim %ids, %c1 : tensor<?x?xi32>
  %kv = tensor.dim %k_cache_0, %c2 : tensor<?x1x?x16xf32>
  %tokens = arith.muli %batch, %seq : index
  %length = arith.addi %kv, %seq : index
  %groups = arith.muli %batch, %c_kv_heads : index
  %rows = arith.muli %seq, %c_group : index

  // Embedding.
  %ids_flat = tensor.collapse_shape %ids [[0, 1]] : tensor<?x?xi32> into tensor<?xi32>
  %x_rows_out = tensor.empty(%tokens) : tensor<?x64xf32>
  %x_rows = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%ids_flat : tensor<?xi32>)
      outs(%x_rows_out : tensor<?x64xf32>) {
    ^bb0(%id: i32, %_: f32):
      %row = arith.index_cast %id : i32 to index
      %column = linalg.index 1 : index
      %value = tensor.extract %embedding[%row, %column] : tensor<2000x64xf32>
      linalg.yield %value : f32
  } -> tensor<?x64xf32>
  %cos_now = tensor.extract_slice %cos[%kv, 0] [%seq, 8] [1, 1] : tensor<8192x8xf32> to tensor<?x8xf32>
  %sin_now = tensor.extract_slice %sin[%kv, 0] [%seq, 8] [1, 1] : tensor<8192x8xf32> to tensor<?x8xf32>

  // Layer 0.
  %h_zero_empty_0 = tensor.empty(%tokens) : tensor<?xf32>
  %h_zero_0 = linalg.fill ins(%zero : f32) outs(%h_zero_empty_0 : tensor<?xf32>) -> tensor<?xf32>
  %h_sq_0 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x_rows : tensor<?x64xf32>)
      outs(%h_zero_0 : tensor<?xf32>) {
    ^bb0(%a_0: f32, %acc_0: f32):
      %p_0 = arith.mulf %a_0, %a_0 : f32
      %s_0 = arith.addf %acc_0, %p_0 : f32
      linalg.yield %s_0 : f32
  } -> tensor<?xf32>
  %h_out_0 = tensor.empty(%tokens) : tensor<?x64xf32>
  %h_0 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x_rows, %h_sq_0, %attn_norm_0 : tensor<?x64xf32>, tensor<?xf32>, tensor<64xf32>)
      outs(%h_out_0 : tensor<?x64xf32>) {
    ^bb0(%a_0: f32, %sq_0: f32, %w_0: f32, %__0: f32):
      %mean_0 = arith.divf %sq_0, %hidden : f32
      %biased_0 = arith.addf %mean_0, %eps : f32
      %scale_0 = math.rsqrt %biased_0 : f32
      %n_0 = arith.mulf %a_0, %scale_0 : f32
      %r_0 = arith.mulf %n_0, %w_0 : f32
      linalg.yield %r_0 : f32
  } -> tensor<?x64xf32>
  %qp_init_empty_0 = tensor.empty(%tokens) : tensor<?x64xf32>
  %qp_init_0 = linalg.fill ins(%zero : f32) outs(%qp_init_empty_0 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %qp_0 = linalg.matmul ins(%h_0, %wq_0 : tensor<?x64xf32>, tensor<64x64xf32>) outs(%qp_init_0 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %kp_init_empty_0 = tensor.empty(%tokens) : tensor<?x16xf32>
  %kp_init_0 = linalg.fill ins(%zero : f32) outs(%kp_init_empty_0 : tensor<?x16xf32>) -> tensor<?x16xf32>
  %kp_0 = linalg.matmul ins(%h_0, %wk_0 : tensor<?x64xf32>, tensor<64x16xf32>) outs(%kp_init_0 : tensor<?x16xf32>) -> tensor<?x16xf32>
  %vp_init_empty_0 = tensor.empty(%tokens) : tensor<?x16xf32>
  %vp_init_0 = linalg.fill ins(%zero : f32) outs(%vp_init_empty_0 : tensor<?x16xf32>) -> tensor<?x16xf32>
  %vp_0 = linalg.matmul ins(%h_0, %wv_0 : tensor<?x64xf32>, tensor<64x16xf32>) outs(%vp_init_0 : tensor<?x16xf32>) -> tensor<?x16xf32>

  // Rotary embedding of q and k; the new positions start at kv.
  %q_split_0 = tensor.expand_shape %qp_0 [[0, 1], [2, 3, 4]] output_shape [%batch, %seq, 4, 2, 8] : tensor<?x64xf32> into tensor<?x?x4x2x8xf32>
  %q_lo_0 = tensor.extract_slice %q_split_0[0, 0, 0, 0, 0] [%batch, %seq, 4, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x4x2x8xf32> to tensor<?x?x4x8xf32>
  %q_hi_0 = tensor.extract_slice %q_split_0[0, 0, 0, 1, 0] [%batch, %seq, 4, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x4x2x8xf32> to tensor<?x?x4x8xf32>
  %q_out_0 = tensor.empty(%batch, %seq) : tensor<?x4x?x2x8xf32>
  %q_rot_0 = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, t, j) -> (b, s, h, t, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (b, h, s, t, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%q_split_0, %q_lo_0, %q_hi_0, %cos_now, %sin_now : tensor<?x?x4x2x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
      outs(%q_out_0 : tensor<?x4x?x2x8xf32>) {
    ^bb0(%a_0: f32, %lo_0: f32, %hi_0: f32, %c_0: f32, %d_0: f32, %__0: f32):
      %t_0 = linalg.index 3 : index
      %first_0 = arith.cmpi eq, %t_0, %c0 : index
      %neg_0 = arith.negf %hi_0 : f32
      %other_0 = arith.select %first_0, %neg_0, %lo_0 : f32
      %ac_0 = arith.mulf %a_0, %c_0 : f32
      %od_0 = arith.mulf %other_0, %d_0 : f32
      %r_0 = arith.addf %ac_0, %od_0 : f32
      linalg.yield %r_0 : f32
  } -> tensor<?x4x?x2x8xf32>
  %q_0 = tensor.collapse_shape %q_rot_0 [[0], [1], [2], [3, 4]] : tensor<?x4x?x2x8xf32> into tensor<?x4x?x16xf32>
  %k_new_split_0 = tensor.expand_shape %kp_0 [[0, 1], [2, 3, 4]] output_shape [%batch, %seq, 1, 2, 8] : tensor<?x16xf32> into tensor<?x?x1x2x8xf32>
  %k_new_lo_0 = tensor.extract_slice %k_new_split_0[0, 0, 0, 0, 0] [%batch, %seq, 1, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x1x2x8xf32> to tensor<?x?x1x8xf32>
  %k_new_hi_0 = tensor.extract_slice %k_new_split_0[0, 0, 0, 1, 0] [%batch, %seq, 1, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x1x2x8xf32> to tensor<?x?x1x8xf32>
  %k_new_out_0 = tensor.empty(%batch, %seq) : tensor<?x1x?x2x8xf32>
  %k_new_rot_0 = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, t, j) -> (b, s, h, t, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (b, h, s, t, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%k_new_split_0, %k_new_lo_0, %k_new_hi_0, %cos_now, %sin_now : tensor<?x?x1x2x8xf32>, tensor<?x?x1x8xf32>, tensor<?x?x1x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
      outs(%k_new_out_0 : tensor<?x1x?x2x8xf32>) {
    ^bb0(%a_0: f32, %lo_0: f32, %hi_0: f32, %c_0: f32, %d_0: f32, %__0: f32):
      %t_0 = linalg.index 3 : index
      %first_0 = arith.cmpi eq, %t_0, %c0 : index
      %neg_0 = arith.negf %hi_0 : f32
      %other_0 = arith.select %first_0, %neg_0, %lo_0 : f32
      %ac_0 = arith.mulf %a_0, %c_0 : f32
      %od_0 = arith.mulf %other_0, %d_0 : f32
      %r_0 = arith.addf %ac_0, %od_0 : f32
      linalg.yield %r_0 : f32
  } -> tensor<?x1x?x2x8xf32>
  %k_new_0 = tensor.collapse_shape %k_new_rot_0 [[0], [1], [2], [3, 4]] : tensor<?x1x?x2x8xf32> into tensor<?x1x?x16xf32>
  %v_split_0 = tensor.expand_shape %vp_0 [[0, 1], [2, 3]] output_shape [%batch, %seq, 1, 16] : tensor<?x16xf32> into tensor<?x?x1x16xf32>
  %v_new_out_0 = tensor.empty(%batch, %seq) : tensor<?x1x?x16xf32>
  %v_new_0 = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, j) -> (b, s, h, j)>, affine_map<(b, h, s, j) -> (b, h, s, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v_split_0 : tensor<?x?x1x16xf32>)
      outs(%v_new_out_0 : tensor<?x1x?x16xf32>) {
    ^bb0(%a_0: f32, %__0: f32):
      linalg.yield %a_0 : f32
  } -> tensor<?x1x?x16xf32>

  // The caches grow by seq positions.
  %k_0 = tensor.concat dim(2) %k_cache_0, %k_new_0 : (tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>) -> tensor<?x1x?x16xf32>
  %v_0 = tensor.concat dim(2) %v_cache_0, %v_new_0 : (tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>) -> tensor<?x1x?x16xf32>

  // Grouped-query attention: the query heads of a group share a kv head, so they are rows of one product.
  %q_groups_0 = tensor.expand_shape %q_0 [[0], [1, 2], [3], [4]] output_shape [%batch, 1, 4, %seq, 16] : tensor<?x4x?x16xf32> into tensor<?x1x4x?x16xf32>
  %q_rows_0 = tensor.collapse_shape %q_groups_0 [[0, 1], [2, 3], [4]] : tensor<?x1x4x?x16xf32> into tensor<?x?x16xf32>
  %k_rows_0 = tensor.collapse_shape %k_0 [[0, 1], [2], [3]] : tensor<?x1x?x16xf32> into tensor<?x?x16xf32>
  %v_rows_0 = tensor.collapse_shape %v_0 [[0, 1], [2], [3]] : tensor<?x1x?x16xf32> into tensor<?x?x16xf32>
  %qk_init_empty_0 = tensor.empty(%groups, %rows, %length) : tensor<?x?x?xf32>
  %qk_init_0 = linalg.fill ins(%zero : f32) outs(%qk_init_empty_0 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %qk_0 = linalg.generic {
      indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q_rows_0, %k_rows_0 : tensor<?x?x16xf32>, tensor<?x?x16xf32>)
      outs(%qk_init_0 : tensor<?x?x?xf32>) {
    ^bb0(%a_0: f32, %w_0: f32, %acc_0: f32):
      %p_0 = arith.mulf %a_0, %w_0 : f32
      %s_0 = arith.addf %acc_0, %p_0 : f32
      linalg.yield %s_0 : f32
  } -> tensor<?x?x?xf32>

  // Causal softmax: the query at position kv + i sees keys j <= kv + i.
  %qk_split_0 = tensor.expand_shape %qk_0 [[0], [1, 2], [3]] output_shape [%groups, 4, %seq, %length] : tensor<?x?x?xf32> into tensor<?x4x?x?xf32>
  %masked_init_0 = tensor.empty(%groups, %seq, %length) : tensor<?x4x?x?xf32>
  %masked_0 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%qk_split_0 : tensor<?x4x?x?xf32>)
      outs(%masked_init_0 : tensor<?x4x?x?xf32>) {
    ^bb0(%a_0: f32, %__0: f32):
      %i_0 = linalg.index 2 : index
      %j_0 = linalg.index 3 : index
      %position_0 = arith.addi %kv, %i_0 : index
      %seen_0 = arith.cmpi ule, %j_0, %position_0 : index
      %scaled_0 = arith.mulf %a_0, %qk_scale : f32
      %r_0 = arith.select %seen_0, %scaled_0, %masked_out : f32
      linalg.yield %r_0 : f32
  } -> tensor<?x4x?x?xf32>
  %max_init_empty_0 = tensor.empty(%groups, %seq) : tensor<?x4x?xf32>
  %max_init_0 = linalg.fill ins(%lowest : f32) outs(%max_init_empty_0 : tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %max_0 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%masked_0 : tensor<?x4x?x?xf32>)
      outs(%max_init_0 : tensor<?x4x?xf32>) {
    ^bb0(%a_0: f32, %acc_0: f32):
      %r_0 = arith.maxnumf %acc_0, %a_0 : f32
      linalg.yield %r_0 : f32
  } -> tensor<?x4x?xf32>
  %exp_out_0 = tensor.empty(%groups, %seq, %length) : tensor<?x4x?x?xf32>
  %exp_0 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>, affine_map<(b, g, i, j) -> (b, g, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%masked_0, %max_0 : tensor<?x4x?x?xf32>, tensor<?x4x?xf32>)
      outs(%exp_out_0 : tensor<?x4x?x?xf32>) {
    ^bb0(%a_0: f32, %m_0: f32, %__0: f32):
      %d_0 = arith.subf %a_0, %m_0 : f32
      %r_0 = math.exp %d_0 : f32
      linalg.yield %r_0 : f32
  } -> tensor<?x4x?x?xf32>
  %sum_init_empty_0 = tensor.empty(%groups, %seq) : tensor<?x4x?xf32>
  %sum_init_0 = linalg.fill ins(%zero : f32) outs(%sum_init_empty_0 : tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %sum_0 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%exp_0 : tensor<?x4x?x?xf32>)
      outs(%sum_init_0 : tensor<?x4x?xf32>) {
    ^bb0(%a_0: f32, %acc_0: f32):
      %r_0 = arith.addf %acc_0, %a_0 : f32
      linalg.yield %r_0 : f32
  } -> tensor<?x4x?xf32>
  %probs_out_0 = tensor.empty(%groups, %seq, %length) : tensor<?x4x?x?xf32>
  %probs_0 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>, affine_map<(b, g, i, j) -> (b, g, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%exp_0, %sum_0 : tensor<?x4x?x?xf32>, tensor<?x4x?xf32>)
      outs(%probs_out_0 : tensor<?x4x?x?xf32>) {
    ^bb0(%a_0: f32, %s_0: f32, %__0: f32):
      %r_0 = arith.divf %a_0, %s_0 : f32
      linalg.yield %r_0 : f32
  } -> tensor<?x4x?x?xf32>

  %probs_rows_0 = tensor.collapse_shape %probs_0 [[0], [1, 2], [3]] : tensor<?x4x?x?xf32> into tensor<?x?x?xf32>
  %ctx_init_empty_0 = tensor.empty(%groups, %rows) : tensor<?x?x16xf32>
  %ctx_init_0 = linalg.fill ins(%zero : f32) outs(%ctx_init_empty_0 : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %ctx_0 = linalg.batch_matmul ins(%probs_rows_0, %v_rows_0 : tensor<?x?x?xf32>, tensor<?x?x16xf32>) outs(%ctx_init_0 : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %ctx_split_0 = tensor.expand_shape %ctx_0 [[0, 1], [2, 3], [4]] output_shape [%batch, 1, 4, %seq, 16] : tensor<?x?x16xf32> into tensor<?x1x4x?x16xf32>
  %heads_out_0 = tensor.empty(%batch, %seq) : tensor<?x?x1x4x16xf32>
  %heads_0 = linalg.generic {
      indexing_maps = [affine_map<(b, s, h, g, j) -> (b, h, g, s, j)>, affine_map<(b, s, h, g, j) -> (b, s, h, g, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%ctx_split_0 : tensor<?x1x4x?x16xf32>)
      outs(%heads_out_0 : tensor<?x?x1x4x16xf32>) {
    ^bb0(%a_0: f32, %__0: f32):
      linalg.yield %a_0 : f32
  } -> tensor<?x?x1x4x16xf32>
  %heads_rows_0 = tensor.collapse_shape %heads_0 [[0, 1], [2, 3, 4]] : tensor<?x?x1x4x16xf32> into tensor<?x64xf32>
  %op_init_empty_0 = tensor.empty(%tokens) : tensor<?x64xf32>
  %op_init_0 = linalg.fill ins(%zero : f32) outs(%op_init_empty_0 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %op_0 = linalg.matmul ins(%heads_rows_0, %wo_0 : tensor<?x64xf32>, tensor<64x64xf32>) outs(%op_init_0 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %x_attn_out_0 = tensor.empty(%tokens) : tensor<?x64xf32>
  %x_attn_0 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%op_0, %x_rows : tensor<?x64xf32>, tensor<?x64xf32>)
      outs(%x_attn_out_0 : tensor<?x64xf32>) {
    ^bb0(%p_0: f32, %a_0: f32, %__0: f32):
      %r_0 = arith.addf %p_0, %a_0 : f32
      linalg.yield %r_0 : f32
  } -> tensor<?x64xf32>

  // SwiGLU block.
  %g_zero_empty_0 = tensor.empty(%tokens) : tensor<?xf32>
  %g_zero_0 = linalg.fill ins(%zero : f32) outs(%g_zero_empty_0 : tensor<?xf32>) -> tensor<?xf32>
  %g_sq_0 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x_attn_0 : tensor<?x64xf32>)
      outs(%g_zero_0 : tensor<?xf32>) {
    ^bb0(%a_0: f32, %acc_0: f32):
      %p_0 = arith.mulf %a_0, %a_0 : f32
      %s_0 = arith.addf %acc_0, %p_0 : f32
      linalg.yield %s_0 : f32
  } -> tensor<?xf32>
  %g_out_0 = tensor.empty(%tokens) : tensor<?x64xf32>
  %g_0 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x_attn_0, %g_sq_0, %mlp_norm_0 : tensor<?x64xf32>, tensor<?xf32>, tensor<64xf32>)
      outs(%g_out_0 : tensor<?x64xf32>) {
    ^bb0(%a_0: f32, %sq_0: f32, %w_0: f32, %__0: f32):
      %mean_0 = arith.divf %sq_0, %hidden : f32
      %biased_0 = arith.addf %mean_0, %eps : f32
      %scale_0 = math.rsqrt %biased_0 : f32
      %n_0 = arith.mulf %a_0, %scale_0 : f32
      %r_0 = arith.mulf %n_0, %w_0 : f32
      linalg.yield %r_0 : f32
  } -> tensor<?x64xf32>
  %gate_init_empty_0 = tensor.empty(%tokens) : tensor<?x176xf32>
  %gate_init_0 = linalg.fill ins(%zero : f32) outs(%gate_init_empty_0 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %gate_0 = linalg.matmul ins(%g_0, %w_gate_0 : tensor<?x64xf32>, tensor<64x176xf32>) outs(%gate_init_0 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %up_init_empty_0 = tensor.empty(%tokens) : tensor<?x176xf32>
  %up_init_0 = linalg.fill ins(%zero : f32) outs(%up_init_empty_0 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %up_0 = linalg.matmul ins(%g_0, %w_up_0 : tensor<?x64xf32>, tensor<64x176xf32>) outs(%up_init_0 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %act_out_0 = tensor.empty(%tokens) : tensor<?x176xf32>
  %act_0 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%gate_0, %up_0 : tensor<?x176xf32>, tensor<?x176xf32>)
      outs(%act_out_0 : tensor<?x176xf32>) {
    ^bb0(%a_0: f32, %u_0: f32, %__0: f32):
      %n_0 = arith.negf %a_0 : f32
      %x__0 = math.exp %n_0 : f32
      %d_0 = arith.addf %x__0, %one : f32
      %silu_0 = arith.divf %a_0, %d_0 : f32
      %r_0 = arith.mulf %silu_0, %u_0 : f32
      linalg.yield %r_0 : f32
  } -> tensor<?x176xf32>
  %down_init_empty_0 = tensor.empty(%tokens) : tensor<?x64xf32>
  %down_init_0 = linalg.fill ins(%zero : f32) outs(%down_init_empty_0 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %down_0 = linalg.matmul ins(%act_0, %w_down_0 : tensor<?x176xf32>, tensor<176x64xf32>) outs(%down_init_0 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y_rows_out_0 = tensor.empty(%tokens) : tensor<?x64xf32>
  %y_rows_0 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%down_0, %x_attn_0 : tensor<?x64xf32>, tensor<?x64xf32>)
      outs(%y_rows_out_0 : tensor<?x64xf32>) {
    ^bb0(%p_0: f32, %a_0: f32, %__0: f32):
      %r_0 = arith.addf %p_0, %a_0 : f32
      linalg.yield %r_0 : f32
  } -> tensor<?x64xf32>

  // Layer 1.
  %h_zero_empty_1 = tensor.empty(%tokens) : tensor<?xf32>
  %h_zero_1 = linalg.fill ins(%zero : f32) outs(%h_zero_empty_1 : tensor<?xf32>) -> tensor<?xf32>
  %h_sq_1 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%y_rows_0 : tensor<?x64xf32>)
      outs(%h_zero_1 : tensor<?xf32>) {
    ^bb0(%a_1: f32, %acc_1: f32):
      %p_1 = arith.mulf %a_1, %a_1 : f32
      %s_1 = arith.addf %acc_1, %p_1 : f32
      linalg.yield %s_1 : f32
  } -> tensor<?xf32>
  %h_out_1 = tensor.empty(%tokens) : tensor<?x64xf32>
  %h_1 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%y_rows_0, %h_sq_1, %attn_norm_1 : tensor<?x64xf32>, tensor<?xf32>, tensor<64xf32>)
      outs(%h_out_1 : tensor<?x64xf32>) {
    ^bb0(%a_1: f32, %sq_1: f32, %w_1: f32, %__1: f32):
      %mean_1 = arith.divf %sq_1, %hidden : f32
      %biased_1 = arith.addf %mean_1, %eps : f32
      %scale_1 = math.rsqrt %biased_1 : f32
      %n_1 = arith.mulf %a_1, %scale_1 : f32
      %r_1 = arith.mulf %n_1, %w_1 : f32
      linalg.yield %r_1 : f32
  } -> tensor<?x64xf32>
  %qp_init_empty_1 = tensor.empty(%tokens) : tensor<?x64xf32>
  %qp_init_1 = linalg.fill ins(%zero : f32) outs(%qp_init_empty_1 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %qp_1 = linalg.matmul ins(%h_1, %wq_1 : tensor<?x64xf32>, tensor<64x64xf32>) outs(%qp_init_1 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %kp_init_empty_1 = tensor.empty(%tokens) : tensor<?x16xf32>
  %kp_init_1 = linalg.fill ins(%zero : f32) outs(%kp_init_empty_1 : tensor<?x16xf32>) -> tensor<?x16xf32>
  %kp_1 = linalg.matmul ins(%h_1, %wk_1 : tensor<?x64xf32>, tensor<64x16xf32>) outs(%kp_init_1 : tensor<?x16xf32>) -> tensor<?x16xf32>
  %vp_init_empty_1 = tensor.empty(%tokens) : tensor<?x16xf32>
  %vp_init_1 = linalg.fill ins(%zero : f32) outs(%vp_init_empty_1 : tensor<?x16xf32>) -> tensor<?x16xf32>
  %vp_1 = linalg.matmul ins(%h_1, %wv_1 : tensor<?x64xf32>, tensor<64x16xf32>) outs(%vp_init_1 : tensor<?x16xf32>) -> tensor<?x16xf32>

  // Rotary embedding of q and k; the new positions start at kv.
  %q_split_1 = tensor.expand_shape %qp_1 [[0, 1], [2, 3, 4]] output_shape [%batch, %seq, 4, 2, 8] : tensor<?x64xf32> into tensor<?x?x4x2x8xf32>
  %q_lo_1 = tensor.extract_slice %q_split_1[0, 0, 0, 0, 0] [%batch, %seq, 4, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x4x2x8xf32> to tensor<?x?x4x8xf32>
  %q_hi_1 = tensor.extract_slice %q_split_1[0, 0, 0, 1, 0] [%batch, %seq, 4, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x4x2x8xf32> to tensor<?x?x4x8xf32>
  %q_out_1 = tensor.empty(%batch, %seq) : tensor<?x4x?x2x8xf32>
  %q_rot_1 = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, t, j) -> (b, s, h, t, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (b, h, s, t, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%q_split_1, %q_lo_1, %q_hi_1, %cos_now, %sin_now : tensor<?x?x4x2x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
      outs(%q_out_1 : tensor<?x4x?x2x8xf32>) {
    ^bb0(%a_1: f32, %lo_1: f32, %hi_1: f32, %c_1: f32, %d_1: f32, %__1: f32):
      %t_1 = linalg.index 3 : index
      %first_1 = arith.cmpi eq, %t_1, %c0 : index
      %neg_1 = arith.negf %hi_1 : f32
      %other_1 = arith.select %first_1, %neg_1, %lo_1 : f32
      %ac_1 = arith.mulf %a_1, %c_1 : f32
      %od_1 = arith.mulf %other_1, %d_1 : f32
      %r_1 = arith.addf %ac_1, %od_1 : f32
      linalg.yield %r_1 : f32
  } -> tensor<?x4x?x2x8xf32>
  %q_1 = tensor.collapse_shape %q_rot_1 [[0], [1], [2], [3, 4]] : tensor<?x4x?x2x8xf32> into tensor<?x4x?x16xf32>
  %k_new_split_1 = tensor.expand_shape %kp_1 [[0, 1], [2, 3, 4]] output_shape [%batch, %seq, 1, 2, 8] : tensor<?x16xf32> into tensor<?x?x1x2x8xf32>
  %k_new_lo_1 = tensor.extract_slice %k_new_split_1[0, 0, 0, 0, 0] [%batch, %seq, 1, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x1x2x8xf32> to tensor<?x?x1x8xf32>
  %k_new_hi_1 = tensor.extract_slice %k_new_split_1[0, 0, 0, 1, 0] [%batch, %seq, 1, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x1x2x8xf32> to tensor<?x?x1x8xf32>
  %k_new_out_1 = tensor.empty(%batch, %seq) : tensor<?x1x?x2x8xf32>
  %k_new_rot_1 = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, t, j) -> (b, s, h, t, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (b, h, s, t, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%k_new_split_1, %k_new_lo_1, %k_new_hi_1, %cos_now, %sin_now : tensor<?x?x1x2x8xf32>, tensor<?x?x1x8xf32>, tensor<?x?x1x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
      outs(%k_new_out_1 : tensor<?x1x?x2x8xf32>) {
    ^bb0(%a_1: f32, %lo_1: f32, %hi_1: f32, %c_1: f32, %d_1: f32, %__1: f32):
      %t_1 = linalg.index 3 : index
      %first_1 = arith.cmpi eq, %t_1, %c0 : index
      %neg_1 = arith.negf %hi_1 : f32
      %other_1 = arith.select %first_1, %neg_1, %lo_1 : f32
      %ac_1 = arith.mulf %a_1, %c_1 : f32
      %od_1 = arith.mulf %other_1, %d_1 : f32
      %r_1 = arith.addf %ac_1, %od_1 : f32
      linalg.yield %r_1 : f32
  } -> tensor<?x1x?x2x8xf32>
  %k_new_1 = tensor.collapse_shape %k_new_rot_1 [[0], [1], [2], [3, 4]] : tensor<?x1x?x2x8xf32> into tensor<?x1x?x16xf32>
  %v_split_1 = tensor.expand_shape %vp_1 [[0, 1], [2, 3]] output_shape [%batch, %seq, 1, 16] : tensor<?x16xf32> into tensor<?x?x1x16xf32>
  %v_new_out_1 = tensor.empty(%batch, %seq) : tensor<?x1x?x16xf32>
  %v_new_1 = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, j) -> (b, s, h, j)>, affine_map<(b, h, s, j) -> (b, h, s, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v_split_1 : tensor<?x?x1x16xf32>)
      outs(%v_new_out_1 : tensor<?x1x?x16xf32>) {
    ^bb0(%a_1: f32, %__1: f32):
      linalg.yield %a_1 : f32
  } -> tensor<?x1x?x16xf32>

  // The caches grow by seq positions.
  %k_1 = tensor.concat dim(2) %k_cache_1, %k_new_1 : (tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>) -> tensor<?x1x?x16xf32>
  %v_1 = tensor.concat dim(2) %v_cache_1, %v_new_1 : (tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>) -> tensor<?x1x?x16xf32>

  // Grouped-query attention: the query heads of a group share a kv head, so they are rows of one product.
  %q_groups_1 = tensor.expand_shape %q_1 [[0], [1, 2], [3], [4]] output_shape [%batch, 1, 4, %seq, 16] : tensor<?x4x?x16xf32> into tensor<?x1x4x?x16xf32>
  %q_rows_1 = tensor.collapse_shape %q_groups_1 [[0, 1], [2, 3], [4]] : tensor<?x1x4x?x16xf32> into tensor<?x?x16xf32>
  %k_rows_1 = tensor.collapse_shape %k_1 [[0, 1], [2], [3]] : tensor<?x1x?x16xf32> into tensor<?x?x16xf32>
  %v_rows_1 = tensor.collapse_shape %v_1 [[0, 1], [2], [3]] : tensor<?x1x?x16xf32> into tensor<?x?x16xf32>
  %qk_init_empty_1 = tensor.empty(%groups, %rows, %length) : tensor<?x?x?xf32>
  %qk_init_1 = linalg.fill ins(%zero : f32) outs(%qk_init_empty_1 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %qk_1 = linalg.generic {
      indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q_rows_1, %k_rows_1 : tensor<?x?x16xf32>, tensor<?x?x16xf32>)
      outs(%qk_init_1 : tensor<?x?x?xf32>) {
    ^bb0(%a_1: f32, %w_1: f32, %acc_1: f32):
      %p_1 = arith.mulf %a_1, %w_1 : f32
      %s_1 = arith.addf %acc_1, %p_1 : f32
      linalg.yield %s_1 : f32
  } -> tensor<?x?x?xf32>

  // Causal softmax: the query at position kv + i sees keys j <= kv + i.
  %qk_split_1 = tensor.expand_shape %qk_1 [[0], [1, 2], [3]] output_shape [%groups, 4, %seq, %length] : tensor<?x?x?xf32> into tensor<?x4x?x?xf32>
  %masked_init_1 = tensor.empty(%groups, %seq, %length) : tensor<?x4x?x?xf32>
  %masked_1 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%qk_split_1 : tensor<?x4x?x?xf32>)
      outs(%masked_init_1 : tensor<?x4x?x?xf32>) {
    ^bb0(%a_1: f32, %__1: f32):
      %i_1 = linalg.index 2 : index
      %j_1 = linalg.index 3 : index
      %position_1 = arith.addi %kv, %i_1 : index
      %seen_1 = arith.cmpi ule, %j_1, %position_1 : index
      %scaled_1 = arith.mulf %a_1, %qk_scale : f32
      %r_1 = arith.select %seen_1, %scaled_1, %masked_out : f32
      linalg.yield %r_1 : f32
  } -> tensor<?x4x?x?xf32>
  %max_init_empty_1 = tensor.empty(%groups, %seq) : tensor<?x4x?xf32>
  %max_init_1 = linalg.fill ins(%lowest : f32) outs(%max_init_empty_1 : tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %max_1 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%masked_1 : tensor<?x4x?x?xf32>)
      outs(%max_init_1 : tensor<?x4x?xf32>) {
    ^bb0(%a_1: f32, %acc_1: f32):
      %r_1 = arith.maxnumf %acc_1, %a_1 : f32
      linalg.yield %r_1 : f32
  } -> tensor<?x4x?xf32>
  %exp_out_1 = tensor.empty(%groups, %seq, %length) : tensor<?x4x?x?xf32>
  %exp_1 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>, affine_map<(b, g, i, j) -> (b, g, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%masked_1, %max_1 : tensor<?x4x?x?xf32>, tensor<?x4x?xf32>)
      outs(%exp_out_1 : tensor<?x4x?x?xf32>) {
    ^bb0(%a_1: f32, %m_1: f32, %__1: f32):
      %d_1 = arith.subf %a_1, %m_1 : f32
      %r_1 = math.exp %d_1 : f32
      linalg.yield %r_1 : f32
  } -> tensor<?x4x?x?xf32>
  %sum_init_empty_1 = tensor.empty(%groups, %seq) : tensor<?x4x?xf32>
  %sum_init_1 = linalg.fill ins(%zero : f32) outs(%sum_init_empty_1 : tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %sum_1 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%exp_1 : tensor<?x4x?x?xf32>)
      outs(%sum_init_1 : tensor<?x4x?xf32>) {
    ^bb0(%a_1: f32, %acc_1: f32):
      %r_1 = arith.addf %acc_1, %a_1 : f32
      linalg.yield %r_1 : f32
  } -> tensor<?x4x?xf32>
  %probs_out_1 = tensor.empty(%groups, %seq, %length) : tensor<?x4x?x?xf32>
  %probs_1 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>, affine_map<(b, g, i, j) -> (b, g, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%exp_1, %sum_1 : tensor<?x4x?x?xf32>, tensor<?x4x?xf32>)
      outs(%probs_out_1 : tensor<?x4x?x?xf32>) {
    ^bb0(%a_1: f32, %s_1: f32, %__1: f32):
      %r_1 = arith.divf %a_1, %s_1 : f32
      linalg.yield %r_1 : f32
  } -> tensor<?x4x?x?xf32>

  %probs_rows_1 = tensor.collapse_shape %probs_1 [[0], [1, 2], [3]] : tensor<?x4x?x?xf32> into tensor<?x?x?xf32>
  %ctx_init_empty_1 = tensor.empty(%groups, %rows) : tensor<?x?x16xf32>
  %ctx_init_1 = linalg.fill ins(%zero : f32) outs(%ctx_init_empty_1 : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %ctx_1 = linalg.batch_matmul ins(%probs_rows_1, %v_rows_1 : tensor<?x?x?xf32>, tensor<?x?x16xf32>) outs(%ctx_init_1 : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %ctx_split_1 = tensor.expand_shape %ctx_1 [[0, 1], [2, 3], [4]] output_shape [%batch, 1, 4, %seq, 16] : tensor<?x?x16xf32> into tensor<?x1x4x?x16xf32>
  %heads_out_1 = tensor.empty(%batch, %seq) : tensor<?x?x1x4x16xf32>
  %heads_1 = linalg.generic {
      indexing_maps = [affine_map<(b, s, h, g, j) -> (b, h, g, s, j)>, affine_map<(b, s, h, g, j) -> (b, s, h, g, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%ctx_split_1 : tensor<?x1x4x?x16xf32>)
      outs(%heads_out_1 : tensor<?x?x1x4x16xf32>) {
    ^bb0(%a_1: f32, %__1: f32):
      linalg.yield %a_1 : f32
  } -> tensor<?x?x1x4x16xf32>
  %heads_rows_1 = tensor.collapse_shape %heads_1 [[0, 1], [2, 3, 4]] : tensor<?x?x1x4x16xf32> into tensor<?x64xf32>
  %op_init_empty_1 = tensor.empty(%tokens) : tensor<?x64xf32>
  %op_init_1 = linalg.fill ins(%zero : f32) outs(%op_init_empty_1 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %op_1 = linalg.matmul ins(%heads_rows_1, %wo_1 : tensor<?x64xf32>, tensor<64x64xf32>) outs(%op_init_1 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %x_attn_out_1 = tensor.empty(%tokens) : tensor<?x64xf32>
  %x_attn_1 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%op_1, %y_rows_0 : tensor<?x64xf32>, tensor<?x64xf32>)
      outs(%x_attn_out_1 : tensor<?x64xf32>) {
    ^bb0(%p_1: f32, %a_1: f32, %__1: f32):
      %r_1 = arith.addf %p_1, %a_1 : f32
      linalg.yield %r_1 : f32
  } -> tensor<?x64xf32>

  // SwiGLU block.
  %g_zero_empty_1 = tensor.empty(%tokens) : tensor<?xf32>
  %g_zero_1 = linalg.fill ins(%zero : f32) outs(%g_zero_empty_1 : tensor<?xf32>) -> tensor<?xf32>
  %g_sq_1 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x_attn_1 : tensor<?x64xf32>)
      outs(%g_zero_1 : tensor<?xf32>) {
    ^bb0(%a_1: f32, %acc_1: f32):
      %p_1 = arith.mulf %a_1, %a_1 : f32
      %s_1 = arith.addf %acc_1, %p_1 : f32
      linalg.yield %s_1 : f32
  } -> tensor<?xf32>
  %g_out_1 = tensor.empty(%tokens) : tensor<?x64xf32>
  %g_1 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x_attn_1, %g_sq_1, %mlp_norm_1 : tensor<?x64xf32>, tensor<?xf32>, tensor<64xf32>)
      outs(%g_out_1 : tensor<?x64xf32>) {
    ^bb0(%a_1: f32, %sq_1: f32, %w_1: f32, %__1: f32):
      %mean_1 = arith.divf %sq_1, %hidden : f32
      %biased_1 = arith.addf %mean_1, %eps : f32
      %scale_1 = math.rsqrt %biased_1 : f32
      %n_1 = arith.mulf %a_1, %scale_1 : f32
      %r_1 = arith.mulf %n_1, %w_1 : f32
      linalg.yield %r_1 : f32
  } -> tensor<?x64xf32>
  %gate_init_empty_1 = tensor.empty(%tokens) : tensor<?x176xf32>
  %gate_init_1 = linalg.fill ins(%zero : f32) outs(%gate_init_empty_1 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %gate_1 = linalg.matmul ins(%g_1, %w_gate_1 : tensor<?x64xf32>, tensor<64x176xf32>) outs(%gate_init_1 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %up_init_empty_1 = tensor.empty(%tokens) : tensor<?x176xf32>
  %up_init_1 = linalg.fill ins(%zero : f32) outs(%up_init_empty_1 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %up_1 = linalg.matmul ins(%g_1, %w_up_1 : tensor<?x64xf32>, tensor<64x176xf32>) outs(%up_init_1 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %act_out_1 = tensor.empty(%tokens) : tensor<?x176xf32>
  %act_1 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%gate_1, %up_1 : tensor<?x176xf32>, tensor<?x176xf32>)
      outs(%act_out_1 : tensor<?x176xf32>) {
    ^bb0(%a_1: f32, %u_1: f32, %__1: f32):
      %n_1 = arith.negf %a_1 : f32
      %x__1 = math.exp %n_1 : f32
      %d_1 = arith.addf %x__1, %one : f32
      %silu_1 = arith.divf %a_1, %d_1 : f32
      %r_1 = arith.mulf %silu_1, %u_1 : f32
      linalg.yield %r_1 : f32
  } -> tensor<?x176xf32>
  %down_init_empty_1 = tensor.empty(%tokens) : tensor<?x64xf32>
  %down_init_1 = linalg.fill ins(%zero : f32) outs(%down_init_empty_1 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %down_1 = linalg.matmul ins(%act_1, %w_down_1 : tensor<?x176xf32>, tensor<176x64xf32>) outs(%down_init_1 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y_rows_out_1 = tensor.empty(%tokens) : tensor<?x64xf32>
  %y_rows_1 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%down_1, %x_attn_1 : tensor<?x64xf32>, tensor<?x64xf32>)
      outs(%y_rows_out_1 : tensor<?x64xf32>) {
    ^bb0(%p_1: f32, %a_1: f32, %__1: f32):
      %r_1 = arith.addf %p_1, %a_1 : f32
      linalg.yield %r_1 : f32
  } -> tensor<?x64xf32>

  // Layer 2.
  %h_zero_empty_2 = tensor.empty(%tokens) : tensor<?xf32>
  %h_zero_2 = linalg.fill ins(%zero : f32) outs(%h_zero_empty_2 : tensor<?xf32>) -> tensor<?xf32>
  %h_sq_2 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%y_rows_1 : tensor<?x64xf32>)
      outs(%h_zero_2 : tensor<?xf32>) {
    ^bb0(%a_2: f32, %acc_2: f32):
      %p_2 = arith.mulf %a_2, %a_2 : f32
      %s_2 = arith.addf %acc_2, %p_2 : f32
      linalg.yield %s_2 : f32
  } -> tensor<?xf32>
  %h_out_2 = tensor.empty(%tokens) : tensor<?x64xf32>
  %h_2 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%y_rows_1, %h_sq_2, %attn_norm_2 : tensor<?x64xf32>, tensor<?xf32>, tensor<64xf32>)
      outs(%h_out_2 : tensor<?x64xf32>) {
    ^bb0(%a_2: f32, %sq_2: f32, %w_2: f32, %__2: f32):
      %mean_2 = arith.divf %sq_2, %hidden : f32
      %biased_2 = arith.addf %mean_2, %eps : f32
      %scale_2 = math.rsqrt %biased_2 : f32
      %n_2 = arith.mulf %a_2, %scale_2 : f32
      %r_2 = arith.mulf %n_2, %w_2 : f32
      linalg.yield %r_2 : f32
  } -> tensor<?x64xf32>
  %qp_init_empty_2 = tensor.empty(%tokens) : tensor<?x64xf32>
  %qp_init_2 = linalg.fill ins(%zero : f32) outs(%qp_init_empty_2 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %qp_2 = linalg.matmul ins(%h_2, %wq_2 : tensor<?x64xf32>, tensor<64x64xf32>) outs(%qp_init_2 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %kp_init_empty_2 = tensor.empty(%tokens) : tensor<?x16xf32>
  %kp_init_2 = linalg.fill ins(%zero : f32) outs(%kp_init_empty_2 : tensor<?x16xf32>) -> tensor<?x16xf32>
  %kp_2 = linalg.matmul ins(%h_2, %wk_2 : tensor<?x64xf32>, tensor<64x16xf32>) outs(%kp_init_2 : tensor<?x16xf32>) -> tensor<?x16xf32>
  %vp_init_empty_2 = tensor.empty(%tokens) : tensor<?x16xf32>
  %vp_init_2 = linalg.fill ins(%zero : f32) outs(%vp_init_empty_2 : tensor<?x16xf32>) -> tensor<?x16xf32>
  %vp_2 = linalg.matmul ins(%h_2, %wv_2 : tensor<?x64xf32>, tensor<64x16xf32>) outs(%vp_init_2 : tensor<?x16xf32>) -> tensor<?x16xf32>

  // Rotary embedding of q and k; the new positions start at kv.
  %q_split_2 = tensor.expand_shape %qp_2 [[0, 1], [2, 3, 4]] output_shape [%batch, %seq, 4, 2, 8] : tensor<?x64xf32> into tensor<?x?x4x2x8xf32>
  %q_lo_2 = tensor.extract_slice %q_split_2[0, 0, 0, 0, 0] [%batch, %seq, 4, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x4x2x8xf32> to tensor<?x?x4x8xf32>
  %q_hi_2 = tensor.extract_slice %q_split_2[0, 0, 0, 1, 0] [%batch, %seq, 4, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x4x2x8xf32> to tensor<?x?x4x8xf32>
  %q_out_2 = tensor.empty(%batch, %seq) : tensor<?x4x?x2x8xf32>
  %q_rot_2 = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, t, j) -> (b, s, h, t, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (b, h, s, t, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%q_split_2, %q_lo_2, %q_hi_2, %cos_now, %sin_now : tensor<?x?x4x2x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
      outs(%q_out_2 : tensor<?x4x?x2x8xf32>) {
    ^bb0(%a_2: f32, %lo_2: f32, %hi_2: f32, %c_2: f32, %d_2: f32, %__2: f32):
      %t_2 = linalg.index 3 : index
      %first_2 = arith.cmpi eq, %t_2, %c0 : index
      %neg_2 = arith.negf %hi_2 : f32
      %other_2 = arith.select %first_2, %neg_2, %lo_2 : f32
      %ac_2 = arith.mulf %a_2, %c_2 : f32
      %od_2 = arith.mulf %other_2, %d_2 : f32
      %r_2 = arith.addf %ac_2, %od_2 : f32
      linalg.yield %r_2 : f32
  } -> tensor<?x4x?x2x8xf32>
  %q_2 = tensor.collapse_shape %q_rot_2 [[0], [1], [2], [3, 4]] : tensor<?x4x?x2x8xf32> into tensor<?x4x?x16xf32>
  %k_new_split_2 = tensor.expand_shape %kp_2 [[0, 1], [2, 3, 4]] output_shape [%batch, %seq, 1, 2, 8] : tensor<?x16xf32> into tensor<?x?x1x2x8xf32>
  %k_new_lo_2 = tensor.extract_slice %k_new_split_2[0, 0, 0, 0, 0] [%batch, %seq, 1, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x1x2x8xf32> to tensor<?x?x1x8xf32>
  %k_new_hi_2 = tensor.extract_slice %k_new_split_2[0, 0, 0, 1, 0] [%batch, %seq, 1, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x1x2x8xf32> to tensor<?x?x1x8xf32>
  %k_new_out_2 = tensor.empty(%batch, %seq) : tensor<?x1x?x2x8xf32>
  %k_new_rot_2 = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, t, j) -> (b, s, h, t, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (b, h, s, t, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%k_new_split_2, %k_new_lo_2, %k_new_hi_2, %cos_now, %sin_now : tensor<?x?x1x2x8xf32>, tensor<?x?x1x8xf32>, tensor<?x?x1x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
      outs(%k_new_out_2 : tensor<?x1x?x2x8xf32>) {
    ^bb0(%a_2: f32, %lo_2: f32, %hi_2: f32, %c_2: f32, %d_2: f32, %__2: f32):
      %t_2 = linalg.index 3 : index
      %first_2 = arith.cmpi eq, %t_2, %c0 : index
      %neg_2 = arith.negf %hi_2 : f32
      %other_2 = arith.select %first_2, %neg_2, %lo_2 : f32
      %ac_2 = arith.mulf %a_2, %c_2 : f32
      %od_2 = arith.mulf %other_2, %d_2 : f32
      %r_2 = arith.addf %ac_2, %od_2 : f32
      linalg.yield %r_2 : f32
  } -> tensor<?x1x?x2x8xf32>
  %k_new_2 = tensor.collapse_shape %k_new_rot_2 [[0], [1], [2], [3, 4]] : tensor<?x1x?x2x8xf32> into tensor<?x1x?x16xf32>
  %v_split_2 = tensor.expand_shape %vp_2 [[0, 1], [2, 3]] output_shape [%batch, %seq, 1, 16] : tensor<?x16xf32> into tensor<?x?x1x16xf32>
  %v_new_out_2 = tensor.empty(%batch, %seq) : tensor<?x1x?x16xf32>
  %v_new_2 = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, j) -> (b, s, h, j)>, affine_map<(b, h, s, j) -> (b, h, s, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v_split_2 : tensor<?x?x1x16xf32>)
      outs(%v_new_out_2 : tensor<?x1x?x16xf32>) {
    ^bb0(%a_2: f32, %__2: f32):
      linalg.yield %a_2 : f32
  } -> tensor<?x1x?x16xf32>

  // The caches grow by seq positions.
  %k_2 = tensor.concat dim(2) %k_cache_2, %k_new_2 : (tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>) -> tensor<?x1x?x16xf32>
  %v_2 = tensor.concat dim(2) %v_cache_2, %v_new_2 : (tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>) -> tensor<?x1x?x16xf32>

  // Grouped-query attention: the query heads of a group share a kv head, so they are rows of one product.
  %q_groups_2 = tensor.expand_shape %q_2 [[0], [1, 2], [3], [4]] output_shape [%batch, 1, 4, %seq, 16] : tensor<?x4x?x16xf32> into tensor<?x1x4x?x16xf32>
  %q_rows_2 = tensor.collapse_shape %q_groups_2 [[0, 1], [2, 3], [4]] : tensor<?x1x4x?x16xf32> into tensor<?x?x16xf32>
  %k_rows_2 = tensor.collapse_shape %k_2 [[0, 1], [2], [3]] : tensor<?x1x?x16xf32> into tensor<?x?x16xf32>
  %v_rows_2 = tensor.collapse_shape %v_2 [[0, 1], [2], [3]] : tensor<?x1x?x16xf32> into tensor<?x?x16xf32>
  %qk_init_empty_2 = tensor.empty(%groups, %rows, %length) : tensor<?x?x?xf32>
  %qk_init_2 = linalg.fill ins(%zero : f32) outs(%qk_init_empty_2 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %qk_2 = linalg.generic {
      indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q_rows_2, %k_rows_2 : tensor<?x?x16xf32>, tensor<?x?x16xf32>)
      outs(%qk_init_2 : tensor<?x?x?xf32>) {
    ^bb0(%a_2: f32, %w_2: f32, %acc_2: f32):
      %p_2 = arith.mulf %a_2, %w_2 : f32
      %s_2 = arith.addf %acc_2, %p_2 : f32
      linalg.yield %s_2 : f32
  } -> tensor<?x?x?xf32>

  // Causal softmax: the query at position kv + i sees keys j <= kv + i.
  %qk_split_2 = tensor.expand_shape %qk_2 [[0], [1, 2], [3]] output_shape [%groups, 4, %seq, %length] : tensor<?x?x?xf32> into tensor<?x4x?x?xf32>
  %masked_init_2 = tensor.empty(%groups, %seq, %length) : tensor<?x4x?x?xf32>
  %masked_2 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%qk_split_2 : tensor<?x4x?x?xf32>)
      outs(%masked_init_2 : tensor<?x4x?x?xf32>) {
    ^bb0(%a_2: f32, %__2: f32):
      %i_2 = linalg.index 2 : index
      %j_2 = linalg.index 3 : index
      %position_2 = arith.addi %kv, %i_2 : index
      %seen_2 = arith.cmpi ule, %j_2, %position_2 : index
      %scaled_2 = arith.mulf %a_2, %qk_scale : f32
      %r_2 = arith.select %seen_2, %scaled_2, %masked_out : f32
      linalg.yield %r_2 : f32
  } -> tensor<?x4x?x?xf32>
  %max_init_empty_2 = tensor.empty(%groups, %seq) : tensor<?x4x?xf32>
  %max_init_2 = linalg.fill ins(%lowest : f32) outs(%max_init_empty_2 : tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %max_2 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%masked_2 : tensor<?x4x?x?xf32>)
      outs(%max_init_2 : tensor<?x4x?xf32>) {
    ^bb0(%a_2: f32, %acc_2: f32):
      %r_2 = arith.maxnumf %acc_2, %a_2 : f32
      linalg.yield %r_2 : f32
  } -> tensor<?x4x?xf32>
  %exp_out_2 = tensor.empty(%groups, %seq, %length) : tensor<?x4x?x?xf32>
  %exp_2 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>, affine_map<(b, g, i, j) -> (b, g, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%masked_2, %max_2 : tensor<?x4x?x?xf32>, tensor<?x4x?xf32>)
      outs(%exp_out_2 : tensor<?x4x?x?xf32>) {
    ^bb0(%a_2: f32, %m_2: f32, %__2: f32):
      %d_2 = arith.subf %a_2, %m_2 : f32
      %r_2 = math.exp %d_2 : f32
      linalg.yield %r_2 : f32
  } -> tensor<?x4x?x?xf32>
  %sum_init_empty_2 = tensor.empty(%groups, %seq) : tensor<?x4x?xf32>
  %sum_init_2 = linalg.fill ins(%zero : f32) outs(%sum_init_empty_2 : tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %sum_2 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%exp_2 : tensor<?x4x?x?xf32>)
      outs(%sum_init_2 : tensor<?x4x?xf32>) {
    ^bb0(%a_2: f32, %acc_2: f32):
      %r_2 = arith.addf %acc_2, %a_2 : f32
      linalg.yield %r_2 : f32
  } -> tensor<?x4x?xf32>
  %probs_out_2 = tensor.empty(%groups, %seq, %length) : tensor<?x4x?x?xf32>
  %probs_2 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>, affine_map<(b, g, i, j) -> (b, g, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%exp_2, %sum_2 : tensor<?x4x?x?xf32>, tensor<?x4x?xf32>)
      outs(%probs_out_2 : tensor<?x4x?x?xf32>) {
    ^bb0(%a_2: f32, %s_2: f32, %__2: f32):
      %r_2 = arith.divf %a_2, %s_2 : f32
      linalg.yield %r_2 : f32
  } -> tensor<?x4x?x?xf32>

  %probs_rows_2 = tensor.collapse_shape %probs_2 [[0], [1, 2], [3]] : tensor<?x4x?x?xf32> into tensor<?x?x?xf32>
  %ctx_init_empty_2 = tensor.empty(%groups, %rows) : tensor<?x?x16xf32>
  %ctx_init_2 = linalg.fill ins(%zero : f32) outs(%ctx_init_empty_2 : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %ctx_2 = linalg.batch_matmul ins(%probs_rows_2, %v_rows_2 : tensor<?x?x?xf32>, tensor<?x?x16xf32>) outs(%ctx_init_2 : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %ctx_split_2 = tensor.expand_shape %ctx_2 [[0, 1], [2, 3], [4]] output_shape [%batch, 1, 4, %seq, 16] : tensor<?x?x16xf32> into tensor<?x1x4x?x16xf32>
  %heads_out_2 = tensor.empty(%batch, %seq) : tensor<?x?x1x4x16xf32>
  %heads_2 = linalg.generic {
      indexing_maps = [affine_map<(b, s, h, g, j) -> (b, h, g, s, j)>, affine_map<(b, s, h, g, j) -> (b, s, h, g, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%ctx_split_2 : tensor<?x1x4x?x16xf32>)
      outs(%heads_out_2 : tensor<?x?x1x4x16xf32>) {
    ^bb0(%a_2: f32, %__2: f32):
      linalg.yield %a_2 : f32
  } -> tensor<?x?x1x4x16xf32>
  %heads_rows_2 = tensor.collapse_shape %heads_2 [[0, 1], [2, 3, 4]] : tensor<?x?x1x4x16xf32> into tensor<?x64xf32>
  %op_init_empty_2 = tensor.empty(%tokens) : tensor<?x64xf32>
  %op_init_2 = linalg.fill ins(%zero : f32) outs(%op_init_empty_2 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %op_2 = linalg.matmul ins(%heads_rows_2, %wo_2 : tensor<?x64xf32>, tensor<64x64xf32>) outs(%op_init_2 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %x_attn_out_2 = tensor.empty(%tokens) : tensor<?x64xf32>
  %x_attn_2 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%op_2, %y_rows_1 : tensor<?x64xf32>, tensor<?x64xf32>)
      outs(%x_attn_out_2 : tensor<?x64xf32>) {
    ^bb0(%p_2: f32, %a_2: f32, %__2: f32):
      %r_2 = arith.addf %p_2, %a_2 : f32
      linalg.yield %r_2 : f32
  } -> tensor<?x64xf32>

  // SwiGLU block.
  %g_zero_empty_2 = tensor.empty(%tokens) : tensor<?xf32>
  %g_zero_2 = linalg.fill ins(%zero : f32) outs(%g_zero_empty_2 : tensor<?xf32>) -> tensor<?xf32>
  %g_sq_2 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x_attn_2 : tensor<?x64xf32>)
      outs(%g_zero_2 : tensor<?xf32>) {
    ^bb0(%a_2: f32, %acc_2: f32):
      %p_2 = arith.mulf %a_2, %a_2 : f32
      %s_2 = arith.addf %acc_2, %p_2 : f32
      linalg.yield %s_2 : f32
  } -> tensor<?xf32>
  %g_out_2 = tensor.empty(%tokens) : tensor<?x64xf32>
  %g_2 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x_attn_2, %g_sq_2, %mlp_norm_2 : tensor<?x64xf32>, tensor<?xf32>, tensor<64xf32>)
      outs(%g_out_2 : tensor<?x64xf32>) {
    ^bb0(%a_2: f32, %sq_2: f32, %w_2: f32, %__2: f32):
      %mean_2 = arith.divf %sq_2, %hidden : f32
      %biased_2 = arith.addf %mean_2, %eps : f32
      %scale_2 = math.rsqrt %biased_2 : f32
      %n_2 = arith.mulf %a_2, %scale_2 : f32
      %r_2 = arith.mulf %n_2, %w_2 : f32
      linalg.yield %r_2 : f32
  } -> tensor<?x64xf32>
  %gate_init_empty_2 = tensor.empty(%tokens) : tensor<?x176xf32>
  %gate_init_2 = linalg.fill ins(%zero : f32) outs(%gate_init_empty_2 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %gate_2 = linalg.matmul ins(%g_2, %w_gate_2 : tensor<?x64xf32>, tensor<64x176xf32>) outs(%gate_init_2 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %up_init_empty_2 = tensor.empty(%tokens) : tensor<?x176xf32>
  %up_init_2 = linalg.fill ins(%zero : f32) outs(%up_init_empty_2 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %up_2 = linalg.matmul ins(%g_2, %w_up_2 : tensor<?x64xf32>, tensor<64x176xf32>) outs(%up_init_2 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %act_out_2 = tensor.empty(%tokens) : tensor<?x176xf32>
  %act_2 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%gate_2, %up_2 : tensor<?x176xf32>, tensor<?x176xf32>)
      outs(%act_out_2 : tensor<?x176xf32>) {
    ^bb0(%a_2: f32, %u_2: f32, %__2: f32):
      %n_2 = arith.negf %a_2 : f32
      %x__2 = math.exp %n_2 : f32
      %d_2 = arith.addf %x__2, %one : f32
      %silu_2 = arith.divf %a_2, %d_2 : f32
      %r_2 = arith.mulf %silu_2, %u_2 : f32
      linalg.yield %r_2 : f32
  } -> tensor<?x176xf32>
  %down_init_empty_2 = tensor.empty(%tokens) : tensor<?x64xf32>
  %down_init_2 = linalg.fill ins(%zero : f32) outs(%down_init_empty_2 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %down_2 = linalg.matmul ins(%act_2, %w_down_2 : tensor<?x176xf32>, tensor<176x64xf32>) outs(%down_init_2 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y_rows_out_2 = tensor.empty(%tokens) : tensor<?x64xf32>
  %y_rows_2 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%down_2, %x_attn_2 : tensor<?x64xf32>, tensor<?x64xf32>)
      outs(%y_rows_out_2 : tensor<?x64xf32>) {
    ^bb0(%p_2: f32, %a_2: f32, %__2: f32):
      %r_2 = arith.addf %p_2, %a_2 : f32
      linalg.yield %r_2 : f32
  } -> tensor<?x64xf32>

  // Layer 3.
  %h_zero_empty_3 = tensor.empty(%tokens) : tensor<?xf32>
  %h_zero_3 = linalg.fill ins(%zero : f32) outs(%h_zero_empty_3 : tensor<?xf32>) -> tensor<?xf32>
  %h_sq_3 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%y_rows_2 : tensor<?x64xf32>)
      outs(%h_zero_3 : tensor<?xf32>) {
    ^bb0(%a_3: f32, %acc_3: f32):
      %p_3 = arith.mulf %a_3, %a_3 : f32
      %s_3 = arith.addf %acc_3, %p_3 : f32
      linalg.yield %s_3 : f32
  } -> tensor<?xf32>
  %h_out_3 = tensor.empty(%tokens) : tensor<?x64xf32>
  %h_3 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%y_rows_2, %h_sq_3, %attn_norm_3 : tensor<?x64xf32>, tensor<?xf32>, tensor<64xf32>)
      outs(%h_out_3 : tensor<?x64xf32>) {
    ^bb0(%a_3: f32, %sq_3: f32, %w_3: f32, %__3: f32):
      %mean_3 = arith.divf %sq_3, %hidden : f32
      %biased_3 = arith.addf %mean_3, %eps : f32
      %scale_3 = math.rsqrt %biased_3 : f32
      %n_3 = arith.mulf %a_3, %scale_3 : f32
      %r_3 = arith.mulf %n_3, %w_3 : f32
      linalg.yield %r_3 : f32
  } -> tensor<?x64xf32>
  %qp_init_empty_3 = tensor.empty(%tokens) : tensor<?x64xf32>
  %qp_init_3 = linalg.fill ins(%zero : f32) outs(%qp_init_empty_3 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %qp_3 = linalg.matmul ins(%h_3, %wq_3 : tensor<?x64xf32>, tensor<64x64xf32>) outs(%qp_init_3 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %kp_init_empty_3 = tensor.empty(%tokens) : tensor<?x16xf32>
  %kp_init_3 = linalg.fill ins(%zero : f32) outs(%kp_init_empty_3 : tensor<?x16xf32>) -> tensor<?x16xf32>
  %kp_3 = linalg.matmul ins(%h_3, %wk_3 : tensor<?x64xf32>, tensor<64x16xf32>) outs(%kp_init_3 : tensor<?x16xf32>) -> tensor<?x16xf32>
  %vp_init_empty_3 = tensor.empty(%tokens) : tensor<?x16xf32>
  %vp_init_3 = linalg.fill ins(%zero : f32) outs(%vp_init_empty_3 : tensor<?x16xf32>) -> tensor<?x16xf32>
  %vp_3 = linalg.matmul ins(%h_3, %wv_3 : tensor<?x64xf32>, tensor<64x16xf32>) outs(%vp_init_3 : tensor<?x16xf32>) -> tensor<?x16xf32>

  // Rotary embedding of q and k; the new positions start at kv.
  %q_split_3 = tensor.expand_shape %qp_3 [[0, 1], [2, 3, 4]] output_shape [%batch, %seq, 4, 2, 8] : tensor<?x64xf32> into tensor<?x?x4x2x8xf32>
  %q_lo_3 = tensor.extract_slice %q_split_3[0, 0, 0, 0, 0] [%batch, %seq, 4, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x4x2x8xf32> to tensor<?x?x4x8xf32>
  %q_hi_3 = tensor.extract_slice %q_split_3[0, 0, 0, 1, 0] [%batch, %seq, 4, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x4x2x8xf32> to tensor<?x?x4x8xf32>
  %q_out_3 = tensor.empty(%batch, %seq) : tensor<?x4x?x2x8xf32>
  %q_rot_3 = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, t, j) -> (b, s, h, t, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (b, h, s, t, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%q_split_3, %q_lo_3, %q_hi_3, %cos_now, %sin_now : tensor<?x?x4x2x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
      outs(%q_out_3 : tensor<?x4x?x2x8xf32>) {
    ^bb0(%a_3: f32, %lo_3: f32, %hi_3: f32, %c_3: f32, %d_3: f32, %__3: f32):
      %t_3 = linalg.index 3 : index
      %first_3 = arith.cmpi eq, %t_3, %c0 : index
      %neg_3 = arith.negf %hi_3 : f32
      %other_3 = arith.select %first_3, %neg_3, %lo_3 : f32
      %ac_3 = arith.mulf %a_3, %c_3 : f32
      %od_3 = arith.mulf %other_3, %d_3 : f32
      %r_3 = arith.addf %ac_3, %od_3 : f32
      linalg.yield %r_3 : f32
  } -> tensor<?x4x?x2x8xf32>
  %q_3 = tensor.collapse_shape %q_rot_3 [[0], [1], [2], [3, 4]] : tensor<?x4x?x2x8xf32> into tensor<?x4x?x16xf32>
  %k_new_split_3 = tensor.expand_shape %kp_3 [[0, 1], [2, 3, 4]] output_shape [%batch, %seq, 1, 2, 8] : tensor<?x16xf32> into tensor<?x?x1x2x8xf32>
  %k_new_lo_3 = tensor.extract_slice %k_new_split_3[0, 0, 0, 0, 0] [%batch, %seq, 1, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x1x2x8xf32> to tensor<?x?x1x8xf32>
  %k_new_hi_3 = tensor.extract_slice %k_new_split_3[0, 0, 0, 1, 0] [%batch, %seq, 1, 1, 8] [1, 1, 1, 1, 1] : tensor<?x?x1x2x8xf32> to tensor<?x?x1x8xf32>
  %k_new_out_3 = tensor.empty(%batch, %seq) : tensor<?x1x?x2x8xf32>
  %k_new_rot_3 = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, t, j) -> (b, s, h, t, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (b, s, h, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (s, j)>, affine_map<(b, h, s, t, j) -> (b, h, s, t, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%k_new_split_3, %k_new_lo_3, %k_new_hi_3, %cos_now, %sin_now : tensor<?x?x1x2x8xf32>, tensor<?x?x1x8xf32>, tensor<?x?x1x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
      outs(%k_new_out_3 : tensor<?x1x?x2x8xf32>) {
    ^bb0(%a_3: f32, %lo_3: f32, %hi_3: f32, %c_3: f32, %d_3: f32, %__3: f32):
      %t_3 = linalg.index 3 : index
      %first_3 = arith.cmpi eq, %t_3, %c0 : index
      %neg_3 = arith.negf %hi_3 : f32
      %other_3 = arith.select %first_3, %neg_3, %lo_3 : f32
      %ac_3 = arith.mulf %a_3, %c_3 : f32
      %od_3 = arith.mulf %other_3, %d_3 : f32
      %r_3 = arith.addf %ac_3, %od_3 : f32
      linalg.yield %r_3 : f32
  } -> tensor<?x1x?x2x8xf32>
  %k_new_3 = tensor.collapse_shape %k_new_rot_3 [[0], [1], [2], [3, 4]] : tensor<?x1x?x2x8xf32> into tensor<?x1x?x16xf32>
  %v_split_3 = tensor.expand_shape %vp_3 [[0, 1], [2, 3]] output_shape [%batch, %seq, 1, 16] : tensor<?x16xf32> into tensor<?x?x1x16xf32>
  %v_new_out_3 = tensor.empty(%batch, %seq) : tensor<?x1x?x16xf32>
  %v_new_3 = linalg.generic {
      indexing_maps = [affine_map<(b, h, s, j) -> (b, s, h, j)>, affine_map<(b, h, s, j) -> (b, h, s, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v_split_3 : tensor<?x?x1x16xf32>)
      outs(%v_new_out_3 : tensor<?x1x?x16xf32>) {
    ^bb0(%a_3: f32, %__3: f32):
      linalg.yield %a_3 : f32
  } -> tensor<?x1x?x16xf32>

  // The caches grow by seq positions.
  %k_3 = tensor.concat dim(2) %k_cache_3, %k_new_3 : (tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>) -> tensor<?x1x?x16xf32>
  %v_3 = tensor.concat dim(2) %v_cache_3, %v_new_3 : (tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>) -> tensor<?x1x?x16xf32>

  // Grouped-query attention: the query heads of a group share a kv head, so they are rows of one product.
  %q_groups_3 = tensor.expand_shape %q_3 [[0], [1, 2], [3], [4]] output_shape [%batch, 1, 4, %seq, 16] : tensor<?x4x?x16xf32> into tensor<?x1x4x?x16xf32>
  %q_rows_3 = tensor.collapse_shape %q_groups_3 [[0, 1], [2, 3], [4]] : tensor<?x1x4x?x16xf32> into tensor<?x?x16xf32>
  %k_rows_3 = tensor.collapse_shape %k_3 [[0, 1], [2], [3]] : tensor<?x1x?x16xf32> into tensor<?x?x16xf32>
  %v_rows_3 = tensor.collapse_shape %v_3 [[0, 1], [2], [3]] : tensor<?x1x?x16xf32> into tensor<?x?x16xf32>
  %qk_init_empty_3 = tensor.empty(%groups, %rows, %length) : tensor<?x?x?xf32>
  %qk_init_3 = linalg.fill ins(%zero : f32) outs(%qk_init_empty_3 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %qk_3 = linalg.generic {
      indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q_rows_3, %k_rows_3 : tensor<?x?x16xf32>, tensor<?x?x16xf32>)
      outs(%qk_init_3 : tensor<?x?x?xf32>) {
    ^bb0(%a_3: f32, %w_3: f32, %acc_3: f32):
      %p_3 = arith.mulf %a_3, %w_3 : f32
      %s_3 = arith.addf %acc_3, %p_3 : f32
      linalg.yield %s_3 : f32
  } -> tensor<?x?x?xf32>

  // Causal softmax: the query at position kv + i sees keys j <= kv + i.
  %qk_split_3 = tensor.expand_shape %qk_3 [[0], [1, 2], [3]] output_shape [%groups, 4, %seq, %length] : tensor<?x?x?xf32> into tensor<?x4x?x?xf32>
  %masked_init_3 = tensor.empty(%groups, %seq, %length) : tensor<?x4x?x?xf32>
  %masked_3 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%qk_split_3 : tensor<?x4x?x?xf32>)
      outs(%masked_init_3 : tensor<?x4x?x?xf32>) {
    ^bb0(%a_3: f32, %__3: f32):
      %i_3 = linalg.index 2 : index
      %j_3 = linalg.index 3 : index
      %position_3 = arith.addi %kv, %i_3 : index
      %seen_3 = arith.cmpi ule, %j_3, %position_3 : index
      %scaled_3 = arith.mulf %a_3, %qk_scale : f32
      %r_3 = arith.select %seen_3, %scaled_3, %masked_out : f32
      linalg.yield %r_3 : f32
  } -> tensor<?x4x?x?xf32>
  %max_init_empty_3 = tensor.empty(%groups, %seq) : tensor<?x4x?xf32>
  %max_init_3 = linalg.fill ins(%lowest : f32) outs(%max_init_empty_3 : tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %max_3 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%masked_3 : tensor<?x4x?x?xf32>)
      outs(%max_init_3 : tensor<?x4x?xf32>) {
    ^bb0(%a_3: f32, %acc_3: f32):
      %r_3 = arith.maxnumf %acc_3, %a_3 : f32
      linalg.yield %r_3 : f32
  } -> tensor<?x4x?xf32>
  %exp_out_3 = tensor.empty(%groups, %seq, %length) : tensor<?x4x?x?xf32>
  %exp_3 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>, affine_map<(b, g, i, j) -> (b, g, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%masked_3, %max_3 : tensor<?x4x?x?xf32>, tensor<?x4x?xf32>)
      outs(%exp_out_3 : tensor<?x4x?x?xf32>) {
    ^bb0(%a_3: f32, %m_3: f32, %__3: f32):
      %d_3 = arith.subf %a_3, %m_3 : f32
      %r_3 = math.exp %d_3 : f32
      linalg.yield %r_3 : f32
  } -> tensor<?x4x?x?xf32>
  %sum_init_empty_3 = tensor.empty(%groups, %seq) : tensor<?x4x?xf32>
  %sum_init_3 = linalg.fill ins(%zero : f32) outs(%sum_init_empty_3 : tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %sum_3 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%exp_3 : tensor<?x4x?x?xf32>)
      outs(%sum_init_3 : tensor<?x4x?xf32>) {
    ^bb0(%a_3: f32, %acc_3: f32):
      %r_3 = arith.addf %acc_3, %a_3 : f32
      linalg.yield %r_3 : f32
  } -> tensor<?x4x?xf32>
  %probs_out_3 = tensor.empty(%groups, %seq, %length) : tensor<?x4x?x?xf32>
  %probs_3 = linalg.generic {
      indexing_maps = [affine_map<(b, g, i, j) -> (b, g, i, j)>, affine_map<(b, g, i, j) -> (b, g, i)>, affine_map<(b, g, i, j) -> (b, g, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%exp_3, %sum_3 : tensor<?x4x?x?xf32>, tensor<?x4x?xf32>)
      outs(%probs_out_3 : tensor<?x4x?x?xf32>) {
    ^bb0(%a_3: f32, %s_3: f32, %__3: f32):
      %r_3 = arith.divf %a_3, %s_3 : f32
      linalg.yield %r_3 : f32
  } -> tensor<?x4x?x?xf32>

  %probs_rows_3 = tensor.collapse_shape %probs_3 [[0], [1, 2], [3]] : tensor<?x4x?x?xf32> into tensor<?x?x?xf32>
  %ctx_init_empty_3 = tensor.empty(%groups, %rows) : tensor<?x?x16xf32>
  %ctx_init_3 = linalg.fill ins(%zero : f32) outs(%ctx_init_empty_3 : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %ctx_3 = linalg.batch_matmul ins(%probs_rows_3, %v_rows_3 : tensor<?x?x?xf32>, tensor<?x?x16xf32>) outs(%ctx_init_3 : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %ctx_split_3 = tensor.expand_shape %ctx_3 [[0, 1], [2, 3], [4]] output_shape [%batch, 1, 4, %seq, 16] : tensor<?x?x16xf32> into tensor<?x1x4x?x16xf32>
  %heads_out_3 = tensor.empty(%batch, %seq) : tensor<?x?x1x4x16xf32>
  %heads_3 = linalg.generic {
      indexing_maps = [affine_map<(b, s, h, g, j) -> (b, h, g, s, j)>, affine_map<(b, s, h, g, j) -> (b, s, h, g, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%ctx_split_3 : tensor<?x1x4x?x16xf32>)
      outs(%heads_out_3 : tensor<?x?x1x4x16xf32>) {
    ^bb0(%a_3: f32, %__3: f32):
      linalg.yield %a_3 : f32
  } -> tensor<?x?x1x4x16xf32>
  %heads_rows_3 = tensor.collapse_shape %heads_3 [[0, 1], [2, 3, 4]] : tensor<?x?x1x4x16xf32> into tensor<?x64xf32>
  %op_init_empty_3 = tensor.empty(%tokens) : tensor<?x64xf32>
  %op_init_3 = linalg.fill ins(%zero : f32) outs(%op_init_empty_3 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %op_3 = linalg.matmul ins(%heads_rows_3, %wo_3 : tensor<?x64xf32>, tensor<64x64xf32>) outs(%op_init_3 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %x_attn_out_3 = tensor.empty(%tokens) : tensor<?x64xf32>
  %x_attn_3 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%op_3, %y_rows_2 : tensor<?x64xf32>, tensor<?x64xf32>)
      outs(%x_attn_out_3 : tensor<?x64xf32>) {
    ^bb0(%p_3: f32, %a_3: f32, %__3: f32):
      %r_3 = arith.addf %p_3, %a_3 : f32
      linalg.yield %r_3 : f32
  } -> tensor<?x64xf32>

  // SwiGLU block.
  %g_zero_empty_3 = tensor.empty(%tokens) : tensor<?xf32>
  %g_zero_3 = linalg.fill ins(%zero : f32) outs(%g_zero_empty_3 : tensor<?xf32>) -> tensor<?xf32>
  %g_sq_3 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x_attn_3 : tensor<?x64xf32>)
      outs(%g_zero_3 : tensor<?xf32>) {
    ^bb0(%a_3: f32, %acc_3: f32):
      %p_3 = arith.mulf %a_3, %a_3 : f32
      %s_3 = arith.addf %acc_3, %p_3 : f32
      linalg.yield %s_3 : f32
  } -> tensor<?xf32>
  %g_out_3 = tensor.empty(%tokens) : tensor<?x64xf32>
  %g_3 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x_attn_3, %g_sq_3, %mlp_norm_3 : tensor<?x64xf32>, tensor<?xf32>, tensor<64xf32>)
      outs(%g_out_3 : tensor<?x64xf32>) {
    ^bb0(%a_3: f32, %sq_3: f32, %w_3: f32, %__3: f32):
      %mean_3 = arith.divf %sq_3, %hidden : f32
      %biased_3 = arith.addf %mean_3, %eps : f32
      %scale_3 = math.rsqrt %biased_3 : f32
      %n_3 = arith.mulf %a_3, %scale_3 : f32
      %r_3 = arith.mulf %n_3, %w_3 : f32
      linalg.yield %r_3 : f32
  } -> tensor<?x64xf32>
  %gate_init_empty_3 = tensor.empty(%tokens) : tensor<?x176xf32>
  %gate_init_3 = linalg.fill ins(%zero : f32) outs(%gate_init_empty_3 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %gate_3 = linalg.matmul ins(%g_3, %w_gate_3 : tensor<?x64xf32>, tensor<64x176xf32>) outs(%gate_init_3 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %up_init_empty_3 = tensor.empty(%tokens) : tensor<?x176xf32>
  %up_init_3 = linalg.fill ins(%zero : f32) outs(%up_init_empty_3 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %up_3 = linalg.matmul ins(%g_3, %w_up_3 : tensor<?x64xf32>, tensor<64x176xf32>) outs(%up_init_3 : tensor<?x176xf32>) -> tensor<?x176xf32>
  %act_out_3 = tensor.empty(%tokens) : tensor<?x176xf32>
  %act_3 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%gate_3, %up_3 : tensor<?x176xf32>, tensor<?x176xf32>)
      outs(%act_out_3 : tensor<?x176xf32>) {
    ^bb0(%a_3: f32, %u_3: f32, %__3: f32):
      %n_3 = arith.negf %a_3 : f32
      %x__3 = math.exp %n_3 : f32
      %d_3 = arith.addf %x__3, %one : f32
      %silu_3 = arith.divf %a_3, %d_3 : f32
      %r_3 = arith.mulf %silu_3, %u_3 : f32
      linalg.yield %r_3 : f32
  } -> tensor<?x176xf32>
  %down_init_empty_3 = tensor.empty(%tokens) : tensor<?x64xf32>
  %down_init_3 = linalg.fill ins(%zero : f32) outs(%down_init_empty_3 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %down_3 = linalg.matmul ins(%act_3, %w_down_3 : tensor<?x176xf32>, tensor<176x64xf32>) outs(%down_init_3 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y_rows_out_3 = tensor.empty(%tokens) : tensor<?x64xf32>
  %y_rows_3 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%down_3, %x_attn_3 : tensor<?x64xf32>, tensor<?x64xf32>)
      outs(%y_rows_out_3 : tensor<?x64xf32>) {
    ^bb0(%p_3: f32, %a_3: f32, %__3: f32):
      %r_3 = arith.addf %p_3, %a_3 : f32
      linalg.yield %r_3 : f32
  } -> tensor<?x64xf32>

  // Output projection.
  %final_zero_empty = tensor.empty(%tokens) : tensor<?xf32>
  %final_zero = linalg.fill ins(%zero : f32) outs(%final_zero_empty : tensor<?xf32>) -> tensor<?xf32>
  %final_sq = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%y_rows_3 : tensor<?x64xf32>)
      outs(%final_zero : tensor<?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %p = arith.mulf %a, %a : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
  } -> tensor<?xf32>
  %final_out = tensor.empty(%tokens) : tensor<?x64xf32>
  %final = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%y_rows_3, %final_sq, %final_norm : tensor<?x64xf32>, tensor<?xf32>, tensor<64xf32>)
      outs(%final_out : tensor<?x64xf32>) {
    ^bb0(%a: f32, %sq: f32, %w: f32, %_: f32):
      %mean = arith.divf %sq, %hidden : f32
      %biased = arith.addf %mean, %eps : f32
      %scale = math.rsqrt %biased : f32
      %n = arith.mulf %a, %scale : f32
      %r = arith.mulf %n, %w : f32
      linalg.yield %r : f32
  } -> tensor<?x64xf32>
  %logits_rows_init_empty = tensor.empty(%tokens) : tensor<?x2000xf32>
  %logits_rows_init = linalg.fill ins(%zero : f32) outs(%logits_rows_init_empty : tensor<?x2000xf32>) -> tensor<?x2000xf32>
  %logits_rows = linalg.matmul ins(%final, %head : tensor<?x64xf32>, tensor<64x2000xf32>) outs(%logits_rows_init : tensor<?x2000xf32>) -> tensor<?x2000xf32>
  %logits = tensor.expand_shape %logits_rows [[0, 1], [2]] output_shape [%batch, %seq, 2000] : tensor<?x2000xf32> into tensor<?x?x2000xf32>
  return %logits, %k_0, %v_0, %k_1, %v_1, %k_2, %v_2, %k_3, %v_3 : tensor<?x?x2000xf32>, tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>
}
