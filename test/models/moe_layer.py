#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints one top-2 mixture-of-experts layer as MLIR: RMSNorm, router, experts with SwiGLU, a weighted
sum over each token's two experts, residual.

The defaults print the checked-in moe_layer.mlir, which keeps the proportions of the
recorded model (hidden 512, 8 experts, ffn 1024). Roots: batch, seq; tokens per expert
follow from the router, so each expert's products have an extent that only data tells.

Tokens are grouped by expert: a token's place is the number of tokens before it with the
same expert, plus the experts before. Experts gather their tokens, and the sum gathers the
experts' rows; nothing is written twice, so no order of addition is left open.
"""

import argparse
import sys

import llama_decoder
import mlir_text
from mlir_text import Body, tensor


def parse_args(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--experts", type=int, default=8)
    parser.add_argument("--ffn", type=int, default=128)
    parser.add_argument("--type", choices=["f32", "bf16"], default="f32")
    args = parser.parse_args(argv)
    if min(args.hidden, args.ffn) < 1 or args.experts < 2:
        parser.error("sizes must be positive, experts at least 2")
    return args


def weight_shapes(args):
    """The layer's weights in the order of its arguments: name -> shape."""
    shapes = {"norm": (args.hidden,), "router": (args.hidden, args.experts)}
    for i in range(args.experts):
        # Gate and up projection stand side by side.
        shapes[f"w_in_{i}"] = (args.hidden, 2 * args.ffn)
        shapes[f"w_out_{i}"] = (args.ffn, args.hidden)
    return shapes


def route(b, args):
    """%first, %second: each token's experts (i32); %gate1, %gate2: their weights."""
    e = args.experts
    logits, number, value = tensor("f32", None, e), tensor("i32", None), tensor("f32", None)
    b.comment("The two largest logits of each token, the lower expert first where they are "
              "equal, and softmax over the two.")
    masked = ["%me = linalg.index 1 : index", "%me32 = arith.index_cast %me : index to i32",
              "%taken = arith.cmpi eq, %me32, %i : i32"]
    picks = [("first", "top1", [], []),
             ("second", "top2", [("first", number, "t", "i")], masked)]
    b.fill("top_init", "lowest", value, "tokens")
    b.fill("index_init", "n_experts", number, "tokens")
    for name, top, known, mask in picks:
        candidate = "%v" if mask else "%a"
        select = ["%v = arith.select %taken, %lowest, %a : f32"] if mask else []
        b.generic(top, "t e", "pr", [("logits", logits, "t e", "a"), *known],
                  ("top_init", value, "t", "acc"), "r",
                  mask + select + [f"%r = arith.maxnumf %acc, {candidate} : f32"])
        where = mask or ["%me = linalg.index 1 : index",
                         "%me32 = arith.index_cast %me : index to i32"]
        hit = ["%free = arith.xori %taken, %true : i1",
               "%equal = arith.cmpf oeq, %a, %m : f32",
               "%hit = arith.andi %free, %equal : i1"] if mask else \
            ["%hit = arith.cmpf oeq, %a, %m : f32"]
        b.generic(name, "t e", "pr",
                  [("logits", logits, "t e", "a"), (top, value, "t", "m"), *known],
                  ("index_init", number, "t", "acc"), "r",
                  where + hit + ["%o = arith.select %hit, %me32, %n_experts : i32",
                                 "%r = arith.minsi %acc, %o : i32"])
    for name, lines in (("gate1", ["%r = arith.divf %one, %y : f32"]),
                        ("gate2", ["%r = arith.divf %x_, %y : f32"])):
        b.empty(f"{name}_out", value, "tokens")
        b.generic(name, "t", "p", [("top1", value, "t", "m"), ("top2", value, "t", "n")],
                  (f"{name}_out", value, "t", None), "r",
                  ["%d = arith.subf %n, %m : f32", "%x_ = math.exp %d : f32",
                   "%y = arith.addf %x_, %one : f32"] + lines)


