#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints one residual convolution block as MLIR: 3x3, normalization, relu, 3x3, normalization, plus a
1x1 projection of the input where its size changes, relu. Images are [batch, height, width,
channels], filters [height, width, in, out]; a trained normalization is a scale and a shift.

The defaults print the checked-in conv_block.mlir, which halves height and width and
doubles the channels. Roots: batch, height, width.
"""

import argparse
import sys

import mlir_text
from mlir_text import Body, tensor


def parse_args(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--channels-in", type=int, default=16)
    parser.add_argument("--channels-out", type=int, default=32)
    parser.add_argument("--stride", type=int, default=2)
    parser.add_argument("--type", choices=["f32"], default="f32")
    args = parser.parse_args(argv)
    if min(args.channels_in, args.channels_out, args.stride) < 1:
        parser.error("sizes must be positive")
    if args.stride > 2:
        parser.error("--stride must be 1 or 2")
    return args


def has_projection(args):
    return args.stride != 1 or args.channels_in != args.channels_out


def weight_shapes(args):
    """The block's weights in the order of its arguments: name -> shape."""
    c_in, c_out = args.channels_in, args.channels_out
    shapes = {"w1": (3, 3, c_in, c_out), "scale1": (c_out,), "shift1": (c_out,),
              "w2": (3, 3, c_out, c_out), "scale2": (c_out,), "shift2": (c_out,)}
    if has_projection(args):
        shapes.update({"wp": (1, 1, c_in, c_out), "scalep": (c_out,), "shiftp": (c_out,)})
    return shapes


def image(c):
    return tensor("f32", None, None, None, c)


def conv(b, name, source, weight, size, c_in, c_out, stride):
    """%name [batch, out_h, out_w, c_out]; a 3x3 filter sees a border of zeros."""
    if size > 1:
        border = size // 2
        b.emit(f"""%{name}_pad = tensor.pad %{source} low[0, {border}, {border}, 0] high[0, {border}, {border}, 0] {{
  ^bb0(%b_: index, %h_: index, %w_: index, %c_: index):
    tensor.yield %zero : f32
}} : {image(c_in)} to {image(c_in)}""")
        source = f"{name}_pad"
    b.fill(f"{name}_init", "zero", image(c_out), "batch", "out_h", "out_w")
    b.emit(f"%{name} = linalg.conv_2d_nhwc_hwcf "
           f"{{dilations = dense<1> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}} "
           f"ins(%{source}, %{weight} : {image(c_in)}, {tensor('f32', size, size, c_in, c_out)}) "
           f"outs(%{name}_init : {image(c_out)}) -> {image(c_out)}")


def normalize(b, name, source, suffix, c, lines, result, extra=()):
    """%name = f(%source * %scale + %shift), f in `lines` from %n."""
    where = "b h w c"
    b.empty(f"{name}_out", image(c), "batch", "out_h", "out_w")
    b.generic(name, where, "pppp",
              [(source, image(c), where, "a"), (f"scale{suffix}", tensor("f32", c), "c", "s"),
               (f"shift{suffix}", tensor("f32", c), "c", "d"), *extra],
              (f"{name}_out", image(c), where, None), result,
              ["%m = arith.mulf %a, %s : f32", "%n = arith.addf %m, %d : f32", *lines])


def block(args):
    c_in, c_out, stride = args.channels_in, args.channels_out, args.stride
    b = Body("f32")
    arguments = [("x", image(c_in), '{pgkp.dims = ["batch", "height", "width", ""]}')]
    arguments += [(name, tensor("f32", *shape), "{pgkp.persistent}")
                  for name, shape in weight_shapes(args).items()]
    b.emit(f"""
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c_stride = arith.constant {stride} : index
%zero = arith.constant 0.0 : f32

%batch = tensor.dim %x, %c0 : {image(c_in)}
%height = tensor.dim %x, %c1 : {image(c_in)}
%width = tensor.dim %x, %c2 : {image(c_in)}
%out_h = arith.ceildivui %height, %c_stride : index
%out_w = arith.ceildivui %width, %c_stride : index
""")
    where = "b h w c"
    conv(b, "first", "x", "w1", 3, c_in, c_out, stride)
    normalize(b, "inner", "first", "1", c_out, ["%r = arith.maximumf %n, %zero : f32"], "r")
    conv(b, "second", "inner", "w2", 3, c_out, c_out, 1)
    kept = "x"
    if has_projection(args):
        conv(b, "projected", "x", "wp", 1, c_in, c_out, stride)
        normalize(b, "kept", "projected", "p", c_out, [], "n")
        kept = "kept"
    normalize(b, "y", "second", "2", c_out,
              ["%t = arith.addf %n, %old : f32", "%r = arith.maximumf %t, %zero : f32"], "r",
              [(kept, image(c_out), where, "old")])
    b.emit(f"return %y : {image(c_out)}")
    return mlir_text.function("block", arguments, [(image(c_out), "")], b.lines)


def module(args):
    flags = f"--channels-in {args.channels_in} --channels-out {args.channels_out} --stride {args.stride}"
    return mlir_text.file("conv_block.py", flags, "One residual convolution block. Roots: "
                          "batch, height, width.", block(args))


if __name__ == "__main__":
    sys.stdout.write(module(parse_args()))
