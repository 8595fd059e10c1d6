#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Test vectors for the device code of every kernel of a module.

For each dispatch of the module's entry and each given vector of roots, the kernel's body
is compiled by upstream's loops (mlir-opt: bufferization, linalg to loops, libm) and run on
seeded inputs. That shares nothing with pgkp-codegen-nvvm but the payload.

Usage: kernel_cases.py MODULE DIR --opt PGKP_OPT --llvm BIN_DIR --roots 2,3,5 [--roots ...]
  Writes DIR/cases.json, DIR/KERNEL.ptx, DIR/KERNEL.ll and DIR/NUMBER.npz, which
  run_ptx.py (a GPU) and emulate_kernels.py (the host) read.
"""

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import device_kernels

DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64,
          "index": np.int64, "f16": np.float16, "i8": np.int8, "i1": np.int8}


def run(command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[:2000]}")
    return done.stdout


def closing(text, start):
    """Position after the bracket that closes the one at `start`."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    stack, i = [], start
    while True:
        c = text[i]
        if c == '"':
            i = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, i).end() - 1
        elif c in pairs:
            stack.append(pairs[c])
        elif stack and c == stack[-1]:
            stack.pop()
            if not stack:
                return i + 1
        i += 1


def split(text):
    """Splits at commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "([{<"
        depth -= c in ")]}" or (c == ">" and text[i - 1] != "-")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return parts + [text[start:].strip()] if text.strip() else []


class Payload:
    """One pgkp.kernel: name, argument types, bindings and the text of its body."""

    def __init__(self, module, start):
        head = re.compile(r"pgkp\.kernel private @([\w$.]+)\(").match(module, start)
        self.name = head[1]
        end = closing(module, head.end() - 1)
        args = split(module[head.end():end - 1])
        self.arg_names = [a.split(":", 1)[0].strip() for a in args]
        self.arg_types = [a.split(":", 1)[1].strip() for a in args]
        m = re.compile(r"\s*->\s*").match(module, end)
        if module[m.end()] == "(":
            end = closing(module, m.end())
            self.result_types = split(module[m.end() + 1:end - 1])
        else:
            m = re.compile(r"\S+").match(module, m.end())
            end, self.result_types = m.end(), [m[0]]
        m = re.compile(r"\s*dims\(").match(module, end)
        end = closing(module, m.end() - 1)
        self.dims = split(module[m.end():end - 1])
        m = re.compile(r"\s*args\(").match(module, end)
        end = closing(module, m.end() - 1)
        self.bindings = [split(b.strip()[1:-1]) for b in split(module[m.end():end - 1])]
        m = re.compile(r"\s*attributes\s*").match(module, end)
        if m:
            end = closing(module, m.end())
        start = module.index("{", end)
        self.body = module[start + 1:closing(module, start) - 1]

    def shapes(self, extents):
        value = dict(zip(self.dims, extents))
        return [[value[d] if d in value else int(d) for d in binding]
                for binding in self.bindings]

    def dtype(self, i):
        return DTYPES[re.fullmatch(r"(?:tensor<(?:(?:\d+|\?)x)*)?([a-z]\w*)>?", self.arg_types[i])[1]]

    def function(self):
        args = ", ".join(f"{n}: {t}" for n, t in zip(self.arg_names, self.arg_types))
        body = re.sub(r"pgkp\.return", "return", self.body)
        return (f"func.func @{self.name}({args}) -> ({', '.join(self.result_types)}) "
                f"attributes {{llvm.emit_c_interface}} {{{body}}}\n")


def payloads(module):
    return {p.name: p for p in (Payload(module, m.start()) for m in
                                re.finditer(r"pgkp\.kernel private @", module))}


DECOMPOSE = """
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %f = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %f { transform.apply_patterns.tensor.decompose_concat } : !transform.any_op
    transform.yield
  }
