#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints one decoder layer of a llama model as MLIR (func, linalg, tensor, arith, math).

The defaults print the checked-in llama_decoder.mlir, which keeps the proportions of
the recorded model (hidden 1024, 16 heads, 4 kv heads, head_dim 64, ffn 2816). Extents
batch, seq and kv (positions already in the cache) are dynamic and are the roots.

Matrix products accumulate in f32 whatever the element type; every result of a product
has one elementwise consumer, which also rounds it to the element type.
"""

import argparse
import sys

import mlir_text
from mlir_text import Body, tensor


def add_size_options(parser):
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--kv-heads", type=int, default=1)
    parser.add_argument("--head-dim", type=int, default=16)
    parser.add_argument("--ffn", type=int, default=176)
    parser.add_argument("--type", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--max-positions", type=int, default=8192,
                        help="rows of the rotary tables: the largest kv + seq")


def check_sizes(parser, args, *others):
    sizes = (args.hidden, args.heads, args.kv_heads, args.head_dim, args.ffn,
             args.max_positions, *others)
    if min(sizes) < 1:
        parser.error("sizes must be positive")
    if args.heads % args.kv_heads:
        parser.error("--heads must be a multiple of --kv-heads")
    if args.head_dim % 2:
        parser.error("--head-dim must be even")
    return args


def parse_args(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_size_options(parser)
    return check_sizes(parser, parser.parse_args(argv))


def flags(args):
    """What makes these sizes on the command line."""
    return (f"--hidden {args.hidden} --heads {args.heads} --kv-heads {args.kv_heads} "
            f"--head-dim {args.head_dim} --ffn {args.ffn} --type {args.type} "
            f"--max-positions {args.max_positions}")


def cache_type(args):
    return tensor(args.type, None, args.kv_heads, None, args.head_dim)


def cache_arguments(args, *names):
    return [(name, cache_type(args), '{pgkp.dims = ["batch", "", "kv", ""], pgkp.persistent}')
            for name in names]


def tables(args):
    table = tensor("f32", args.max_positions, args.head_dim // 2)
    return [(name, table, "{pgkp.persistent}") for name in ("cos", "sin")]


def weight_shapes(args):
    """The layer's weights in the order of its arguments: name -> shape."""
    q, kv = args.heads * args.head_dim, args.kv_heads * args.head_dim
    return {"attn_norm": (args.hidden,), "wq": (args.hidden, q), "wk": (args.hidden, kv),
            "wv": (args.hidden, kv), "wo": (q, args.hidden), "mlp_norm": (args.hidden,),
            "w_gate": (args.hidden, args.ffn), "w_up": (args.hidden, args.ffn),
            "w_down": (args.ffn, args.hidden)}


def weights(args, suffix=""):
    return [(name + suffix, tensor(args.type, *shape), "{pgkp.persistent}")
            for name, shape in weight_shapes(args).items()]


def constants(b, args, leader, leader_type, cache="k_cache"):
    """Constants and extents; `leader` has the extents batch and seq first."""
    group = args.heads // args.kv_heads
    b.emit(f"""
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c_kv_heads = arith.constant {args.kv_heads} : index
%c_group = arith.constant {group} : index
%zero = arith.constant 0.0 : f32
%one = arith.constant 1.0 : f32
%lowest = arith.constant 0xFF800000 : f32
%hidden = arith.constant {float(args.hidden)} : f32
%eps = arith.constant 1.0e-5 : f32
%qk_scale = arith.constant {args.head_dim ** -0.5!r} : f32
// Finite, so that the difference to a row's maximum is never inf - inf.
%masked_out = arith.constant -1.0e30 : f32

%batch = tensor.dim %{leader}, %c0 : {leader_type}
%seq = tensor.dim %{leader}, %c1 : {leader_type}
%kv = tensor.dim %{cache}, %c2 : {cache_type(args)}
%tokens = arith.muli %batch, %seq : index
%length = arith.addi %kv, %seq : index
%groups = arith.muli %batch, %c_kv_heads : index
%rows = arith.muli %seq, %c_group : index""")


def slice_tables(b, args):
    """The rotary tables of the new positions, which start at kv."""
    half = args.head_dim // 2
    for name, type_, _ in tables(args):
        b.emit(f"%{name}_now = tensor.extract_slice %{name}[%kv, 0] [%seq, {half}] [1, 1] : "
               f"{type_} to {tensor('f32', None, half)}")


