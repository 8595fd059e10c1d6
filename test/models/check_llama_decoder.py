#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executes llama_decoder.mlir through upstream MLIR alone and compares it with
llama_decoder_ref.py: the checked-in file, and generated ones with other sizes and bf16.

Exits 1 on a mismatch and 2 where a tool is missing. Needs numpy, gcc and LLVM 22.
"""

import argparse
import ctypes
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

import llama_decoder
import llama_decoder_ref as ref

HERE = os.path.dirname(os.path.abspath(__file__))

# |got - want| <= tolerance * (1 + |want|), values being of order one. f32: products of up
# to 176 terms and rotary angles rounded to 24 bits. bf16: eight bits, rounded at eight
# points between input and output.
TOLERANCE = {"f32": 1e-5, "bf16": 3e-2}

LOWER = """-convert-linalg-to-loops -convert-scf-to-cf -expand-strided-metadata -lower-affine
-arith-expand=include-bf16=true -convert-math-to-llvm -convert-arith-to-llvm
-finalize-memref-to-llvm -convert-func-to-llvm -convert-cf-to-llvm
-reconcile-unrealized-casts""".split()


def run(command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {os.path.basename(command[0])} failed: {done.stderr[:2000]}")
    return done.stdout


def resolve_expand_shape(text):
    """Replaces memref.expand_shape by memref.reinterpret_cast.

    -expand-strided-metadata of LLVM 22 crashes on a group with two dynamic dimensions
    (tokens into batch and seq). All sources here have the identity layout.
    """
    pattern = re.compile(r"^( *)(%\w+) = memref\.expand_shape (%\w+) \[\[.*\]\] output_shape "
                         r"\[(.*)\] : (\S+) into (\S+)$", re.M)

    def replace(match):
        indent, result, source, sizes, source_type, result_type = match.groups()
        if "strided" in source_type:
            sys.exit(f"error: expand_shape of {source_type}: expected an identity layout")
        sizes = sizes.split(", ")
        lines, strides, stride = [], [], "1"
        for n, size in reversed(list(enumerate(sizes))):
            strides.insert(0, stride)
            if n == 0:
                break
            if size.isdigit() and stride.isdigit():
                stride = str(int(size) * int(stride))
                continue
            operands = []
            for value in (size, stride):
                if value.isdigit():
                    name = f"{result}_c{n}_{value}"
                    lines.append(f"{indent}{name} = arith.constant {value} : index")
                    value = name
                operands.append(value)
            stride = f"{result}_s{n}"
            lines.append(f"{indent}{stride} = arith.muli {', '.join(operands)} : index")
        # The result type says ? only where the stride is unknown, as the identity layout does.
        static = ", ".join("?" if s.startswith("%") else s for s in strides)
        cast_type = result_type[:-1] + f", strided<[{static}]>>"
        lines.append(f"{indent}{result}_r = memref.reinterpret_cast {source} to offset: [0], "
                     f"sizes: [{', '.join(sizes)}], strides: [{', '.join(strides)}] : "
                     f"{source_type} to {cast_type}")
        lines.append(f"{indent}{result} = memref.cast {result}_r : {cast_type} to {result_type}")
        return "\n".join(lines)

    return pattern.sub(replace, text)


def build(module, directory, bin_dir):
    """Lowers MLIR text to a loaded shared object."""
    tool = lambda name: os.path.join(bin_dir, name)  # noqa: E731
    # The annotations are of a dialect that upstream tools do not know.
    module = re.sub(r" \{pgkp\.[^}]*\}", "", module)
    bufferized = run([tool("mlir-opt"), "-llvm-request-c-wrappers",
                      "-one-shot-bufferize=bufferize-function-boundaries "
                      "function-boundary-type-conversion=identity-layout-map"], module)
    lowered = run([tool("mlir-opt")] + LOWER, resolve_expand_shape(bufferized))
    llvm_ir = run([tool("mlir-translate"), "--mlir-to-llvmir"], lowered)
    stem = os.path.join(directory, f"m{len(os.listdir(directory))}")
    with open(stem + ".ll", "w") as out:
        out.write(llvm_ir)
    run([tool("llc"), "-O2", "--relocation-model=pic", "--filetype=obj", stem + ".ll",
         "-o", stem + ".o"])
    libraries = os.path.join(os.path.dirname(os.path.abspath(bin_dir)), "lib")
    run(["gcc", "-shared", stem + ".o", "-o", stem + ".so", "-L" + libraries,
         "-Wl,-rpath," + libraries, "-lmlir_c_runner_utils", "-lm"])
    return ctypes.CDLL(stem + ".so")


def descriptor_type(rank):
    class Descriptor(ctypes.Structure):
        _fields_ = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p),
                    ("offset", ctypes.c_int64), ("sizes", ctypes.c_int64 * rank),
                    ("strides", ctypes.c_int64 * rank)]
    return Descriptor


def to_descriptor(array):
    d = descriptor_type(array.ndim)()
    d.allocated = d.aligned = array.ctypes.data
    d.sizes[:] = array.shape
    d.strides[:] = [s // array.itemsize for s in array.strides]
    return d


def from_descriptor(d, dtype):
    shape = list(d.sizes)
    if list(d.strides) != [int(np.prod(shape[i + 1:])) for i in range(len(shape))]:
        sys.exit("error: a result does not have the identity layout")
    count = int(np.prod(shape))
    raw = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(
        d.aligned + d.offset * np.dtype(dtype).itemsize)
    return np.frombuffer(raw, dtype).reshape(shape).copy()


def to_bf16(array):
    """Bits of the nearest bf16, ties to even."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