"""

LOOPS = ["--canonicalize",
         "--one-shot-bufferize=bufferize-function-boundaries "
         "function-boundary-type-conversion=identity-layout-map",
         "--convert-linalg-to-loops", "--expand-strided-metadata", "--lower-affine",
         "--convert-scf-to-cf", "--convert-math-to-llvm", "--convert-to-llvm",
         "--reconcile-unrealized-casts"]


def reference_library(module, kernels, folder, llvm):
    """The kernels as host functions, by upstream's passes alone."""
    maps = "\n".join(line for line in module.splitlines() if re.match(r"#map\d* =", line))
    text = (maps + "\nmodule attributes {transform.with_named_sequence} {" + DECOMPOSE +
            "".join(k.function() for k in kernels.values()) + "}")
    opt = os.path.join(llvm, "mlir-opt")
    text = run([opt, "--transform-interpreter"], text)
    start = text.index("transform.named_sequence")
    text = text[:start] + text[closing(text, text.index("{", text.index(")", start))):]
    text = text.replace("attributes {transform.with_named_sequence}", "")
    ir = run([os.path.join(llvm, "mlir-translate"), "--mlir-to-llvmir"], run([opt] + LOOPS, text))
    obj, lib = (os.path.join(folder, "reference" + e) for e in (".o", ".so"))
    run([os.path.join(llvm, "llc"), "-O2", "-relocation-model=pic", "-filetype=obj", "-o", obj], ir)
    libs = os.path.join(llvm, "..", "lib")  # memrefCopy
    run(["cc", "-shared", "-o", lib, obj, "-L" + libs, "-Wl,-rpath," + libs,
         "-lmlir_c_runner_utils", "-lm"])
    return ctypes.CDLL(lib)


def descriptor(array):
    strides, step = [], 1
    for size in reversed(array.shape):
        strides.insert(0, step)
        step *= size
    pointer = array.ctypes.data
    return np.array([pointer, pointer, 0, *array.shape, *strides], np.int64)


def reference(library, kernel, arrays):
    """Runs the host function on copies; returns its results."""
    copies = [a.copy() for a in arrays]
    args, keep = [], []
    for i, array in enumerate(copies):
        if kernel.arg_types[i].startswith("tensor"):
            d = descriptor(array)
            keep.append(d)
            args.append(ctypes.c_void_p(d.ctypes.data))
        elif array.dtype == np.float32:
            args.append(ctypes.c_float(array.item()))
        elif array.dtype == np.float64:
            args.append(ctypes.c_double(array.item()))
        else:
            args.append(ctypes.c_int64(array.item()))
    first = len(copies) - len(kernel.result_types)
    ranks = [copies[first + r].ndim for r in range(len(kernel.result_types))]
    result = np.zeros(sum(3 + 2 * r for r in ranks), np.int64)
    getattr(library, "_mlir_ciface_" + kernel.name)(
        ctypes.c_void_p(result.ctypes.data), *args)
    outputs, at = [], 0
    for r, rank in enumerate(ranks):
        d = result[at:at + 3 + 2 * rank]
        at += 3 + 2 * rank
        shape = tuple(int(s) for s in d[3:3 + rank])
        dtype = copies[first + r].dtype
        count = int(np.prod(shape, dtype=np.int64))
        raw = (ctypes.c_char * (count * dtype.itemsize)).from_address(int(d[1]) + int(d[2]) * dtype.itemsize) if count else b""
        outputs.append(np.frombuffer(bytes(raw), dtype).reshape(shape).copy())
    return outputs


