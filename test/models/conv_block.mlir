// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Written by conv_block.py --channels-in 16 --channels-out 32 --stride 2
// Do not edit. One residual convolution block. Roots: batch, height, width.
func.func @block(
    %x: tensor<?x?x?x16xf32> {pgkp.dims = ["batch", "height", "width", ""]},
    %w1: tensor<3x3x16x32xf32> {pgkp.persistent},
    %scale1: tensor<32xf32> {pgkp.persistent},
    %shift1: tensor<32xf32> {pgkp.persistent},
    %w2: tensor<3x3x32x32xf32> {pgkp.persistent},
    %scale2: tensor<32xf32> {pgkp.persistent},
    %shift2: tensor<32xf32> {pgkp.persistent},
    %wp: tensor<1x1x16x32xf32> {pgkp.persistent},
    %scalep: tensor<32xf32> {pgkp.persistent},
    %shiftp: tensor<32xf32> {pgkp.persistent})
    -> (tensor<?x?x?x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c_stride = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32

  %batch = tensor.dim %x, %c0 : tensor<?x?x?x16xf32>
  %height = tensor.dim %x, %c1 : tensor<?x?x?x16xf32>
  %width = tensor.dim %x, %c2 : tensor<?x?x?x16xf32>
  %out_h = arith.ceildivui %height, %c_stride : index
  %out_w = arith.ceildivui %width, %c_stride : index
  %first_pad = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%b_: index, %h_: index, %w_: index, %c_: index):
      tensor.yield %zero : f32
  } : tensor<?x?x?x16xf32> to tensor<?x?x?x16xf32>
  %first_init_empty = tensor.empty(%batch, %out_h, %out_w) : tensor<?x?x?x32xf32>
  %first_init = linalg.fill ins(%zero : f32) outs(%first_init_empty : tensor<?x?x?x32xf32>) -> tensor<?x?x?x32xf32>
  %first = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%first_pad, %w1 : tensor<?x?x?x16xf32>, tensor<3x3x16x32xf32>) outs(%first_init : tensor<?x?x?x32xf32>) -> tensor<?x?x?x32xf32>
  %inner_out = tensor.empty(%batch, %out_h, %out_w) : tensor<?x?x?x32xf32>
  %inner = linalg.generic {
      indexing_maps = [affine_map<(b, h, w, c) -> (b, h, w, c)>, affine_map<(b, h, w, c) -> (c)>, affine_map<(b, h, w, c) -> (c)>, affine_map<(b, h, w, c) -> (b, h, w, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%first, %scale1, %shift1 : tensor<?x?x?x32xf32>, tensor<32xf32>, tensor<32xf32>)
      outs(%inner_out : tensor<?x?x?x32xf32>) {
    ^bb0(%a: f32, %s: f32, %d: f32, %_: f32):
      %m = arith.mulf %a, %s : f32
      %n = arith.addf %m, %d : f32
      %r = arith.maximumf %n, %zero : f32
      linalg.yield %r : f32
  } -> tensor<?x?x?x32xf32>
  %second_pad = tensor.pad %inner low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%b_: index, %h_: index, %w_: index, %c_: index):
      tensor.yield %zero : f32
  } : tensor<?x?x?x32xf32> to tensor<?x?x?x32xf32>
  %second_init_empty = tensor.empty(%batch, %out_h, %out_w) : tensor<?x?x?x32xf32>
  %second_init = linalg.fill ins(%zero : f32) outs(%second_init_empty : tensor<?x?x?x32xf32>) -> tensor<?x?x?x32xf32>
  %second = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%second_pad, %w2 : tensor<?x?x?x32xf32>, tensor<3x3x32x32xf32>) outs(%second_init : tensor<?x?x?x32xf32>) -> tensor<?x?x?x32xf32>
  %projected_init_empty = tensor.empty(%batch, %out_h, %out_w) : tensor<?x?x?x32xf32>
  %projected_init = linalg.fill ins(%zero : f32) outs(%projected_init_empty : tensor<?x?x?x32xf32>) -> tensor<?x?x?x32xf32>
  %projected = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%x, %wp : tensor<?x?x?x16xf32>, tensor<1x1x16x32xf32>) outs(%projected_init : tensor<?x?x?x32xf32>) -> tensor<?x?x?x32xf32>
  %kept_out = tensor.empty(%batch, %out_h, %out_w) : tensor<?x?x?x32xf32>
  %kept = linalg.generic {
      indexing_maps = [affine_map<(b, h, w, c) -> (b, h, w, c)>, affine_map<(b, h, w, c) -> (c)>, affine_map<(b, h, w, c) -> (c)>, affine_map<(b, h, w, c) -> (b, h, w, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%projected, %scalep, %shiftp : tensor<?x?x?x32xf32>, tensor<32xf32>, tensor<32xf32>)
      outs(%kept_out : tensor<?x?x?x32xf32>) {
    ^bb0(%a: f32, %s: f32, %d: f32, %_: f32):
      %m = arith.mulf %a, %s : f32
      %n = arith.addf %m, %d : f32
      linalg.yield %n : f32
  } -> tensor<?x?x?x32xf32>
  %y_out = tensor.empty(%batch, %out_h, %out_w) : tensor<?x?x?x32xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(b, h, w, c) -> (b, h, w, c)>, affine_map<(b, h, w, c) -> (c)>, affine_map<(b, h, w, c) -> (c)>, affine_map<(b, h, w, c) -> (b, h, w, c)>, affine_map<(b, h, w, c) -> (b, h, w, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%second, %scale2, %shift2, %kept : tensor<?x?x?x32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<?x?x?x32xf32>)
      outs(%y_out : tensor<?x?x?x32xf32>) {
    ^bb0(%a: f32, %s: f32, %d: f32, %old: f32, %_: f32):
      %m = arith.mulf %a, %s : f32
      %n = arith.addf %m, %d : f32
      %t = arith.addf %n, %old : f32
      %r = arith.maximumf %t, %zero : f32
      linalg.yield %r : f32
  } -> tensor<?x?x?x32xf32>
  return %y : tensor<?x?x?x32xf32>
}