class Model:
    """One module with its weights; values cross in float64, stored as the element type."""

    def __init__(self, module, args, directory, bin_dir, rng):
        self.args = args
        self.entry = build(module, directory, bin_dir)._mlir_ciface_decoder
        self.store = to_bf16 if args.type == "bf16" else lambda a: np.ascontiguousarray(
            a, np.float32)
        self.load = from_bf16 if args.type == "bf16" else lambda a: a
        angles = ref.rotary_angles(np.arange(args.max_positions), args.head_dim)
        self.tables = [np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)]
        q, kv = args.heads * args.head_dim, args.kv_heads * args.head_dim
        shapes = {"attn_norm": (args.hidden,), "wq": (args.hidden, q),
                  "wk": (args.hidden, kv), "wv": (args.hidden, kv), "wo": (q, args.hidden),
                  "mlp_norm": (args.hidden,), "w_gate": (args.hidden, args.ffn),
                  "w_up": (args.hidden, args.ffn), "w_down": (args.ffn, args.hidden)}
        self.weights = {}
        for name, shape in shapes.items():
            value = rng.standard_normal(shape)
            value = 1 + 0.2 * value if len(shape) == 1 else value / np.sqrt(shape[0])
            self.weights[name] = self.round(value)

    def round(self, array):
        return self.load(self.store(array)).astype(np.float64)

    def __call__(self, x, k_cache, v_cache):
        inputs = [self.store(a) for a in (x, k_cache, v_cache)] + self.tables + \
            [self.store(a) for a in self.weights.values()]

        class Results(ctypes.Structure):
            _fields_ = [("y", descriptor_type(3)), ("k", descriptor_type(4)),
                        ("v", descriptor_type(4))]
        results = Results()
        descriptors = [to_descriptor(a) for a in inputs]
        self.entry(ctypes.byref(results), *[ctypes.byref(d) for d in descriptors])
        dtype = inputs[0].dtype
        return [self.load(from_descriptor(d, dtype)).astype(np.float64)
                for d in (results.y, results.k, results.v)]