def place(b, args):
    """%place1, %place2: each token's rows among all experts' tokens; %token_of: the inverse;
    %n_0 ...: tokens of each expert, %offset_0 ...: where they start."""
    number, per_expert = tensor("i32", None), tensor("i32", args.experts)
    b.comment("Where each token stands among the tokens grouped by expert.")
    chosen = ["%me = linalg.index 0 : index", "%me32 = arith.index_cast %me : index to i32",
              "%is1 = arith.cmpi eq, %i, %me32 : i32", "%is2 = arith.cmpi eq, %j, %me32 : i32",
              "%is = arith.ori %is1, %is2 : i1", "%n = arith.extui %is : i1 to i32",
              "%r = arith.addi %acc, %n : i32"]
    b.fill("counts_init", "zero_i32", per_expert)
    b.generic("counts", "e t", "pr",
              [("first", number, "t", "i"), ("second", number, "t", "j")],
              ("counts_init", per_expert, "e", "acc"), "r", chosen)
    b.generic("offsets", "e f", "pr", [("counts", per_expert, "f", "i")],
              ("counts_init", per_expert, "e", "acc"), "r",
              ["%me = linalg.index 0 : index", "%you = linalg.index 1 : index",
               "%before = arith.cmpi ult, %you, %me : index",
               "%n = arith.select %before, %i, %zero_i32 : i32", "%r = arith.addi %acc, %n : i32"])
    b.fill("rank_init", "zero_i32", number, "tokens")
    for n, mine in ((1, "first"), (2, "second")):
        b.generic(f"rank{n}", "t u", "pr",
                  [(mine, number, "t", "me"), ("first", number, "u", "i"),
                   ("second", number, "u", "j")],
                  ("rank_init", number, "t", "acc"), "r",
                  ["%at = linalg.index 0 : index", "%other = linalg.index 1 : index",
                   "%before = arith.cmpi ult, %other, %at : index",
                   "%is1 = arith.cmpi eq, %i, %me : i32", "%is2 = arith.cmpi eq, %j, %me : i32",
                   "%is = arith.ori %is1, %is2 : i1", "%counts_ = arith.andi %is, %before : i1",
                   "%n = arith.extui %counts_ : i1 to i32", "%r = arith.addi %acc, %n : i32"])
        b.empty(f"place{n}_out", number, "tokens")
        b.generic(f"place{n}", "t", "p", [(f"rank{n}", number, "t", "k"), (mine, number, "t", "i")],
                  (f"place{n}_out", number, "t", None), "r",
                  ["%me = arith.index_cast %i : i32 to index",
                   f"%start = tensor.extract %offsets[%me] : {per_expert}",
                   "%r = arith.addi %k, %start : i32"])
    b.fill("token_init", "zero_i32", number, "slots")
    b.generic("token_of", "p t", "pr",
              [("place1", number, "t", "i"), ("place2", number, "t", "j")],
              ("token_init", number, "p", "acc"), "r",
              ["%me = linalg.index 0 : index", "%me32 = arith.index_cast %me : index to i32",
               "%token = linalg.index 1 : index", "%t32 = arith.index_cast %token : index to i32",
               "%is1 = arith.cmpi eq, %i, %me32 : i32", "%is2 = arith.cmpi eq, %j, %me32 : i32",
               "%is = arith.ori %is1, %is2 : i1", "%n = arith.select %is, %t32, %zero_i32 : i32",
               "%r = arith.addi %acc, %n : i32"])
    for i in range(args.experts):
        b.emit(f"""%expert_{i} = arith.constant {i} : index
%n_{i}_ = tensor.extract %counts[%expert_{i}] : {per_expert}
%n_{i} = arith.index_cast %n_{i}_ : i32 to index
%offset_{i}_ = tensor.extract %offsets[%expert_{i}] : {per_expert}
%offset_{i} = arith.index_cast %offset_{i}_ : i32 to index""")


