// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Written by moe_layer.py --hidden 64 --experts 8 --ffn 128 --type f32
// Do not edit. One top-2 mixture-of-experts layer. Roots: batch, seq; tokens per expert follow from the data.
func.func @moe(
    %x: tensor<?x?x64xf32> {pgkp.dims = ["batch", "seq", ""]},
    %norm: tensor<64xf32> {pgkp.persistent},
    %router: tensor<64x8xf32> {pgkp.persistent},
    %w_in_0: tensor<64x256xf32> {pgkp.persistent},
    %w_out_0: tensor<128x64xf32> {pgkp.persistent},
    %w_in_1: tensor<64x256xf32> {pgkp.persistent},
    %w_out_1: tensor<128x64xf32> {pgkp.persistent},
    %w_in_2: tensor<64x256xf32> {pgkp.persistent},
    %w_out_2: tensor<128x64xf32> {pgkp.persistent},
    %w_in_3: tensor<64x256xf32> {pgkp.persistent},
    %w_out_3: tensor<128x64xf32> {pgkp.persistent},
    %w_in_4: tensor<64x256xf32> {pgkp.persistent},
    %w_out_4: tensor<128x64xf32> {pgkp.persistent},
    %w_in_5: tensor<64x256xf32> {pgkp.persistent},
    %w_out_5: tensor<128x64xf32> {pgkp.persistent},
    %w_in_6: tensor<64x256xf32> {pgkp.persistent},
    %w_out_6: tensor<128x64xf32> {pgkp.persistent},
    %w_in_7: tensor<64x256xf32> {pgkp.persistent},
    %w_out_7: tensor<128x64xf32> {pgkp.persistent})
    -> (tensor<?x?x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %true = arith.constant true
  %zero_i32 = arith.constant 0 : i32
  %n_experts = arith.constant 8 : i32
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %hidden = arith.constant 64.0 : f32
  %eps = arith.constant 1.0e-5 : f32

  %batch = tensor.dim %x, %c0 : tensor<?x?x64xf32>
  %seq = tensor.dim %x, %c1 : tensor<?x?x64xf32>
  %tokens = arith.muli %batch, %seq : index
  %slots = arith.muli %tokens, %c2 : index
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
      ins(%x_rows, %h_sq, %norm : tensor<?x64xf32>, tensor<?xf32>, tensor<64xf32>)
      outs(%h_out : tensor<?x64xf32>) {
    ^bb0(%a: f32, %sq: f32, %w: f32, %_: f32):
      %mean = arith.divf %sq, %hidden : f32
      %biased = arith.addf %mean, %eps : f32
      %scale = math.rsqrt %biased : f32
      %n = arith.mulf %a, %scale : f32
      %r = arith.mulf %n, %w : f32
      linalg.yield %r : f32
  } -> tensor<?x64xf32>
  %logits_init_empty = tensor.empty(%tokens) : tensor<?x8xf32>
  %logits_init = linalg.fill ins(%zero : f32) outs(%logits_init_empty : tensor<?x8xf32>) -> tensor<?x8xf32>
  %logits = linalg.matmul ins(%h, %router : tensor<?x64xf32>, tensor<64x8xf32>) outs(%logits_init : tensor<?x8xf32>) -> tensor<?x8xf32>

  // The two largest logits of each token, the lower expert first where they are equal, and softmax over the two.
  %top_init_empty = tensor.empty(%tokens) : tensor<?xf32>
  %top_init = linalg.fill ins(%lowest : f32) outs(%top_init_empty : tensor<?xf32>) -> tensor<?xf32>
  %index_init_empty = tensor.empty(%tokens) : tensor<?xi32>
  %index_init = linalg.fill ins(%n_experts : i32) outs(%index_init_empty : tensor<?xi32>) -> tensor<?xi32>
  %top1 = linalg.generic {
      indexing_maps = [affine_map<(t, e) -> (t, e)>, affine_map<(t, e) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%logits : tensor<?x8xf32>)
      outs(%top_init : tensor<?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %r = arith.maxnumf %acc, %a : f32
      linalg.yield %r : f32
  } -> tensor<?xf32>
  %first = linalg.generic {
      indexing_maps = [affine_map<(t, e) -> (t, e)>, affine_map<(t, e) -> (t)>, affine_map<(t, e) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%logits, %top1 : tensor<?x8xf32>, tensor<?xf32>)
      outs(%index_init : tensor<?xi32>) {
    ^bb0(%a: f32, %m: f32, %acc: i32):
      %me = linalg.index 1 : index
      %me32 = arith.index_cast %me : index to i32
      %hit = arith.cmpf oeq, %a, %m : f32
      %o = arith.select %hit, %me32, %n_experts : i32
      %r = arith.minsi %acc, %o : i32
      linalg.yield %r : i32
  } -> tensor<?xi32>
  %top2 = linalg.generic {
      indexing_maps = [affine_map<(t, e) -> (t, e)>, affine_map<(t, e) -> (t)>, affine_map<(t, e) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%logits, %first : tensor<?x8xf32>, tensor<?xi32>)
      outs(%top_init : tensor<?xf32>) {
    ^bb0(%a: f32, %i: i32, %acc: f32):
      %me = linalg.index 1 : index
      %me32 = arith.index_cast %me : index to i32
      %taken = arith.cmpi eq, %me32, %i : i32
      %v = arith.select %taken, %lowest, %a : f32
      %r = arith.maxnumf %acc, %v : f32
      linalg.yield %r : f32
  } -> tensor<?xf32>
  %second = linalg.generic {
      indexing_maps = [affine_map<(t, e) -> (t, e)>, affine_map<(t, e) -> (t)>, affine_map<(t, e) -> (t)>, affine_map<(t, e) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%logits, %top2, %first : tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>)
      outs(%index_init : tensor<?xi32>) {
    ^bb0(%a: f32, %m: f32, %i: i32, %acc: i32):
      %me = linalg.index 1 : index
      %me32 = arith.index_cast %me : index to i32
      %taken = arith.cmpi eq, %me32, %i : i32
      %free = arith.xori %taken, %true : i1
      %equal = arith.cmpf oeq, %a, %m : f32
      %hit = arith.andi %free, %equal : i1
      %o = arith.select %hit, %me32, %n_experts : i32
      %r = arith.minsi %acc, %o : i32
      linalg.yield %r : i32
  } -> tensor<?xi32>
  %gate1_out = tensor.empty(%tokens) : tensor<?xf32>
  %gate1 = linalg.generic {
      indexing_maps = [affine_map<(t) -> (t)>, affine_map<(t) -> (t)>, affine_map<(t) -> (t)>],
      iterator_types = ["parallel"]}
      ins(%top1, %top2 : tensor<?xf32>, tensor<?xf32>)
      outs(%gate1_out : tensor<?xf32>) {
    ^bb0(%m: f32, %n: f32, %_: f32):
      %d = arith.subf %n, %m : f32
      %x_ = math.exp %d : f32
      %y = arith.addf %x_, %one : f32
      %r = arith.divf %one, %y : f32
      linalg.yield %r : f32
  } -> tensor<?xf32>
  %gate2_out = tensor.empty(%tokens) : tensor<?xf32>
  %gate2 = linalg.generic {
      indexing_maps = [affine_map<(t) -> (t)>, affine_map<(t) -> (t)>, affine_map<(t) -> (t)>],
      iterator_types = ["parallel"]}
      ins(%top1, %top2 : tensor<?xf32>, tensor<?xf32>)
      outs(%gate2_out : tensor<?xf32>) {
    ^bb0(%m: f32, %n: f32, %_: f32):
      %d = arith.subf %n, %m : f32
      %x_ = math.exp %d : f32
      %y = arith.addf %x_, %one : f32
      %r = arith.divf %x_, %y : f32
      linalg.yield %r : f32
  } -> tensor<?xf32>

  // Where each token stands among the tokens grouped by expert.
  %counts_init_empty = tensor.empty() : tensor<8xi32>
  %counts_init = linalg.fill ins(%zero_i32 : i32) outs(%counts_init_empty : tensor<8xi32>) -> tensor<8xi32>
  %counts = linalg.generic {
      indexing_maps = [affine_map<(e, t) -> (t)>, affine_map<(e, t) -> (t)>, affine_map<(e, t) -> (e)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%first, %second : tensor<?xi32>, tensor<?xi32>)
      outs(%counts_init : tensor<8xi32>) {
    ^bb0(%i: i32, %j: i32, %acc: i32):
      %me = linalg.index 0 : index
      %me32 = arith.index_cast %me : index to i32
      %is1 = arith.cmpi eq, %i, %me32 : i32
      %is2 = arith.cmpi eq, %j, %me32 : i32
      %is = arith.ori %is1, %is2 : i1
      %n = arith.extui %is : i1 to i32
      %r = arith.addi %acc, %n : i32
      linalg.yield %r : i32
  } -> tensor<8xi32>
  %offsets = linalg.generic {
      indexing_maps = [affine_map<(e, f) -> (f)>, affine_map<(e, f) -> (e)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%counts : tensor<8xi32>)
      outs(%counts_init : tensor<8xi32>) {
    ^bb0(%i: i32, %acc: i32):
      %me = linalg.index 0 : index
      %you = linalg.index 1 : index
      %before = arith.cmpi ult, %you, %me : index
      %n = arith.select %before, %i, %zero_i32 : i32
      %r = arith.addi %acc, %n : i32
      linalg.yield %r : i32
  } -> tensor<8xi32>
  %rank_init_empty = tensor.empty(%tokens) : tensor<?xi32>
  %rank_init = linalg.fill ins(%zero_i32 : i32) outs(%rank_init_empty : tensor<?xi32>) -> tensor<?xi32>
  %rank1 = linalg.generic {
      indexing_maps = [affine_map<(t, u) -> (t)>, affine_map<(t, u) -> (u)>, affine_map<(t, u) -> (u)>, affine_map<(t, u) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%first, %first, %second : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>)
      outs(%rank_init : tensor<?xi32>) {
    ^bb0(%me: i32, %i: i32, %j: i32, %acc: i32):
      %at = linalg.index 0 : index
      %other = linalg.index 1 : index
      %before = arith.cmpi ult, %other, %at : index
      %is1 = arith.cmpi eq, %i, %me : i32
      %is2 = arith.cmpi eq, %j, %me : i32
      %is = arith.ori %is1, %is2 : i1
      %counts_ = arith.andi %is, %before : i1
      %n = arith.extui %counts_ : i1 to i32
      %r = arith.addi %acc, %n : i32
      linalg.yield %r : i32
  } -> tensor<?xi32>
  %place1_out = tensor.empty(%tokens) : tensor<?xi32>
  %place1 = linalg.generic {
      indexing_maps = [affine_map<(t) -> (t)>, affine_map<(t) -> (t)>, affine_map<(t) -> (t)>],
      iterator_types = ["parallel"]}
      ins(%rank1, %first : tensor<?xi32>, tensor<?xi32>)
      outs(%place1_out : tensor<?xi32>) {
    ^bb0(%k: i32, %i: i32, %_: i32):
      %me = arith.index_cast %i : i32 to index
      %start = tensor.extract %offsets[%me] : tensor<8xi32>
      %r = arith.addi %k, %start : i32
      linalg.yield %r : i32
  } -> tensor<?xi32>
  %rank2 = linalg.generic {
      indexing_maps = [affine_map<(t, u) -> (t)>, affine_map<(t, u) -> (u)>, affine_map<(t, u) -> (u)>, affine_map<(t, u) -> (t)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%second, %first, %second : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>)
      outs(%rank_init : tensor<?xi32>) {
    ^bb0(%me: i32, %i: i32, %j: i32, %acc: i32):
      %at = linalg.index 0 : index
      %other = linalg.index 1 : index
      %before = arith.cmpi ult, %other, %at : index
      %is1 = arith.cmpi eq, %i, %me : i32
      %is2 = arith.cmpi eq, %j, %me : i32
      %is = arith.ori %is1, %is2 : i1
      %counts_ = arith.andi %is, %before : i1
      %n = arith.extui %counts_ : i1 to i32
      %r = arith.addi %acc, %n : i32
      linalg.yield %r : i32
  } -> tensor<?xi32>
  %place2_out = tensor.empty(%tokens) : tensor<?xi32>
  %place2 = linalg.generic {
      indexing_maps = [affine_map<(t) -> (t)>, affine_map<(t) -> (t)>, affine_map<(t) -> (t)>],
      iterator_types = ["parallel"]}
      ins(%rank2, %second : tensor<?xi32>, tensor<?xi32>)
      outs(%place2_out : tensor<?xi32>) {
    ^bb0(%k: i32, %i: i32, %_: i32):
      %me = arith.index_cast %i : i32 to index
      %start = tensor.extract %offsets[%me] : tensor<8xi32>
      %r = arith.addi %k, %start : i32
      linalg.yield %r : i32
  } -> tensor<?xi32>
  %token_init_empty = tensor.empty(%slots) : tensor<?xi32>
  %token_init = linalg.fill ins(%zero_i32 : i32) outs(%token_init_empty : tensor<?xi32>) -> tensor<?xi32>
  %token_of = linalg.generic {
      indexing_maps = [affine_map<(p, t) -> (t)>, affine_map<(p, t) -> (t)>, affine_map<(p, t) -> (p)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%place1, %place2 : tensor<?xi32>, tensor<?xi32>)
      outs(%token_init : tensor<?xi32>) {
    ^bb0(%i: i32, %j: i32, %acc: i32):
      %me = linalg.index 0 : index
      %me32 = arith.index_cast %me : index to i32
      %token = linalg.index 1 : index
      %t32 = arith.index_cast %token : index to i32
      %is1 = arith.cmpi eq, %i, %me32 : i32
      %is2 = arith.cmpi eq, %j, %me32 : i32
      %is = arith.ori %is1, %is2 : i1
      %n = arith.select %is, %t32, %zero_i32 : i32
      %r = arith.addi %acc, %n : i32
      linalg.yield %r : i32
  } -> tensor<?xi32>
  %expert_0 = arith.constant 0 : index
  %n_0_ = tensor.extract %counts[%expert_0] : tensor<8xi32>
  %n_0 = arith.index_cast %n_0_ : i32 to index
  %offset_0_ = tensor.extract %offsets[%expert_0] : tensor<8xi32>
  %offset_0 = arith.index_cast %offset_0_ : i32 to index
  %expert_1 = arith.constant 1 : index
  %n_1_ = tensor.extract %counts[%expert_1] : tensor<8xi32>
  %n_1 = arith.index_cast %n_1_ : i32 to index
  %offset_1_ = tensor.extract %offsets[%expert_1] : tensor<8xi32>
  %offset_1 = arith.index_cast %offset_1_ : i32 to index
  %expert_2 = arith.constant 2 : index
  %n_2_ = tensor.extract %counts[%expert_2] : tensor<8xi32>
  %n_2 = arith.index_cast %n_2_ : i32 to index
  %offset_2_ = tensor.extract %offsets[%expert_2] : tensor<8xi32>
  %offset_2 = arith.index_cast %offset_2_ : i32 to index
  %expert_3 = arith.constant 3 : index
  %n_3_ = tensor.extract %counts[%expert_3] : tensor<8xi32>
  %n_3 = arith.index_cast %n_3_ : i32 to index
  %offset_3_ = tensor.extract %offsets[%expert_3] : tensor<8xi32>
  %offset_3 = arith.index_cast %offset_3_ : i32 to index
  %expert_4 = arith.constant 4 : index
  %n_4_ = tensor.extract %counts[%expert_4] : tensor<8xi32>
  %n_4 = arith.index_cast %n_4_ : i32 to index
  %offset_4_ = tensor.extract %offsets[%expert_4] : tensor<8xi32>
  %offset_4 = arith.index_cast %offset_4_ : i32 to index
  %expert_5 = arith.constant 5 : index
  %n_5_ = tensor.extract %counts[%expert_5] : tensor<8xi32>
  %n_5 = arith.index_cast %n_5_ : i32 to index
  %offset_5_ = tensor.extract %offsets[%expert_5] : tensor<8xi32>
  %offset_5 = arith.index_cast %offset_5_ : i32 to index
  %expert_6 = arith.constant 6 : index
  %n_6_ = tensor.extract %counts[%expert_6] : tensor<8xi32>
  %n_6 = arith.index_cast %n_6_ : i32 to index
  %offset_6_ = tensor.extract %offsets[%expert_6] : tensor<8xi32>
  %offset_6 = arith.index_cast %offset_6_ : i32 to index
  %expert_7 = arith.constant 7 : index
  %n_7_ = tensor.extract %counts[%expert_7] : tensor<8xi32>
  %n_7 = arith.index_cast %n_7_ : i32 to index
  %offset_7_ = tensor.extract %offsets[%expert_7] : tensor<8xi32>
  %offset_7 = arith.index_cast %offset_7_ : i32 to index

  // Expert 0.
  %x_0_out = tensor.empty(%n_0) : tensor<?x64xf32>
  %x_0 = linalg.generic {
      indexing_maps = [affine_map<(j, c) -> (j, c)>],
      iterator_types = ["parallel", "parallel"]}
      outs(%x_0_out : tensor<?x64xf32>) {
    ^bb0(%_: f32):
      %j = linalg.index 0 : index
      %c = linalg.index 1 : index
      %at = arith.addi %j, %offset_0 : index
      %t32 = tensor.extract %token_of[%at] : tensor<?xi32>
      %t = arith.index_cast %t32 : i32 to index
      %v = tensor.extract %h[%t, %c] : tensor<?x64xf32>
      linalg.yield %v : f32
  } -> tensor<?x64xf32>
  %up_0_init_empty = tensor.empty(%n_0) : tensor<?x256xf32>
  %up_0_init = linalg.fill ins(%zero : f32) outs(%up_0_init_empty : tensor<?x256xf32>) -> tensor<?x256xf32>
  %up_0 = linalg.matmul ins(%x_0, %w_in_0 : tensor<?x64xf32>, tensor<64x256xf32>) outs(%up_0_init : tensor<?x256xf32>) -> tensor<?x256xf32>
  %gate_0 = tensor.extract_slice %up_0[0, 0] [%n_0, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %lift_0 = tensor.extract_slice %up_0[0, 128] [%n_0, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %act_0_out = tensor.empty(%n_0) : tensor<?x128xf32>
  %act_0 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%gate_0, %lift_0 : tensor<?x128xf32>, tensor<?x128xf32>)
      outs(%act_0_out : tensor<?x128xf32>) {
    ^bb0(%a: f32, %u: f32, %_: f32):
      %n = arith.negf %a : f32
      %x_ = math.exp %n : f32
      %d = arith.addf %x_, %one : f32
      %silu = arith.divf %a, %d : f32
      %r = arith.mulf %silu, %u : f32
      linalg.yield %r : f32
  } -> tensor<?x128xf32>
  %y_0_init_empty = tensor.empty(%n_0) : tensor<?x64xf32>
  %y_0_init = linalg.fill ins(%zero : f32) outs(%y_0_init_empty : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y_0 = linalg.matmul ins(%act_0, %w_out_0 : tensor<?x128xf32>, tensor<128x64xf32>) outs(%y_0_init : tensor<?x64xf32>) -> tensor<?x64xf32>

  // Expert 1.
  %x_1_out = tensor.empty(%n_1) : tensor<?x64xf32>
  %x_1 = linalg.generic {
      indexing_maps = [affine_map<(j, c) -> (j, c)>],
      iterator_types = ["parallel", "parallel"]}
      outs(%x_1_out : tensor<?x64xf32>) {
    ^bb0(%_: f32):
      %j = linalg.index 0 : index
      %c = linalg.index 1 : index
      %at = arith.addi %j, %offset_1 : index
      %t32 = tensor.extract %token_of[%at] : tensor<?xi32>
      %t = arith.index_cast %t32 : i32 to index
      %v = tensor.extract %h[%t, %c] : tensor<?x64xf32>
      linalg.yield %v : f32
  } -> tensor<?x64xf32>
  %up_1_init_empty = tensor.empty(%n_1) : tensor<?x256xf32>
  %up_1_init = linalg.fill ins(%zero : f32) outs(%up_1_init_empty : tensor<?x256xf32>) -> tensor<?x256xf32>
  %up_1 = linalg.matmul ins(%x_1, %w_in_1 : tensor<?x64xf32>, tensor<64x256xf32>) outs(%up_1_init : tensor<?x256xf32>) -> tensor<?x256xf32>
  %gate_1 = tensor.extract_slice %up_1[0, 0] [%n_1, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %lift_1 = tensor.extract_slice %up_1[0, 128] [%n_1, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %act_1_out = tensor.empty(%n_1) : tensor<?x128xf32>
  %act_1 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%gate_1, %lift_1 : tensor<?x128xf32>, tensor<?x128xf32>)
      outs(%act_1_out : tensor<?x128xf32>) {
    ^bb0(%a: f32, %u: f32, %_: f32):
      %n = arith.negf %a : f32
      %x_ = math.exp %n : f32
      %d = arith.addf %x_, %one : f32
      %silu = arith.divf %a, %d : f32
      %r = arith.mulf %silu, %u : f32
      linalg.yield %r : f32
  } -> tensor<?x128xf32>
  %y_1_init_empty = tensor.empty(%n_1) : tensor<?x64xf32>
  %y_1_init = linalg.fill ins(%zero : f32) outs(%y_1_init_empty : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y_1 = linalg.matmul ins(%act_1, %w_out_1 : tensor<?x128xf32>, tensor<128x64xf32>) outs(%y_1_init : tensor<?x64xf32>) -> tensor<?x64xf32>

  // Expert 2.
  %x_2_out = tensor.empty(%n_2) : tensor<?x64xf32>
  %x_2 = linalg.generic {
      indexing_maps = [affine_map<(j, c) -> (j, c)>],
      iterator_types = ["parallel", "parallel"]}
      outs(%x_2_out : tensor<?x64xf32>) {
    ^bb0(%_: f32):
      %j = linalg.index 0 : index
      %c = linalg.index 1 : index
      %at = arith.addi %j, %offset_2 : index
      %t32 = tensor.extract %token_of[%at] : tensor<?xi32>
      %t = arith.index_cast %t32 : i32 to index
      %v = tensor.extract %h[%t, %c] : tensor<?x64xf32>
      linalg.yield %v : f32
  } -> tensor<?x64xf32>
  %up_2_init_empty = tensor.empty(%n_2) : tensor<?x256xf32>
  %up_2_init = linalg.fill ins(%zero : f32) outs(%up_2_init_empty : tensor<?x256xf32>) -> tensor<?x256xf32>
  %up_2 = linalg.matmul ins(%x_2, %w_in_2 : tensor<?x64xf32>, tensor<64x256xf32>) outs(%up_2_init : tensor<?x256xf32>) -> tensor<?x256xf32>
  %gate_2 = tensor.extract_slice %up_2[0, 0] [%n_2, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %lift_2 = tensor.extract_slice %up_2[0, 128] [%n_2, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %act_2_out = tensor.empty(%n_2) : tensor<?x128xf32>
  %act_2 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%gate_2, %lift_2 : tensor<?x128xf32>, tensor<?x128xf32>)
      outs(%act_2_out : tensor<?x128xf32>) {
    ^bb0(%a: f32, %u: f32, %_: f32):
      %n = arith.negf %a : f32
      %x_ = math.exp %n : f32
      %d = arith.addf %x_, %one : f32
      %silu = arith.divf %a, %d : f32
      %r = arith.mulf %silu, %u : f32
      linalg.yield %r : f32
  } -> tensor<?x128xf32>
  %y_2_init_empty = tensor.empty(%n_2) : tensor<?x64xf32>
  %y_2_init = linalg.fill ins(%zero : f32) outs(%y_2_init_empty : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y_2 = linalg.matmul ins(%act_2, %w_out_2 : tensor<?x128xf32>, tensor<128x64xf32>) outs(%y_2_init : tensor<?x64xf32>) -> tensor<?x64xf32>

  // Expert 3.
  %x_3_out = tensor.empty(%n_3) : tensor<?x64xf32>
  %x_3 = linalg.generic {
      indexing_maps = [affine_map<(j, c) -> (j, c)>],
      iterator_types = ["parallel", "parallel"]}
      outs(%x_3_out : tensor<?x64xf32>) {
    ^bb0(%_: f32):
      %j = linalg.index 0 : index
      %c = linalg.index 1 : index
      %at = arith.addi %j, %offset_3 : index
      %t32 = tensor.extract %token_of[%at] : tensor<?xi32>
      %t = arith.index_cast %t32 : i32 to index
      %v = tensor.extract %h[%t, %c] : tensor<?x64xf32>
      linalg.yield %v : f32
  } -> tensor<?x64xf32>
  %up_3_init_empty = tensor.empty(%n_3) : tensor<?x256xf32>
  %up_3_init = linalg.fill ins(%zero : f32) outs(%up_3_init_empty : tensor<?x256xf32>) -> tensor<?x256xf32>
  %up_3 = linalg.matmul ins(%x_3, %w_in_3 : tensor<?x64xf32>, tensor<64x256xf32>) outs(%up_3_init : tensor<?x256xf32>) -> tensor<?x256xf32>
  %gate_3 = tensor.extract_slice %up_3[0, 0] [%n_3, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %lift_3 = tensor.extract_slice %up_3[0, 128] [%n_3, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %act_3_out = tensor.empty(%n_3) : tensor<?x128xf32>
  %act_3 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%gate_3, %lift_3 : tensor<?x128xf32>, tensor<?x128xf32>)
      outs(%act_3_out : tensor<?x128xf32>) {
    ^bb0(%a: f32, %u: f32, %_: f32):
      %n = arith.negf %a : f32
      %x_ = math.exp %n : f32
      %d = arith.addf %x_, %one : f32
      %silu = arith.divf %a, %d : f32
      %r = arith.mulf %silu, %u : f32
      linalg.yield %r : f32
  } -> tensor<?x128xf32>
  %y_3_init_empty = tensor.empty(%n_3) : tensor<?x64xf32>
  %y_3_init = linalg.fill ins(%zero : f32) outs(%y_3_init_empty : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y_3 = linalg.matmul ins(%act_3, %w_out_3 : tensor<?x128xf32>, tensor<128x64xf32>) outs(%y_3_init : tensor<?x64xf32>) -> tensor<?x64xf32>

  // Expert 4.
  %x_4_out = tensor.empty(%n_4) : tensor<?x64xf32>
  %x_4 = linalg.generic {
      indexing_maps = [affine_map<(j, c) -> (j, c)>],
      iterator_types = ["parallel", "parallel"]}
      outs(%x_4_out : tensor<?x64xf32>) {
    ^bb0(%_: f32):
      %j = linalg.index 0 : index
      %c = linalg.index 1 : index
      %at = arith.addi %j, %offset_4 : index
      %t32 = tensor.extract %token_of[%at] : tensor<?xi32>
      %t = arith.index_cast %t32 : i32 to index
      %v = tensor.extract %h[%t, %c] : tensor<?x64xf32>
      linalg.yield %v : f32
  } -> tensor<?x64xf32>
  %up_4_init_empty = tensor.empty(%n_4) : tensor<?x256xf32>
  %up_4_init = linalg.fill ins(%zero : f32) outs(%up_4_init_empty : tensor<?x256xf32>) -> tensor<?x256xf32>
  %up_4 = linalg.matmul ins(%x_4, %w_in_4 : tensor<?x64xf32>, tensor<64x256xf32>) outs(%up_4_init : tensor<?x256xf32>) -> tensor<?x256xf32>
  %gate_4 = tensor.extract_slice %up_4[0, 0] [%n_4, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %lift_4 = tensor.extract_slice %up_4[0, 128] [%n_4, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %act_4_out = tensor.empty(%n_4) : tensor<?x128xf32>
  %act_4 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%gate_4, %lift_4 : tensor<?x128xf32>, tensor<?x128xf32>)
      outs(%act_4_out : tensor<?x128xf32>) {
    ^bb0(%a: f32, %u: f32, %_: f32):
      %n = arith.negf %a : f32
      %x_ = math.exp %n : f32
      %d = arith.addf %x_, %one : f32
      %silu = arith.divf %a, %d : f32
      %r = arith.mulf %silu, %u : f32
      linalg.yield %r : f32
  } -> tensor<?x128xf32>
  %y_4_init_empty = tensor.empty(%n_4) : tensor<?x64xf32>
  %y_4_init = linalg.fill ins(%zero : f32) outs(%y_4_init_empty : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y_4 = linalg.matmul ins(%act_4, %w_out_4 : tensor<?x128xf32>, tensor<128x64xf32>) outs(%y_4_init : tensor<?x64xf32>) -> tensor<?x64xf32>

  // Expert 5.
  %x_5_out = tensor.empty(%n_5) : tensor<?x64xf32>
  %x_5 = linalg.generic {
      indexing_maps = [affine_map<(j, c) -> (j, c)>],
      iterator_types = ["parallel", "parallel"]}
      outs(%x_5_out : tensor<?x64xf32>) {
    ^bb0(%_: f32):
      %j = linalg.index 0 : index
      %c = linalg.index 1 : index
      %at = arith.addi %j, %offset_5 : index
      %t32 = tensor.extract %token_of[%at] : tensor<?xi32>
      %t = arith.index_cast %t32 : i32 to index
      %v = tensor.extract %h[%t, %c] : tensor<?x64xf32>
      linalg.yield %v : f32
  } -> tensor<?x64xf32>
  %up_5_init_empty = tensor.empty(%n_5) : tensor<?x256xf32>
  %up_5_init = linalg.fill ins(%zero : f32) outs(%up_5_init_empty : tensor<?x256xf32>) -> tensor<?x256xf32>
  %up_5 = linalg.matmul ins(%x_5, %w_in_5 : tensor<?x64xf32>, tensor<64x256xf32>) outs(%up_5_init : tensor<?x256xf32>) -> tensor<?x256xf32>
  %gate_5 = tensor.extract_slice %up_5[0, 0] [%n_5, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %lift_5 = tensor.extract_slice %up_5[0, 128] [%n_5, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %act_5_out = tensor.empty(%n_5) : tensor<?x128xf32>
  %act_5 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%gate_5, %lift_5 : tensor<?x128xf32>, tensor<?x128xf32>)
      outs(%act_5_out : tensor<?x128xf32>) {
    ^bb0(%a: f32, %u: f32, %_: f32):
      %n = arith.negf %a : f32
      %x_ = math.exp %n : f32
      %d = arith.addf %x_, %one : f32
      %silu = arith.divf %a, %d : f32
      %r = arith.mulf %silu, %u : f32
      linalg.yield %r : f32
  } -> tensor<?x128xf32>
  %y_5_init_empty = tensor.empty(%n_5) : tensor<?x64xf32>
  %y_5_init = linalg.fill ins(%zero : f32) outs(%y_5_init_empty : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y_5 = linalg.matmul ins(%act_5, %w_out_5 : tensor<?x128xf32>, tensor<128x64xf32>) outs(%y_5_init : tensor<?x64xf32>) -> tensor<?x64xf32>

  // Expert 6.
  %x_6_out = tensor.empty(%n_6) : tensor<?x64xf32>
  %x_6 = linalg.generic {
      indexing_maps = [affine_map<(j, c) -> (j, c)>],
      iterator_types = ["parallel", "parallel"]}
      outs(%x_6_out : tensor<?x64xf32>) {
    ^bb0(%_: f32):
      %j = linalg.index 0 : index
      %c = linalg.index 1 : index
      %at = arith.addi %j, %offset_6 : index
      %t32 = tensor.extract %token_of[%at] : tensor<?xi32>
      %t = arith.index_cast %t32 : i32 to index
      %v = tensor.extract %h[%t, %c] : tensor<?x64xf32>
      linalg.yield %v : f32
  } -> tensor<?x64xf32>
  %up_6_init_empty = tensor.empty(%n_6) : tensor<?x256xf32>
  %up_6_init = linalg.fill ins(%zero : f32) outs(%up_6_init_empty : tensor<?x256xf32>) -> tensor<?x256xf32>
  %up_6 = linalg.matmul ins(%x_6, %w_in_6 : tensor<?x64xf32>, tensor<64x256xf32>) outs(%up_6_init : tensor<?x256xf32>) -> tensor<?x256xf32>
  %gate_6 = tensor.extract_slice %up_6[0, 0] [%n_6, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %lift_6 = tensor.extract_slice %up_6[0, 128] [%n_6, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %act_6_out = tensor.empty(%n_6) : tensor<?x128xf32>
  %act_6 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%gate_6, %lift_6 : tensor<?x128xf32>, tensor<?x128xf32>)
      outs(%act_6_out : tensor<?x128xf32>) {
    ^bb0(%a: f32, %u: f32, %_: f32):
      %n = arith.negf %a : f32
      %x_ = math.exp %n : f32
      %d = arith.addf %x_, %one : f32
      %silu = arith.divf %a, %d : f32
      %r = arith.mulf %silu, %u : f32
      linalg.yield %r : f32
  } -> tensor<?x128xf32>
  %y_6_init_empty = tensor.empty(%n_6) : tensor<?x64xf32>
  %y_6_init = linalg.fill ins(%zero : f32) outs(%y_6_init_empty : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y_6 = linalg.matmul ins(%act_6, %w_out_6 : tensor<?x128xf32>, tensor<128x64xf32>) outs(%y_6_init : tensor<?x64xf32>) -> tensor<?x64xf32>

  // Expert 7.
  %x_7_out = tensor.empty(%n_7) : tensor<?x64xf32>
  %x_7 = linalg.generic {
      indexing_maps = [affine_map<(j, c) -> (j, c)>],
      iterator_types = ["parallel", "parallel"]}
      outs(%x_7_out : tensor<?x64xf32>) {
    ^bb0(%_: f32):
      %j = linalg.index 0 : index
      %c = linalg.index 1 : index
      %at = arith.addi %j, %offset_7 : index
      %t32 = tensor.extract %token_of[%at] : tensor<?xi32>
      %t = arith.index_cast %t32 : i32 to index
      %v = tensor.extract %h[%t, %c] : tensor<?x64xf32>
      linalg.yield %v : f32
  } -> tensor<?x64xf32>
  %up_7_init_empty = tensor.empty(%n_7) : tensor<?x256xf32>
  %up_7_init = linalg.fill ins(%zero : f32) outs(%up_7_init_empty : tensor<?x256xf32>) -> tensor<?x256xf32>
  %up_7 = linalg.matmul ins(%x_7, %w_in_7 : tensor<?x64xf32>, tensor<64x256xf32>) outs(%up_7_init : tensor<?x256xf32>) -> tensor<?x256xf32>
  %gate_7 = tensor.extract_slice %up_7[0, 0] [%n_7, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %lift_7 = tensor.extract_slice %up_7[0, 128] [%n_7, 128] [1, 1] : tensor<?x256xf32> to tensor<?x128xf32>
  %act_7_out = tensor.empty(%n_7) : tensor<?x128xf32>
  %act_7 = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%gate_7, %lift_7 : tensor<?x128xf32>, tensor<?x128xf32>)
      outs(%act_7_out : tensor<?x128xf32>) {
    ^bb0(%a: f32, %u: f32, %_: f32):
      %n = arith.negf %a : f32
      %x_ = math.exp %n : f32
      %d = arith.addf %x_, %one : f32
      %silu = arith.divf %a, %d : f32
      %r = arith.mulf %silu, %u : f32
      linalg.yield %r : f32
  } -> tensor<?x128xf32>
  %y_7_init_empty = tensor.empty(%n_7) : tensor<?x64xf32>
  %y_7_init = linalg.fill ins(%zero : f32) outs(%y_7_init_empty : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y_7 = linalg.matmul ins(%act_7, %w_out_7 : tensor<?x128xf32>, tensor<128x64xf32>) outs(%y_7_init : tensor<?x64xf32>) -> tensor<?x64xf32>

  // Each token's sum over its two experts.
  %grouped = tensor.concat dim(0) %y_0, %y_1, %y_2, %y_3, %y_4, %y_5, %y_6, %y_7 : (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
  %y_rows_out = tensor.empty(%tokens) : tensor<?x64xf32>
  %y_rows = linalg.generic {
      indexing_maps = [affine_map<(t, c) -> (t, c)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (t, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x_rows, %place1, %place2, %gate1, %gate2 : tensor<?x64xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>)
      outs(%y_rows_out : tensor<?x64xf32>) {
    ^bb0(%old: f32, %p1: i32, %p2: i32, %g1: f32, %g2: f32, %_: f32):
      %c = linalg.index 1 : index
      %at1 = arith.index_cast %p1 : i32 to index
      %at2 = arith.index_cast %p2 : i32 to index
      %v1 = tensor.extract %grouped[%at1, %c] : tensor<?x64xf32>
      %v2 = tensor.extract %grouped[%at2, %c] : tensor<?x64xf32>
      %u1 = arith.mulf %v1, %g1 : f32
      %u2 = arith.mulf %v2, %g2 : f32
      %u = arith.addf %u1, %u2 : f32
      %r = arith.addf %old, %u : f32
      linalg.yield %r : f32
  } -> tensor<?x64xf32>
  %y = tensor.expand_shape %y_rows [[0, 1], [2]] output_shape [%batch, %seq, 64] : tensor<?x64xf32> into tensor<?x?x64xf32>
  return %y : tensor<?x?x64xf32>
}
