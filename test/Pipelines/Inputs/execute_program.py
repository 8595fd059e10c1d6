#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executes the program and the kernels that pgkp-opt makes of the llama decoder, and compares
the results with the model's NumPy reference.

Program: pgkp-prepare-pipeline, pgkp-program-pipeline, LLVM, linked without undefined symbols.
Kernels: lowered by upstream MLIR alone, so that outlining is tested and not code generation.
This script plays the runtime behind the program's table (include/pgkp-c/program.h).

Exits 1 on a mismatch. Needs numpy, gcc and LLVM 22.
"""

import argparse
import ctypes
import os
import re
import sys
import tempfile

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "test", "models"))

import check_llama_decoder as check  # noqa: E402
import llama_decoder  # noqa: E402

P, U32, U64, I64, F64 = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64,
                         ctypes.c_double)
OBSERVE = ctypes.CFUNCTYPE(None, P, U32, ctypes.POINTER(I64), U32)
PREPARE = ctypes.CFUNCTYPE(None, P, U32, ctypes.POINTER(I64), U32, F64, F64, U32, U32)
DISPATCH = ctypes.CFUNCTYPE(None, P, U32, ctypes.POINTER(I64), U32, ctypes.POINTER(P), U32)
AWAIT = ctypes.CFUNCTYPE(None, P, U32, ctypes.POINTER(I64), U32, I64)
ALLOC = ctypes.CFUNCTYPE(P, P, U64)
FREE = ctypes.CFUNCTYPE(None, P, P)
COPY = ctypes.CFUNCTYPE(None, P, U32, U32, P, P)
FAIL = ctypes.CFUNCTYPE(None, P, ctypes.c_char_p)


class Table(ctypes.Structure):
    _fields_ = [("abi", U32), ("size", U32), ("observe", OBSERVE), ("prepare", PREPARE),
                ("dispatch", DISPATCH), ("await_", AWAIT), ("alloc", ALLOC), ("free", FREE),
                ("copy", COPY), ("fail", FAIL)]


class Context(ctypes.Structure):
    _fields_ = [("api", ctypes.POINTER(Table))]


KERNEL = re.compile(r"pgkp\.kernel private @(\w+)\((.*)\) -> (.*) dims\(.*")


def split_kernels(text):
    """The kernels as functions for upstream tools, and (name, argument types) of each."""
    kernels, lines, inside = [], [], False
    for line in text.splitlines():
        match = KERNEL.match(line.strip())
        if match:
            inside = True
            name, arguments, results = match.groups()
            kernels.append((name, re.findall(r"%\w+: ([^,]*<[^>]*>|\w+)", arguments)))
            line = f"func.func @{name}({arguments}) -> {results} {{"
        elif line.startswith("  func.func"):
            inside = False
        if inside or line.startswith("#"):
            lines.append(line.replace("pgkp.return", "return"))
    return "\n".join(lines), kernels


class Runtime:
    """The other side of the table; dispatches to the kernels of a shared object."""

    def __init__(self, kernels, library):
        self.kernels, self.library = kernels, library
        self.live, self.prepared, self.observed, self.log = {}, set(), [], []
        callbacks = dict(observe=OBSERVE(self.observe), prepare=PREPARE(self.prepare),
                         dispatch=DISPATCH(self.dispatch), await_=AWAIT(lambda *_: None),
                         alloc=ALLOC(self.alloc), free=FREE(self.free), copy=COPY(self.copy),
                         fail=FAIL(lambda _, message: sys.exit(f"error: {message}")))
        self.table = Table(abi=1, size=ctypes.sizeof(Table), **callbacks)
        self.context = Context(ctypes.pointer(self.table))

    def observe(self, _, entry, roots, count):
        self.observed.append((entry, tuple(roots[:count])))

    def prepare(self, _, kernel, extents, count, probability, slack, stage, provenance):
        if not (0 <= probability <= 1 and slack >= 0 and stage == 2 and provenance == 0):
            sys.exit(f"error: prepare with probability {probability}, slack {slack}, stage "
                     f"{stage}, provenance {provenance}")
        self.prepared.add((kernel, tuple(extents[:count])))

    def alloc(self, _, size):
        raw = ctypes.create_string_buffer(size + 64)
        address = (ctypes.addressof(raw) + 63) // 64 * 64
        # What a kernel does not write must not look right by chance.
        ctypes.memset(address, 0xAB, size)
        self.live[address] = raw
        return address

    def free(self, _, address):
        del self.live[address]

    def describe(self, pointer, rank):
        return check.descriptor_type(rank).from_address(pointer)

    def copy(self, _, rank, size, source, target):
        views = []
        for pointer in (source, target):
            d = self.describe(pointer, rank)
            extent = 1 + sum((n - 1) * s for n, s in zip(d.sizes, d.strides))
            if 0 in list(d.sizes):
                return
            raw = (ctypes.c_char * (extent * size)).from_address(d.aligned + d.offset * size)
            views.append(np.ndarray(list(d.sizes), f"V{size}", raw, 0,
                                    [s * size for s in d.strides]))
        views[1][...] = views[0]

    def dispatch(self, _, kernel, extents, count, arguments, num_arguments):
        name, types = self.kernels[kernel]
        self.log.append((kernel, tuple(extents[:count])))
        if num_arguments != len(types):
            sys.exit(f"error: {name} got {num_arguments} arguments, expected {len(types)}")
        # Dynamic dimensions of the arguments must be among the extents.
        for pointer, kind in zip(arguments[:num_arguments], types):
            if kind == "index":
                continue
            shape = re.match(r"tensor<((?:[0-9?]+x)*)\w+>", kind).group(1).split("x")[:-1]
            d = self.describe(pointer, len(shape))
            for size, declared in zip(d.sizes, shape):
                if declared == "?" and size not in extents[:count]:
                    sys.exit(f"error: {name}: extent {size} is not in {extents[:count]}")
                if declared != "?" and size != int(declared):
                    sys.exit(f"error: {name}: extent {size}, expected {declared}")
        values = [I64.from_address(p) if kind == "index" else P(p)
                  for p, kind in zip(arguments[:num_arguments], types)]
        rank = types[-1].count("x")
        result = check.descriptor_type(rank)()
        getattr(self.library, "_mlir_ciface_" + name)(ctypes.byref(result), *values)
        out = self.describe(arguments[num_arguments - 1], rank)
        if list(result.sizes) != list(out.sizes):
            sys.exit(f"error: {name} returned {list(result.sizes)}, destination {list(out.sizes)}")
        size = 2 if "bf16" in types[-1] else 4
        ctypes.memmove(out.aligned + out.offset * size,
                       result.aligned + result.offset * size, int(np.prod(out.sizes)) * size)


class ProgramModel(check.Model):
    """check.Model with the program in the place of upstream's function."""

    pgkp_opt = None

    def __init__(self, module, args, directory, bin_dir, rng):
        prepared = check.run([self.pgkp_opt, "--pgkp-prepare-pipeline"], module)
        functions, kernels = split_kernels(prepared)
        self.runtime = Runtime(kernels, check.build(functions, directory, bin_dir))
        self.program = self.link(prepared, directory, bin_dir)
        build, check.build = check.build, lambda *_: self.program
        try:
            super().__init__(module, args, directory, bin_dir, rng)
        finally:
            check.build = build

    def link(self, prepared, directory, bin_dir):
        lowered = check.run([self.pgkp_opt, "--pgkp-program-pipeline"], prepared)
        llvm_ir = check.run([os.path.join(bin_dir, "mlir-translate"), "--mlir-to-llvmir"],
                            lowered)
        stem = os.path.join(directory, f"p{len(os.listdir(directory))}")
        with open(stem + ".ll", "w") as out:
            out.write(llvm_ir)
        check.run([os.path.join(bin_dir, "llc"), "-O2", "--relocation-model=pic",
                   "--filetype=obj", stem + ".ll", "-o", stem + ".o"])
        check.run(["gcc", "-shared", "-nostdlib", "-Wl,-z,defs", stem + ".o", "-o",
                   stem + ".so"])
        library = ctypes.CDLL(stem + ".so")
        if U32.in_dll(library, "pgkp_program_abi").value != 1:
            sys.exit("error: pgkp_program_abi is not 1")
        library._mlir_ciface_decoder = library.pgkp_entry_decoder
        return library

    def __call__(self, x, k_cache, v_cache):
        inputs = [self.store(a) for a in (x, k_cache, v_cache)] + self.tables + \
            [self.store(a) for a in self.weights.values()]
        grown = list(k_cache.shape)
        grown[2] += x.shape[1]
        outputs = [np.full(shape, 0x5A, inputs[0].dtype) for shape in (x.shape, grown, grown)]
        descriptors = [check.to_descriptor(a) for a in inputs + outputs]
        pointers = (P * len(descriptors))(*[ctypes.addressof(d) for d in descriptors])
        runtime = self.runtime
        runtime.log.clear()
        runtime.prepared.clear()
        runtime.observed.clear()
        self.program.pgkp_entry_decoder(ctypes.byref(runtime.context), pointers)
        roots = (x.shape[0], x.shape[1], k_cache.shape[2])
        if runtime.observed != [(0, roots)]:
            sys.exit(f"error: observed {runtime.observed}, expected roots {roots}")
        if runtime.prepared != set(runtime.log):
            sys.exit(f"error: prepared {runtime.prepared}, dispatched {runtime.log}")
        if runtime.live:
            sys.exit(f"error: {len(runtime.live)} allocations were not freed")
        return [self.load(a).astype(np.float64) for a in outputs]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pgkp_opt", help="path of pgkp-opt")
    parser.add_argument("--mlir-bin", default="/usr/lib/llvm-22/bin")
    parser.add_argument("--count", type=int, default=10, help="extents per module")
    parser.add_argument("--flags", action="append", default=None,
                        help="sizes of a generated model (see llama_decoder.py)")
    options = parser.parse_args()
    ProgramModel.pgkp_opt = options.pgkp_opt
    check.Model = ProgramModel
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        for flags in options.flags or [""]:
            args = llama_decoder.parse_args(flags.split())
            failed += check.check(flags or "llama_decoder", llama_decoder.module(args), args,
                                  options.count, np.random.default_rng(1), directory,
                                  options.mlir_bin)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