def rotate(b, args, name, product, n):
    """Rotates each pair (j, j + half) of a head and moves heads before seq."""
    e, f32, dim, half = args.type, "f32", args.head_dim, args.head_dim // 2
    split = tensor(f32, None, None, n, 2, half)
    side = tensor(f32, None, None, n, half)
    out = tensor(e, None, n, None, 2, half)
    b.emit(f"%{name}_split = tensor.expand_shape %{product} [[0, 1], [2, 3, 4]] "
           f"output_shape [%batch, %seq, {n}, 2, {half}] : "
           f"{tensor(f32, None, n * dim)} into {split}")
    for suffix, offset in (("lo", 0), ("hi", 1)):
        b.emit(f"%{name}_{suffix} = tensor.extract_slice %{name}_split"
               f"[0, 0, 0, {offset}, 0] [%batch, %seq, {n}, 1, {half}] [1, 1, 1, 1, 1] : "
               f"{split} to {side}")
    b.empty(f"{name}_out", out, "batch", "seq")
    position = tensor(f32, None, half)
    b.generic(f"{name}_rot", "b h s t j", "ppppp",
              [(f"{name}_split", split, "b s h t j", "a"),
               (f"{name}_lo", side, "b s h j", "lo"),
               (f"{name}_hi", side, "b s h j", "hi"),
               ("cos_now", position, "s j", "c"), ("sin_now", position, "s j", "d")],
              (f"{name}_out", out, "b h s t j", None), "r",
              ["%t = linalg.index 3 : index",
               "%first = arith.cmpi eq, %t, %c0 : index",
               "%neg = arith.negf %hi : f32",
               "%other = arith.select %first, %neg, %lo : f32",
               "%ac = arith.mulf %a, %c : f32",
               "%od = arith.mulf %other, %d : f32",
               "%r = arith.addf %ac, %od : f32"])
    b.emit(f"%{name} = tensor.collapse_shape %{name}_rot [[0], [1], [2], [3, 4]] : "
           f"{out} into {tensor(e, None, n, None, dim)}")


def attention(b, args):
    """%heads_rows [tokens, heads * dim] from %qp, %kp, %vp and the caches, which grow to %k, %v."""
    e, f32 = args.type, "f32"
    heads, kv_heads, dim = args.heads, args.kv_heads, args.head_dim
    group = heads // kv_heads
    cache = cache_type(args)
    rotate(b, args, "q", "qp", heads)
    rotate(b, args, "k_new", "kp", kv_heads)
    v_split = tensor(f32, None, None, kv_heads, dim)
    b.emit(f"%v_split = tensor.expand_shape %vp [[0, 1], [2, 3]] "
           f"output_shape [%batch, %seq, {kv_heads}, {dim}] : "
           f"{tensor(f32, None, kv_heads * dim)} into {v_split}")
    b.empty("v_new_out", cache, "batch", "seq")
    b.generic("v_new", "b h s j", "pppp", [("v_split", v_split, "b s h j", "a")],
              ("v_new_out", cache, "b h s j", None), "a", [])

    b.comment("The caches grow by seq positions.")
    for name in ("k", "v"):
        b.emit(f"%{name} = tensor.concat dim(2) %{name}_cache, %{name}_new : "
               f"({cache}, {cache}) -> {cache}")

    b.comment("Grouped-query attention: the query heads of a group share a kv head, so they "
              "are rows of one product.")
    q4 = tensor(e, None, heads, None, dim)
    q5 = tensor(e, None, kv_heads, group, None, dim)
    q3 = kv3 = tensor(e, None, None, dim)
    b.emit(f"%q_groups = tensor.expand_shape %q [[0], [1, 2], [3], [4]] "
           f"output_shape [%batch, {kv_heads}, {group}, %seq, {dim}] : {q4} into {q5}")
    b.emit(f"%q_rows = tensor.collapse_shape %q_groups [[0, 1], [2, 3], [4]] : {q5} into {q3}")
    for name in ("k", "v"):
        b.emit(f"%{name}_rows = tensor.collapse_shape %{name} [[0, 1], [2], [3]] : "
               f"{cache} into {kv3}")
    s3 = tensor(f32, None, None, None)
    b.fill("qk_init", "zero", s3, "groups", "rows", "length")
    b.generic("qk", "b m n k", "pppr",
              [("q_rows", q3, "b m k", "a"), ("k_rows", kv3, "b n k", "w")],
              ("qk_init", s3, "b m n", "acc"), "s",
              ["%p = arith.mulf %a, %w : f32", "%s = arith.addf %acc, %p : f32"])

    b.comment("Causal softmax: the query at position kv + i sees keys j <= kv + i.")
    s4 = tensor(f32, None, group, None, None)
    p4 = tensor(e, None, group, None, None)
    scores = "b g i j"
    b.emit(f"%qk_split = tensor.expand_shape %qk [[0], [1, 2], [3]] "
           f"output_shape [%groups, {group}, %seq, %length] : {s3} into {s4}")
    b.empty("masked_init", s4, "groups", "seq", "length")
    b.generic("masked", scores, "pppp", [("qk_split", s4, scores, "a")],
              ("masked_init", s4, scores, None), "r",
              ["%i = linalg.index 2 : index",
               "%j = linalg.index 3 : index",
               "%position = arith.addi %kv, %i : index",
               "%seen = arith.cmpi ule, %j, %position : index",
               "%scaled = arith.mulf %a, %qk_scale : f32",
               "%r = arith.select %seen, %scaled, %masked_out : f32"])
    b.softmax("masked", scores, (None, group, None, None), ("groups", "seq", "length"), p4)

    p3, c3 = tensor(e, None, None, None), tensor(f32, None, None, dim)
    c5 = tensor(f32, None, kv_heads, group, None, dim)
    merged = tensor(e, None, None, kv_heads, group, dim)
    b.emit("")
    b.emit(f"%probs_rows = tensor.collapse_shape %probs [[0], [1, 2], [3]] : {p4} into {p3}")
    b.fill("ctx_init", "zero", c3, "groups", "rows")
    b.emit(f"%ctx = linalg.batch_matmul ins(%probs_rows, %v_rows : {p3}, {kv3}) "
           f"outs(%ctx_init : {c3}) -> {c3}")
    b.emit(f"%ctx_split = tensor.expand_shape %ctx [[0, 1], [2, 3], [4]] "
           f"output_shape [%batch, {kv_heads}, {group}, %seq, {dim}] : {c3} into {c5}")
    b.empty("heads_out", merged, "batch", "seq")
    b.generic("heads", "b s h g j", "ppppp", [("ctx_split", c5, "b h g s j", "a")],
              ("heads_out", merged, "b s h g j", None), "a", [])
    b.emit(f"%heads_rows = tensor.collapse_shape %heads [[0, 1], [2, 3, 4]] : "
           f"{merged} into {tensor(e, None, heads * dim)}")