class Comparison:
    def __init__(self, tolerance):
        self.tolerance, self.worst, self.failed = tolerance, 0.0, 0

    def __call__(self, what, got, want):
        for name, g, w in zip(("y", "k", "v"), got, want):
            if g.shape != w.shape:
                print(f"FAIL {what} {name}: shape {g.shape}, expected {w.shape}")
                self.failed += 1
                continue
            error = float(np.max(np.abs(g - w) / (1 + np.abs(w))))
            self.worst = max(self.worst, error) if error == error else float("nan")
            if not error <= self.tolerance:  # a NaN fails too
                print(f"FAIL {what} {name}: error {error:.3g}, tolerance {self.tolerance}")
                self.failed += 1


def check(label, module, args, count, rng, directory, bin_dir):
    model = Model(module, args, directory, bin_dir, rng)
    compare = Comparison(TOLERANCE[args.type])
    # The last two are the largest of llama_decoder.requests.csv.
    extents = [(1, 1, 0), (1, 7, 0), (4, 1, 33), (3, 5, 0), (2, 1, 1), (2, 17, 13),
               (4, 256, 0), (4, 1, 279)]
    while len(extents) < count:
        seq = 1 if rng.random() < 0.4 else int(rng.integers(1, 41))
        kv = 0 if rng.random() < 0.3 else int(rng.integers(1, 71))
        extents.append((int(rng.integers(1, 5)), seq, kv))
    for batch, seq, kv in extents[:count]:
        cache = (batch, args.kv_heads, kv, args.head_dim)
        x = model.round(rng.standard_normal((batch, seq, args.hidden)))
        k, v = (model.round(rng.standard_normal(cache)) for _ in range(2))
        compare(f"{label} batch={batch} seq={seq} kv={kv}", model(x, k, v),
                ref.decoder_layer(x, k, v, model.weights, args.heads))

    # A prefill and steps over the carried caches give what one forward over all gives.
    batch, prefill, steps = 2, 6, 4
    x = model.round(rng.standard_normal((batch, prefill + steps, args.hidden)))
    empty = np.zeros((batch, args.kv_heads, 0, args.head_dim))
    want = ref.decoder_layer(x, empty, empty, model.weights, args.heads)
    k = v = empty
    parts = []
    for first, last in [(0, prefill)] + [(n, n + 1) for n in range(prefill, prefill + steps)]:
        y, k, v = model(x[:, first:last], k, v)
        parts.append(y)
    compare(f"{label} carried caches", (np.concatenate(parts, axis=1), k, v), want)
    print(f"{'FAIL' if compare.failed else 'ok'} {label}: {count} extents and "
          f"{1 + steps} forwards over carried caches, max error {compare.worst:.3g} "
          f"(tolerance {compare.tolerance})")
    return compare.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mlir-bin", default=os.environ.get("MLIR_BIN",
                                                             "/usr/lib/llvm-22/bin"))
    parser.add_argument("--count", type=int, default=16, help="extents per module")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for name in ("mlir-opt", "mlir-translate", "llc"):
        if not os.access(os.path.join(options.mlir_bin, name), os.X_OK):
            print(f"error: no {name} in {options.mlir_bin}", file=sys.stderr)
            return 2
    rng = np.random.default_rng(options.seed)
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(HERE, "llama_decoder.mlir")) as file:
            checked_in = file.read()
        defaults = llama_decoder.parse_args([])
        if checked_in != llama_decoder.module(defaults):
            print("FAIL llama_decoder.mlir is not what llama_decoder.py prints")
            failed += 1
        failed += check("llama_decoder.mlir", checked_in, defaults, options.count, rng,
                        directory, options.mlir_bin)
        for flags in ("--kv-heads 2 --head-dim 8 --ffn 48 --hidden 40",
                      "--heads 6 --kv-heads 6 --head-dim 4 --hidden 24 --ffn 33",
                      "--type bf16"):
            args = llama_decoder.parse_args(flags.split())
            failed += check(flags, llama_decoder.module(args), args, options.count, rng,
                            directory, options.mlir_bin)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
