#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints one encoder layer of BERT as MLIR: biased projections, attention over all positions,
LayerNorm after each residual, GELU by the error function.

The defaults print the checked-in bert_encoder.mlir, which keeps the proportions of the
recorded model (hidden 768, 12 heads, ffn 3072). Roots: batch, seq.
"""

import argparse
import sys

import mlir_text
from mlir_text import Body, tensor


def parse_args(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", type=int, default=96)
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--ffn", type=int, default=384)
    parser.add_argument("--type", choices=["f32", "bf16"], default="f32")
    args = parser.parse_args(argv)
    if min(args.hidden, args.heads, args.ffn) < 1:
        parser.error("sizes must be positive")
    if args.hidden % args.heads:
        parser.error("--hidden must be a multiple of --heads")
    return args


def weight_shapes(args):
    """The layer's weights in the order of its arguments: name -> shape."""
    hidden, ffn = args.hidden, args.ffn
    shapes = {}
    for name in ("q", "k", "v", "o"):
        shapes[f"w{name}"], shapes[f"b{name}"] = (hidden, hidden), (hidden,)
    shapes.update({"attn_gain": (hidden,), "attn_shift": (hidden,), "w_in": (hidden, ffn),
                   "b_in": (ffn,), "w_out": (ffn, hidden), "b_out": (hidden,),
                   "mlp_gain": (hidden,), "mlp_shift": (hidden,)})
    return shapes


def layer_norm(b, name, source, gain, shift, n):
    """Mean, then centered squares; needs %n_hidden and %eps."""
    rows, row = tensor(b.element, None, n), tensor("f32", None)
    b.fill(f"{name}_zero", "zero", row, "tokens")
    b.generic(f"{name}_sum", "t c", "pr", [(source, rows, "t c", "a")],
              (f"{name}_zero", row, "t", "acc"), "s", ["%s = arith.addf %acc, %a : f32"])
    b.generic(f"{name}_sq", "t c", "pr",
              [(source, rows, "t c", "a"), (f"{name}_sum", row, "t", "total")],
              (f"{name}_zero", row, "t", "acc"), "s",
              ["%mean = arith.divf %total, %n_hidden : f32", "%d = arith.subf %a, %mean : f32",
               "%p = arith.mulf %d, %d : f32", "%s = arith.addf %acc, %p : f32"])
    b.empty(f"{name}_out", rows, "tokens")
    b.generic(name, "t c", "pp",
              [(source, rows, "t c", "a"), (f"{name}_sum", row, "t", "total"),
               (f"{name}_sq", row, "t", "sq"), (gain, tensor(b.element, n), "c", "g"),
               (shift, tensor(b.element, n), "c", "low")],
              (f"{name}_out", rows, "t c", None), "r",
              ["%mean = arith.divf %total, %n_hidden : f32", "%d = arith.subf %a, %mean : f32",
               "%var = arith.divf %sq, %n_hidden : f32", "%biased = arith.addf %var, %eps : f32",
               "%scale = math.rsqrt %biased : f32", "%u = arith.mulf %d, %scale : f32",
               "%v = arith.mulf %u, %g : f32", "%r = arith.addf %v, %low : f32"])


def biased(b, name, product, bias, n, lines=(), result="y", extra=()):
    """%name = f(%product + %bias), f in `lines` from %y to %result."""
    rows = tensor(b.element, None, n)
    b.empty(f"{name}_out", rows, "tokens")
    b.generic(name, "t c", "pp",
              [(product, tensor("f32", None, n), "t c", "p"),
               (bias, tensor(b.element, n), "c", "z"), *extra],
              (f"{name}_out", rows, "t c", None), result,
              ["%y = arith.addf %p, %z : f32", *lines])


def split_heads(b, name, args):
    """%name_rows [batch * heads, seq, dim] from %name_flat [tokens, hidden]."""
    e, heads, dim = args.type, args.heads, args.hidden // args.heads
    split, moved = tensor(e, None, None, heads, dim), tensor(e, None, heads, None, dim)
    b.emit(f"%{name}_split = tensor.expand_shape %{name}_flat [[0, 1], [2, 3]] output_shape "
           f"[%batch, %seq, {heads}, {dim}] : {tensor(e, None, args.hidden)} into {split}")
    b.empty(f"{name}_moved_out", moved, "batch", "seq")
    b.generic(f"{name}_moved", "b h s j", "pppp", [(f"{name}_split", split, "b s h j", "a")],
              (f"{name}_moved_out", moved, "b h s j", None), "a", [])
    b.emit(f"%{name}_rows = tensor.collapse_shape %{name}_moved [[0, 1], [2], [3]] : "
           f"{moved} into {tensor(e, None, None, dim)}")