def swiglu(b, name, gate, up, n, rows="tokens"):
    """%name = silu(%gate) * %up, both f32 [rows, n]."""
    act, wide = tensor(b.element, None, n), tensor("f32", None, n)
    b.empty(f"{name}_out", act, rows)
    b.generic(name, "t c", "pp",
              [(gate, wide, "t c", "a"), (up, wide, "t c", "u")],
              (f"{name}_out", act, "t c", None), "r",
              ["%n = arith.negf %a : f32", "%x_ = math.exp %n : f32",
               "%d = arith.addf %x_, %one : f32", "%silu = arith.divf %a, %d : f32",
               "%r = arith.mulf %silu, %u : f32"])


def layer(b, args, slice_positions=True):
    """%y_rows, %k and %v from %x_rows, %k_cache and %v_cache."""
    hidden, heads, kv_heads = args.hidden, args.heads, args.kv_heads
    dim, ffn = args.head_dim, args.ffn
    b.rms_norm("h", "x_rows", "attn_norm", hidden)
    b.matmul("qp", "h", "wq", hidden, heads * dim)
    b.matmul("kp", "h", "wk", hidden, kv_heads * dim)
    b.matmul("vp", "h", "wv", hidden, kv_heads * dim)

    b.comment("Rotary embedding of q and k; the new positions start at kv.")
    if slice_positions:
        slice_tables(b, args)
    attention(b, args)
    b.matmul("op", "heads_rows", "wo", heads * dim, hidden)
    b.add("x_attn", "op", "x_rows", hidden)

    b.comment("SwiGLU block.")
    b.rms_norm("g", "x_attn", "mlp_norm", hidden)
    b.matmul("gate", "g", "w_gate", hidden, ffn)
    b.matmul("up", "g", "w_up", hidden, ffn)
    swiglu(b, "act", "gate", "up", ffn)
    b.matmul("down", "act", "w_down", ffn, hidden)
    b.add("y_rows", "down", "x_attn", hidden)


def decoder(args):
    e, hidden = args.type, args.hidden
    b = Body(e)
    cache, x_type, rows_e = cache_type(args), tensor(e, None, None, hidden), tensor(e, None, hidden)
    arguments = [("x", x_type, '{pgkp.dims = ["batch", "seq", ""]}')]
    arguments += cache_arguments(args, "k_cache", "v_cache") + tables(args) + weights(args)
    constants(b, args, "x", x_type)

    b.comment("Attention block.")
    b.emit(f"%x_rows = tensor.collapse_shape %x [[0, 1], [2]] : {x_type} into {rows_e}")
    layer(b, args)
    b.emit(f"%y = tensor.expand_shape %y_rows [[0, 1], [2]] "
           f"output_shape [%batch, %seq, {hidden}] : {rows_e} into {x_type}")
    b.emit(f"return %y, %k, %v : {x_type}, {cache}, {cache}")
    results = [(x_type, ""), (cache, "{pgkp.carries = 1 : i64}"), (cache, "{pgkp.carries = 2 : i64}")]
    return mlir_text.function("decoder", arguments, results, b.lines)


def module(args):
    """The whole file for parse_args() sizes."""
    return mlir_text.file("llama_decoder.py", flags(args),
                          "One llama decoder layer. Roots: batch, seq, kv (positions that "
                          "the caches hold).", decoder(args))


if __name__ == "__main__":
    sys.stdout.write(module(parse_args()))
