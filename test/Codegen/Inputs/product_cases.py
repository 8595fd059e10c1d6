#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Test vectors for device code of matrix products: every layout, element type and ragged edge.

Kernels are written here from a product in the notation of einsum and compared with einsum in
float64 on the rounded inputs.

Usage: product_cases.py DIR --opt PGKP_OPT [--only NAME] [--chip CHIP]
  Writes DIR/cases.json, DIR/KERNEL.ptx, DIR/KERNEL.ll and DIR/NUMBER.npz, which
  run_ptx.py (a GPU) and emulate_kernels.py (the host) read.
"""

import argparse
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import device_kernels
from kernel_cases import run

SMALL = "family = \"mma\", bm = 16, bn = 32, bk = 32, wm = 16, wn = 16, stages = 3"

# name: (product, element type, result type, static sizes, epilogue, configuration, extents).
# Extents are in the order of the letters that have no static size.
KERNELS = {
    # By rules; K and N whole, then ragged, then rows that no chunk starts at.
    "bf16": ("mk,kn->mn", "bf16", "bf16", {"k": 128, "n": 64}, False, "",
             [(1,), (17,), (65,)]),
    "f16_epilogue": ("mk,kn->mn", "f16", "f16", {"k": 72, "n": 40}, True, "", [(7,), (70,)]),
    "bf16_odd": ("mk,kn->mn", "bf16", "f32", {"k": 37, "n": 27}, True, "", [(5,), (66,)]),
    "bf16_dynamic": ("mk,kn->mn", "bf16", "bf16", {}, True, SMALL,
                     [(3, 64, 48), (20, 33, 40), (16, 40, 33), (0, 8, 8), (4, 0, 8)]),
    # Scores and values of attention: keys along the depth, rows of any length.
    "scores": ("bmk,bnk->bmn", "bf16", "f32", {"k": 16}, False, SMALL,
               [(2, 5, 35), (3, 20, 32)]),
    "values": ("bmk,bkn->bmn", "bf16", "bf16", {"n": 16}, False, SMALL,
               [(2, 5, 35), (2, 18, 40)]),
    # Grouped queries: two row dimensions against one key head.
    "grouped": ("bhgmk,bhnk->bhgmn", "f16", "f32", {"h": 2, "g": 3, "k": 16}, False, SMALL,
                [(2, 7, 33), (1, 1, 5)]),
    # The left operand with its rows innermost.
    "left_columns": ("km,kn->mn", "bf16", "f32", {"n": 48}, False, SMALL, [(40, 24), (17, 9)]),
    "f32": ("mk,kn->mn", "f32", "f32", {"k": 64, "n": 64}, True, "", [(1,), (33,), (64,)]),
    "f32_ragged": ("mk,kn->mn", "f32", "f32", {}, False,
                   "family = \"mma\", bm = 16, bn = 64, bk = 16, wm = 16, wn = 32, stages = 2",
                   [(3, 17, 70), (18, 20, 64)]),
    "f32_scores": ("bmk,bnk->bmn", "f32", "f32", {"k": 20}, False, "", [(2, 5, 37)]),
    "f32_left_columns": ("km,kn->mn", "f32", "f32", {"n": 32}, False, "", [(20, 24), (9, 5)]),
    "tf32": ("mk,kn->mn", "f32", "f32", {}, False, SMALL + ", math = \"tf32\"",
             [(17, 36, 40), (5, 13, 33)]),
    "tf32_scores": ("bmk,bnk->bmn", "f32", "f32", {"k": 16}, False, SMALL + ", math = \"tf32\"",
                    [(2, 18, 36)]),
}


def kernel_text(name, spec):
    product, type_, out_type, static, epilogue, _, _ = spec
    inputs, result = product.split("->")
    left, right = inputs.split(",")
    loops = result + "k"
    letters = [c for c in dict.fromkeys(left + right) if c not in static]

    def tensor(dims, element):
        return "tensor<" + "".join(f"{static.get(c, '?')}x" for c in dims) + element + ">"

    def amap(dims):
        return f"affine_map<({', '.join(loops)}) -> ({', '.join(dims)})>"

    def emap(dims):
        return f"affine_map<({', '.join(result)}) -> ({', '.join(dims)})>"

    args = [("a", left, type_), ("b", right, type_)]
    if epilogue:
        args += [("bias", result[-1], "f32"), ("residual", result, type_)]
    args.append(("o", result, out_type))
    text = (f"pgkp.kernel private @{name}(" +
            ", ".join(f"%{n}: {tensor(d, t)}" for n, d, t in args) +
            f") -> ({tensor(result, out_type)}) dims({', '.join(letters)}) args(" +
            ", ".join("[" + ", ".join(str(static.get(c, c)) for c in d) + "]"
                      for _, d, _ in args) + ") {\n"
            "  %zero = arith.constant 0.0 : f32\n")
    sizes = []
    for i, c in enumerate(result):
        if c not in static:
            text += (f"  %c{i} = arith.constant {i} : index\n"
                     f"  %d{i} = tensor.dim %o, %c{i} : {tensor(result, out_type)}\n")
            sizes.append(f"%d{i}")
    sum_type, a, b = tensor(result, "f32"), "%x", "%y"
    kinds = ", ".join(["\"parallel\""] * len(result) + ["\"reduction\""])
    text += (f"  %e = tensor.empty({', '.join(sizes)}) : {sum_type}\n"
             f"  %i = linalg.fill ins(%zero : f32) outs(%e : {sum_type}) -> {sum_type}\n"
             f"  %p = linalg.generic {{indexing_maps = [{amap(left)}, {amap(right)}, "
             f"{amap(result)}], iterator_types = [{kinds}]}} "
             f"ins(%a, %b : {tensor(left, type_)}, {tensor(right, type_)}) "
             f"outs(%i : {sum_type}) {{\n  ^bb0(%x: {type_}, %y: {type_}, %acc: f32):\n")
    if type_ != "f32":
        text += (f"    %xw = arith.extf %x : {type_} to f32\n"
                 f"    %yw = arith.extf %y : {type_} to f32\n")
        a, b = "%xw", "%yw"
    text += (f"    %m = arith.mulf {a}, {b} : f32\n    %s = arith.addf %acc, %m : f32\n"
             f"    linalg.yield %s : f32\n  }} -> {sum_type}\n")
    more, names, blocks, last = "", "%p", "%v: f32", "%v"
    types, maps = sum_type, emap(result)
    if epilogue:
        names += ", %bias, %residual"
        types += f", {tensor(result[-1], 'f32')}, {tensor(result, type_)}"
        maps += f", {emap(result[-1])}, {emap(result)}"
        blocks += f", %q: f32, %r: {type_}"
        wide = "%r"
        if type_ != "f32":
            more += f"    %rw = arith.extf %r : {type_} to f32\n"
            wide = "%rw"
        more += f"    %t = arith.addf %v, %q : f32\n    %u = arith.mulf %t, {wide} : f32\n"
        last = "%u"
    if out_type != "f32":
        more += f"    %w = arith.truncf {last} : f32 to {out_type}\n"
        last = "%w"
    kinds = ", ".join(["\"parallel\""] * len(result))
    out = tensor(result, out_type)
    return text + (f"  %f = linalg.generic {{indexing_maps = [{maps}, {emap(result)}], "
                   f"iterator_types = [{kinds}]}} ins({names} : {types}) outs(%o : {out}) {{\n"
                   f"  ^bb0({blocks}, %old: {out_type}):\n{more}    linalg.yield {last} : "
                   f"{out_type}\n  }} -> {out}\n  pgkp.return %f : {out}\n}}\n")


def to_bits(values, type_):
    """Rounded to the type; bf16 as its bits."""
    if type_ == "bf16":
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return values.astype({"f16": np.float16, "f32": np.float32}[type_])


def to_double(array, type_):
    if type_ == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--opt", required=True)
    parser.add_argument("--only")
    parser.add_argument("--chip", default="sm_90")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    rng = np.random.default_rng(11)
    cases = []
    for name, spec in KERNELS.items():
        if args.only and name not in args.only.split(","):
            continue
        product, type_, out_type, static, epilogue, config, extents_list = spec
        inputs, result = product.split("->")
        left, right = inputs.split(",")
        letters = [c for c in dict.fromkeys(left + right) if c not in static]
        text = kernel_text(name, spec)
        options = f"chip={args.chip}" + (f" config={{{config}}}" if config else "")
        for kind, extension in (("ptx", "ptx"), ("llvm", "ll")):
            printed = run([args.opt, "-", f"--pgkp-codegen-nvvm={options}",
                           f"--pgkp-nvvm-to-ptx=format={kind}"], text)
            code = device_kernels.read_kernels(printed)[0]
            with open(os.path.join(args.folder, f"{name}.{extension}"), "w") as f:
                f.write(code.text)
        for extents in extents_list:
            size = dict(static, **dict(zip(letters, extents)))
            shape = {d: [size[c] for c in d] for d in (left, right, result, result[-1])}
            types = [type_, type_] + (["f32", type_] if epilogue else []) + [out_type]
            dims = [left, right] + ([result[-1], result] if epilogue else []) + [result]
            arrays = [to_bits(rng.standard_normal(shape[d]), t) for d, t in zip(dims, types)]
            wide = [to_double(a, t) for a, t in zip(arrays, types)]
            want = np.einsum(product, wide[0], wide[1])
            if epilogue:
                want = (want + wide[2]) * wide[3]
            want = to_double(to_bits(want, out_type), out_type).astype(np.float32)
            number = len(cases)
            np.savez(os.path.join(args.folder, f"{number}.npz"), result0=want,
                     **{f"arg{i}": a for i, a in enumerate(arrays)})
            cases.append({"kernel": name, "symbol": code.symbol, "extents": extents,
                          "grid": device_kernels.evaluate(code.grid[0], extents),
                          "block": code.block[0], "shared": code.shared, "params": code.params,
                          "args": len(arrays), "results": 1, "types": types,
                          "precision": "tf32" if "tf32" in config else out_type,
                          "data": f"{number}.npz"})
    with open(os.path.join(args.folder, "cases.json"), "w") as f:
        json.dump(cases, f, indent=1)
    print(f"{len(cases)} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