def expert(b, args, i):
    """%y_i [n_i, hidden]: expert i's answer for its tokens."""
    e, rows = args.type, f"n_{i}"
    hidden, ffn = tensor(e, None, args.hidden), args.ffn
    b.comment(f"Expert {i}.")
    b.empty(f"x_{i}_out", hidden, rows)
    b.emit(f"""%x_{i} = linalg.generic {{
    indexing_maps = [{mlir_text.affine_map("j c", "j c")}],
    iterator_types = ["parallel", "parallel"]}}
    outs(%x_{i}_out : {hidden}) {{
  ^bb0(%_: {e}):
    %j = linalg.index 0 : index
    %c = linalg.index 1 : index
    %at = arith.addi %j, %offset_{i} : index
    %t32 = tensor.extract %token_of[%at] : {tensor("i32", None)}
    %t = arith.index_cast %t32 : i32 to index
    %v = tensor.extract %h[%t, %c] : {hidden}
    linalg.yield %v : {e}
}} -> {hidden}""")
    b.matmul(f"up_{i}", f"x_{i}", f"w_in_{i}", args.hidden, 2 * ffn, rows)
    for name, offset in (("gate", 0), ("lift", ffn)):
        b.emit(f"%{name}_{i} = tensor.extract_slice %up_{i}[0, {offset}] [%{rows}, {ffn}] [1, 1] : "
               f"{tensor('f32', None, 2 * ffn)} to {tensor('f32', None, ffn)}")
    llama_decoder.swiglu(b, f"act_{i}", f"gate_{i}", f"lift_{i}", ffn, rows)
    b.matmul(f"y_{i}", f"act_{i}", f"w_out_{i}", ffn, args.hidden, rows)


def moe(args):
    e, hidden = args.type, args.hidden
    b = Body(e)
    x_type, rows = tensor(e, None, None, hidden), tensor(e, None, hidden)
    wide, number, value = tensor("f32", None, hidden), tensor("i32", None), tensor("f32", None)
    arguments = [("x", x_type, '{pgkp.dims = ["batch", "seq", ""]}')]
    arguments += [(name, tensor(e, *shape), "{pgkp.persistent}")
                  for name, shape in weight_shapes(args).items()]
    b.emit(f"""
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%true = arith.constant true
%zero_i32 = arith.constant 0 : i32
%n_experts = arith.constant {args.experts} : i32
%zero = arith.constant 0.0 : f32
%one = arith.constant 1.0 : f32
%lowest = arith.constant 0xFF800000 : f32
%hidden = arith.constant {float(hidden)} : f32
%eps = arith.constant 1.0e-5 : f32

%batch = tensor.dim %x, %c0 : {x_type}
%seq = tensor.dim %x, %c1 : {x_type}
%tokens = arith.muli %batch, %seq : index
%slots = arith.muli %tokens, %c2 : index
%x_rows = tensor.collapse_shape %x [[0, 1], [2]] : {x_type} into {rows}""")
    b.rms_norm("h", "x_rows", "norm", hidden)
    b.matmul("logits", "h", "router", hidden, args.experts)
    route(b, args)
    place(b, args)
    for i in range(args.experts):
        expert(b, args, i)
    b.comment("Each token's sum over its two experts.")
    names = [f"%y_{i}" for i in range(args.experts)]
    b.emit(f"%grouped = tensor.concat dim(0) {', '.join(names)} : "
           f"({', '.join([wide] * len(names))}) -> {wide}")
    b.empty("y_rows_out", rows, "tokens")
    b.generic("y_rows", "t c", "pp",
              [("x_rows", rows, "t c", "old"), ("place1", number, "t", "p1"),
               ("place2", number, "t", "p2"), ("gate1", value, "t", "g1"),
               ("gate2", value, "t", "g2")],
              ("y_rows_out", rows, "t c", None), "r",
              ["%c = linalg.index 1 : index", "%at1 = arith.index_cast %p1 : i32 to index",
               "%at2 = arith.index_cast %p2 : i32 to index",
               f"%v1 = tensor.extract %grouped[%at1, %c] : {wide}",
               f"%v2 = tensor.extract %grouped[%at2, %c] : {wide}",
               "%u1 = arith.mulf %v1, %g1 : f32", "%u2 = arith.mulf %v2, %g2 : f32",
               "%u = arith.addf %u1, %u2 : f32", "%r = arith.addf %old, %u : f32"])
    b.emit(f"%y = tensor.expand_shape %y_rows [[0, 1], [2]] output_shape [%batch, %seq, {hidden}] : "
           f"{rows} into {x_type}")
    b.emit(f"return %y : {x_type}")
    return mlir_text.function("moe", arguments, [(x_type, "")], b.lines)


def module(args):
    flags = f"--hidden {args.hidden} --experts {args.experts} --ffn {args.ffn} --type {args.type}"
    return mlir_text.file("moe_layer.py", flags, "One top-2 mixture-of-experts layer. Roots: "
                          "batch, seq; tokens per expert follow from the data.", moe(args))


if __name__ == "__main__":
    sys.stdout.write(module(parse_args()))
