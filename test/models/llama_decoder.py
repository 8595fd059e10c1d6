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


def parse_args(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--kv-heads", type=int, default=1)
    parser.add_argument("--head-dim", type=int, default=16)
    parser.add_argument("--ffn", type=int, default=176)
    parser.add_argument("--type", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--max-positions", type=int, default=8192,
                        help="rows of the rotary tables: the largest kv + seq")
    args = parser.parse_args(argv)
    sizes = (args.hidden, args.heads, args.kv_heads, args.head_dim, args.ffn,
             args.max_positions)
    if min(sizes) < 1:
        parser.error("sizes must be positive")
    if args.heads % args.kv_heads:
        parser.error("--heads must be a multiple of --kv-heads")
    if args.head_dim % 2:
        parser.error("--head-dim must be even")
    return args


def tensor(element, *dims):
    """Spells a tensor type; None is a dynamic dimension."""
    return "tensor<" + "".join(f"{'?' if d is None else d}x" for d in dims) + element + ">"


def affine_map(domain, results):
    """affine_map("b s", "s") -> affine_map<(b, s) -> (s)>."""
    return (f"affine_map<({', '.join(domain.split())}) -> "
            f"({', '.join(results.split())})>")


class Body:
    """The operations of the entry function, and the idioms that they are made of."""

    def __init__(self, element):
        self.element = element
        self.lines = []

    def emit(self, text):
        for line in text.strip("\n").split("\n"):
            self.lines.append("  " + line if line else line)

    def comment(self, text):
        self.emit("")
        self.emit("// " + text)

    def empty(self, name, type_, *extents):
        self.emit(f"%{name} = tensor.empty({', '.join('%' + e for e in extents)}) : {type_}")

    def fill(self, name, value, type_, *extents):
        self.empty(f"{name}_empty", type_, *extents)
        self.emit(f"%{name} = linalg.fill ins(%{value} : f32) outs(%{name}_empty : {type_}) "
                  f"-> {type_}")

    def generic(self, name, domain, iterators, inputs, out, result, lines):
        """One linalg.generic. inputs: (value, type, map results, block argument).

        out: (value, type, map results, block argument or None where it is not read).
        The body computes in f32: bf16 inputs are widened, the result is narrowed.
        """
        operands = inputs + [out]
        maps = ", ".join(affine_map(domain, o[2]) for o in operands)
        kinds = {"p": "parallel", "r": "reduction"}
        types = ", ".join(f'"{kinds[i]}"' for i in iterators)
        scalar = [o[1][:-1].replace("<", "x").split("x")[-1] for o in operands]
        arguments, widen = [], []
        for operand, type_ in zip(operands, scalar):
            argument = operand[3] or "_"
            if type_ == "f32" or operand[3] is None:
                arguments.append(f"%{argument}: {type_}")
            else:
                arguments.append(f"%{argument}_: {type_}")
                widen.append(f"%{argument} = arith.extf %{argument}_ : {type_} to f32")
        self.emit(f"%{name} = linalg.generic {{")
        self.emit(f"    indexing_maps = [{maps}],")
        self.emit(f"    iterator_types = [{types}]}}")
        self.emit(f"    ins({', '.join('%' + o[0] for o in inputs)} : "
                  f"{', '.join(o[1] for o in inputs)})")
        self.emit(f"    outs(%{out[0]} : {out[1]}) {{")
        self.emit(f"  ^bb0({', '.join(arguments)}):")
        for line in widen + lines:
            self.emit("    " + line)
        if scalar[-1] != "f32":
            self.emit(f"    %{result}_ = arith.truncf %{result} : f32 to {scalar[-1]}")
            result += "_"
        self.emit(f"    linalg.yield %{result} : {scalar[-1]}")
        self.emit(f"}} -> {out[1]}")

    def matmul(self, name, lhs, rhs, k, n):
        out = tensor("f32", None, n)
        self.fill(f"{name}_init", "zero", out, "tokens")
        self.emit(f"%{name} = linalg.matmul "
                  f"ins(%{lhs}, %{rhs} : {tensor(self.element, None, k)}, "
                  f"{tensor(self.element, k, n)}) outs(%{name}_init : {out}) -> {out}")


def decoder(args):
    e, f32 = args.type, "f32"
    hidden, heads, kv_heads = args.hidden, args.heads, args.kv_heads
    dim, half, ffn = args.head_dim, args.head_dim // 2, args.ffn
    group = heads // kv_heads
    b = Body(e)

    cache = tensor(e, None, kv_heads, None, dim)
    table = tensor(f32, args.max_positions, half)
    x_type = tensor(e, None, None, hidden)
    rows_e = tensor(e, None, hidden)
    row = tensor(f32, None)

    arguments = [
        ("x", x_type, '{pgkp.dims = ["batch", "seq", ""]}'),
        ("k_cache", cache, '{pgkp.dims = ["batch", "", "kv", ""], pgkp.persistent}'),
        ("v_cache", cache, '{pgkp.dims = ["batch", "", "kv", ""], pgkp.persistent}'),
    ] + [(name, type_, "{pgkp.persistent}") for name, type_ in [
        ("cos", table), ("sin", table),
        ("attn_norm", tensor(e, hidden)),
        ("wq", tensor(e, hidden, heads * dim)),
        ("wk", tensor(e, hidden, kv_heads * dim)),
        ("wv", tensor(e, hidden, kv_heads * dim)),
        ("wo", tensor(e, heads * dim, hidden)),
        ("mlp_norm", tensor(e, hidden)),
        ("w_gate", tensor(e, hidden, ffn)),
        ("w_up", tensor(e, hidden, ffn)),
        ("w_down", tensor(e, ffn, hidden)),
    ]]

    def rms_norm(name, source, weight):
        b.fill(f"{name}_zero", "zero", row, "tokens")
        b.generic(f"{name}_sq", "t c", "pr", [(source, rows_e, "t c", "a")],
                  (f"{name}_zero", row, "t", "acc"), "s",
                  ["%p = arith.mulf %a, %a : f32", "%s = arith.addf %acc, %p : f32"])
        b.empty(f"{name}_out", rows_e, "tokens")
        b.generic(name, "t c", "pp",
                  [(source, rows_e, "t c", "a"), (f"{name}_sq", row, "t", "sq"),
                   (weight, tensor(e, hidden), "c", "w")],
                  (f"{name}_out", rows_e, "t c", None), "r",
                  ["%mean = arith.divf %sq, %hidden : f32",
                   "%biased = arith.addf %mean, %eps : f32",
                   "%scale = math.rsqrt %biased : f32",
                   "%n = arith.mulf %a, %scale : f32",
                   "%r = arith.mulf %n, %w : f32"])

    def add(name, product, residual):
        b.empty(f"{name}_out", rows_e, "tokens")
        b.generic(name, "t c", "pp",
                  [(product, tensor(f32, None, hidden), "t c", "p"),
                   (residual, rows_e, "t c", "a")],
                  (f"{name}_out", rows_e, "t c", None), "r",
                  ["%r = arith.addf %p, %a : f32"])

    def rotate(name, product, n):
        """Rotates each pair (j, j + half) of a head and moves heads before seq."""
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

    b.emit(f"""
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c_kv_heads = arith.constant {kv_heads} : index
%c_group = arith.constant {group} : index
%zero = arith.constant 0.0 : f32
%one = arith.constant 1.0 : f32
%lowest = arith.constant 0xFF800000 : f32
%hidden = arith.constant {float(hidden)} : f32
%eps = arith.constant 1.0e-5 : f32
%qk_scale = arith.constant {dim ** -0.5!r} : f32
// Finite, so that the difference to a row's maximum is never inf - inf.
%masked_out = arith.constant -1.0e30 : f32

%batch = tensor.dim %x, %c0 : {x_type}
%seq = tensor.dim %x, %c1 : {x_type}
%kv = tensor.dim %k_cache, %c2 : {cache}
%tokens = arith.muli %batch, %seq : index
%length = arith.addi %kv, %seq : index
%groups = arith.muli %batch, %c_kv_heads : index
%rows = arith.muli %seq, %c_group : index""")

    b.comment("Attention block.")
    b.emit(f"%x_rows = tensor.collapse_shape %x [[0, 1], [2]] : {x_type} into {rows_e}")
    rms_norm("h", "x_rows", "attn_norm")
    b.matmul("qp", "h", "wq", hidden, heads * dim)
    b.matmul("kp", "h", "wk", hidden, kv_heads * dim)
    b.matmul("vp", "h", "wv", hidden, kv_heads * dim)

    b.comment("Rotary embedding of q and k; the new positions start at kv.")
    for name in ("cos", "sin"):
        b.emit(f"%{name}_now = tensor.extract_slice %{name}[%kv, 0] [%seq, {half}] [1, 1] : "
               f"{table} to {tensor(f32, None, half)}")
    rotate("q", "qp", heads)
    rotate("k_new", "kp", kv_heads)
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
    m4 = tensor(f32, None, group, None)
    p4 = tensor(e, None, group, None, None)
    scores, row_of = "b g i j", "b g i"
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
    b.fill("max_init", "lowest", m4, "groups", "seq")
    b.generic("max", scores, "pppr", [("masked", s4, scores, "a")],
              ("max_init", m4, row_of, "acc"), "r",
              ["%r = arith.maxnumf %acc, %a : f32"])
    b.empty("exp_out", s4, "groups", "seq", "length")
    b.generic("exp", scores, "pppp",
              [("masked", s4, scores, "a"), ("max", m4, row_of, "m")],
              ("exp_out", s4, scores, None), "r",
              ["%d = arith.subf %a, %m : f32", "%r = math.exp %d : f32"])
    b.fill("sum_init", "zero", m4, "groups", "seq")
    b.generic("sum", scores, "pppr", [("exp", s4, scores, "a")],
              ("sum_init", m4, row_of, "acc"), "r",
              ["%r = arith.addf %acc, %a : f32"])
    b.empty("probs_out", p4, "groups", "seq", "length")
    b.generic("probs", scores, "pppp",
              [("exp", s4, scores, "a"), ("sum", m4, row_of, "s")],
              ("probs_out", p4, scores, None), "r",
              ["%r = arith.divf %a, %s : f32"])

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
    b.matmul("op", "heads_rows", "wo", heads * dim, hidden)
    add("x_attn", "op", "x_rows")

    b.comment("SwiGLU block.")
    rms_norm("g", "x_attn", "mlp_norm")
    b.matmul("gate", "g", "w_gate", hidden, ffn)
    b.matmul("up", "g", "w_up", hidden, ffn)
    act = tensor(e, None, ffn)
    wide = tensor(f32, None, ffn)
    b.empty("act_out", act, "tokens")
    b.generic("act", "t c", "pp",
              [("gate", wide, "t c", "a"), ("up", wide, "t c", "u")],
              ("act_out", act, "t c", None), "r",
              ["%n = arith.negf %a : f32", "%x_ = math.exp %n : f32",
               "%d = arith.addf %x_, %one : f32", "%silu = arith.divf %a, %d : f32",
               "%r = arith.mulf %silu, %u : f32"])
    b.matmul("down", "act", "w_down", ffn, hidden)
    add("y_rows", "down", "x_attn")
    b.emit(f"%y = tensor.expand_shape %y_rows [[0, 1], [2]] "
           f"output_shape [%batch, %seq, {hidden}] : {rows_e} into {x_type}")
    b.emit(f"return %y, %k, %v : {x_type}, {cache}, {cache}")

    signature = ",\n".join(f"    %{name}: {type_} {attributes}"
                           for name, type_, attributes in arguments)
    results = (f"{x_type}, {cache} {{pgkp.carries = 1 : i64}}, "
               f"{cache} {{pgkp.carries = 2 : i64}}")
    return f"func.func @decoder(\n{signature})\n    -> ({results}) {{\n" + \
        "\n".join(b.lines) + "\n}\n"


def module(args):
    """The whole file for parse_args() sizes."""
    options = (f"--hidden {args.hidden} --heads {args.heads} --kv-heads {args.kv_heads} "
               f"--head-dim {args.head_dim} --ffn {args.ffn} --type {args.type} "
               f"--max-positions {args.max_positions}")
    return ("// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
            f"// Written by llama_decoder.py {options}\n"
            "// Do not edit. One llama decoder layer. Roots: batch, seq, kv (positions that "
            "the caches hold).\n" + decoder(args))


if __name__ == "__main__":
    sys.stdout.write(module(parse_args()))