def dispatches(module, roots):
    """(kernel, extents) of every dispatch of the first entry, for these root values."""
    start = re.search(r"func\.func (?:public )?@(\w+)\(", module)
    end = closing(module, start.end() - 1)
    args = split(module[start.end():end - 1])
    order, sizes = [], {}
    for arg in args:
        m = re.search(r"pgkp\.dims = \[(.*?)\]", arg)
        if not m:
            continue
        for d, name in enumerate(re.findall(r'"([^"]*)"', m[1])):
            if name:
                if name not in order:
                    order.append(name)
                sizes[arg.split(":")[0].strip(), d] = name
    if len(order) != len(roots):
        raise ValueError(f"the entry has the roots {order}; {len(roots)} values were given")
    root_values = dict(zip(order, roots))
    line_end = module.index("\n", end)
    body = module[line_end:]
    value, found = {}, []
    for line in body.splitlines():
        line = line.strip()
        if line.startswith("}"):
            break
        m = re.match(r"(%[\w#]+) = arith\.constant (-?\d+) : index", line)
        if m:
            value[m[1]] = int(m[2])
            continue
        m = re.match(r"(%\w+) = tensor\.dim (%\w+), (%\w+)", line)
        if m and (m[2], value.get(m[3])) in sizes:
            value[m[1]] = root_values[sizes[m[2], value[m[3]]]]
            continue
        m = re.match(r"(%\w+) = arith\.(addi|muli|subi|divui|divsi|ceildivui) (%\w+), (%\w+)", line)
        if m and m[3] in value and m[4] in value:
            a, b = value[m[3]], value[m[4]]
            value[m[1]] = {"addi": a + b, "muli": a * b, "subi": a - b}.get(m[2])
            if value[m[1]] is None:
                value[m[1]] = -(-a // b) if m[2] == "ceildivui" else a // b
            continue
        m = re.search(r"pgkp\.dispatch @([\w$.]+)\[(.*?)\]", line)
        if m:
            found.append((m[1], [value[e] for e in split(m[2])]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("module")
    parser.add_argument("folder")
    parser.add_argument("--opt", required=True)
    parser.add_argument("--llvm", required=True)
    parser.add_argument("--chip", default="sm_90")
    parser.add_argument("--roots", action="append", required=True)
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    prepared = run([args.opt, args.module, "--pgkp-outline-kernels", "--cse"])
    kernels = payloads(prepared)
    library = reference_library(prepared, kernels, args.folder, args.llvm)
    codegen = f"--pgkp-codegen-nvvm=chip={args.chip}"
    device = {}
    for kind, extension in (("ptx", "ptx"), ("llvm", "ll")):
        text = run([args.opt, "-", codegen, f"--pgkp-nvvm-to-ptx=format={kind}"], prepared)
        for k in device_kernels.read_kernels(text):
            name = k.name.removesuffix("_" + args.chip)
            with open(os.path.join(args.folder, f"{name}.{extension}"), "w") as f:
                f.write(k.text)
            device[name] = k
    rng = np.random.default_rng(7)
    cases, seen = [], set()
    for roots in args.roots:
        for name, extents in dispatches(prepared, [int(r) for r in roots.split(",")]):
            if (name, tuple(extents)) in seen:
                continue
            seen.add((name, tuple(extents)))
            kernel, code = kernels[name], device[name]
            arrays = []
            for i, shape in enumerate(kernel.shapes(extents)):
                dtype = kernel.dtype(i)
                arrays.append(rng.standard_normal(shape).astype(dtype)
                              if np.issubdtype(dtype, np.floating)
                              else rng.integers(0, 2, shape).astype(dtype))
            expected = reference(library, kernel, arrays)
            number = len(cases)
            np.savez(os.path.join(args.folder, f"{number}.npz"),
                     **{f"arg{i}": a for i, a in enumerate(arrays)},
                     **{f"result{i}": a for i, a in enumerate(expected)})
            cases.append({"kernel": name, "symbol": code.symbol, "extents": extents,
                          "grid": device_kernels.evaluate(code.grid[0], extents),
                          "block": code.block[0], "params": code.params,
                          "shared": code.shared,
                          "args": len(arrays), "results": len(expected), "data": f"{number}.npz"})
    with open(os.path.join(args.folder, "cases.json"), "w") as f:
        json.dump(cases, f, indent=1)
    print(f"{len(cases)} cases of {len(kernels)} kernels")
    return 0 if {c["kernel"] for c in cases} == set(kernels) else 1


if __name__ == "__main__":
    sys.exit(main())