def attention(b, args):
    """%ctx_flat [tokens, hidden] from %q_rows, %k_rows, %v_rows."""
    e, heads, dim = args.type, args.heads, args.hidden // args.heads
    rows, scores = tensor(e, None, None, dim), tensor("f32", None, None, None)
    b.fill("qk_init", "zero", scores, "matrices", "seq", "seq")
    b.generic("qk", "b m n k", "pppr",
              [("q_rows", rows, "b m k", "a"), ("k_rows", rows, "b n k", "w")],
              ("qk_init", scores, "b m n", "acc"), "s",
              ["%p = arith.mulf %a, %w : f32", "%s = arith.addf %acc, %p : f32"])
    b.empty("scaled_out", scores, "matrices", "seq", "seq")
    b.generic("scaled", "b i j", "ppp", [("qk", scores, "b i j", "a")],
              ("scaled_out", scores, "b i j", None), "r",
              ["%r = arith.mulf %a, %qk_scale : f32"])
    probs = tensor(e, None, None, None)
    b.softmax("scaled", "b i j", (None, None, None), ("matrices", "seq", "seq"), probs)
    ctx = tensor("f32", None, None, dim)
    b.fill("ctx_init", "zero", ctx, "matrices", "seq")
    b.emit(f"%ctx = linalg.batch_matmul ins(%probs, %v_rows : {probs}, {rows}) "
           f"outs(%ctx_init : {ctx}) -> {ctx}")
    split, moved = tensor("f32", None, heads, None, dim), tensor(e, None, None, heads, dim)
    b.emit(f"%ctx_split = tensor.expand_shape %ctx [[0, 1], [2], [3]] output_shape "
           f"[%batch, {heads}, %seq, {dim}] : {ctx} into {split}")
    b.empty("ctx_moved_out", moved, "batch", "seq")
    b.generic("ctx_moved", "b s h j", "pppp", [("ctx_split", split, "b h s j", "a")],
              ("ctx_moved_out", moved, "b s h j", None), "a", [])
    b.emit(f"%ctx_flat = tensor.collapse_shape %ctx_moved [[0, 1], [2, 3]] : "
           f"{moved} into {tensor(e, None, args.hidden)}")


def encoder(args):
    e, hidden, heads, ffn = args.type, args.hidden, args.heads, args.ffn
    b = Body(e)
    x_type, rows = tensor(e, None, None, hidden), tensor(e, None, hidden)
    arguments = [("x", x_type, '{pgkp.dims = ["batch", "seq", ""]}')]
    arguments += [(name, tensor(e, *shape), "{pgkp.persistent}")
                  for name, shape in weight_shapes(args).items()]
    b.emit(f"""
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c_heads = arith.constant {heads} : index
%zero = arith.constant 0.0 : f32
%one = arith.constant 1.0 : f32
%half = arith.constant 0.5 : f32
%lowest = arith.constant 0xFF800000 : f32
%n_hidden = arith.constant {float(hidden)} : f32
%eps = arith.constant 1.0e-12 : f32
%qk_scale = arith.constant {(hidden // heads) ** -0.5!r} : f32
%inv_sqrt2 = arith.constant {0.5 ** 0.5!r} : f32

%batch = tensor.dim %x, %c0 : {x_type}
%seq = tensor.dim %x, %c1 : {x_type}
%tokens = arith.muli %batch, %seq : index
%matrices = arith.muli %batch, %c_heads : index""")
    b.comment("Attention block.")
    b.emit(f"%x_rows = tensor.collapse_shape %x [[0, 1], [2]] : {x_type} into {rows}")
    for name in ("q", "k", "v"):
        b.matmul(f"{name}p", "x_rows", f"w{name}", hidden, hidden)
        biased(b, f"{name}_flat", f"{name}p", f"b{name}", hidden)
        split_heads(b, name, args)
    attention(b, args)
    b.matmul("op", "ctx_flat", "wo", hidden, hidden)
    residual = ["%r = arith.addf %y, %old : f32"]
    biased(b, "attended", "op", "bo", hidden, residual, "r", [("x_rows", rows, "t c", "old")])
    layer_norm(b, "h", "attended", "attn_gain", "attn_shift", hidden)

    b.comment("Feed forward: gelu(x) = x / 2 * (1 + erf(x / sqrt 2)).")
    b.matmul("inner", "h", "w_in", hidden, ffn)
    biased(b, "act", "inner", "b_in", ffn,
           ["%u = arith.mulf %y, %inv_sqrt2 : f32", "%f = math.erf %u : f32",
            "%g = arith.addf %f, %one : f32", "%hy = arith.mulf %y, %half : f32",
            "%r = arith.mulf %hy, %g : f32"], "r")
    b.matmul("outer", "act", "w_out", ffn, hidden)
    biased(b, "mixed", "outer", "b_out", hidden, residual, "r", [("h", rows, "t c", "old")])
    layer_norm(b, "y_rows", "mixed", "mlp_gain", "mlp_shift", hidden)
    b.emit(f"%y_all = tensor.expand_shape %y_rows [[0, 1], [2]] "
           f"output_shape [%batch, %seq, {hidden}] : {rows} into {x_type}")
    b.emit(f"return %y_all : {x_type}")
    return mlir_text.function("encoder", arguments, [(x_type, "")], b.lines)


def module(args):
    flags = f"--hidden {args.hidden} --heads {args.heads} --ffn {args.ffn} --type {args.type}"
    return mlir_text.file("bert_encoder.py", flags, "One BERT encoder layer. Roots: batch, seq.",
                          encoder(args))


if __name__ == "__main__":
    sys.stdout.write(module(parse_args()))
