#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the kernels of a printed module of pgkp-to-nvvm-pipeline.

Usage:
  device_kernels.py [MODULE] --list               names, launches and sizes
  device_kernels.py [MODULE] --extract DIR        one NAME.ptx a kernel
  device_kernels.py [MODULE] --assemble PTXAS     every kernel must assemble

MODULE is a file or '-' for standard input. Only the standard library is used.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile


class Kernel:
    """One gpu.binary: `name` (kernel and chip), `chip`, `text` (PTX), `symbol`, and the launch."""

    def __init__(self, name, chip, text, launch):
        self.name, self.chip, self.text = name, chip, text
        self.grid, self.block, self.params, self.shared = launch
        found = re.findall(r"\.entry\s+([\w$]+)|define ptx_kernel void @([\w$]+)", text)
        if len(found) != 1:
            raise ValueError(f"{name}: expected one entry, found {len(found)}")
        self.symbol = found[0][0] or found[0][1]


def unescape(text):
    """Undoes the escapes of an MLIR string attribute."""
    raw = re.sub(rb'\\([0-9A-Fa-f]{2}|["\\])',
                 lambda m: bytes.fromhex(m[1].decode()) if len(m[1]) == 2 else m[1],
                 text.encode("utf-8"))
    return raw.decode("utf-8").rstrip("\0")


def parse_launch(text):
    grid = [m for m in re.findall(r"#pgkp\.expr<(.*?)>(?=[,\]])",
                                  re.search(r"grid = \[(.*?)\], params", text, re.S)[1] + "]")]
    block = [int(v) for v in re.search(r"block = array<i32: ([\d, ]+)>", text)[1].split(",")]
    params = [(kind, int(index)) for index, kind in
              re.findall(r'\{index = (\d+) : i64, kind = "(\w+)"\}', text)]
    if len(grid) != 3 or len(block) != 3 or not params:
        raise ValueError(f"cannot read launch: {text[:200]}")
    shared = int(re.search(r"shared_bytes = (\d+) : i64", text)[1])
    return grid, block, params, shared


def read_kernels(module):
    """Every gpu.binary of the printed module, in order."""
    kernels = []
    for m in re.finditer(r'gpu\.binary @("?)([\w$.]+)\1\s+\[(.*?)assembly = "((?:[^"\\]|\\.)*)"',
                         module, re.S):
        header = m[3]
        chip = re.search(r'chip = "(\w+)"', header)
        kernels.append(Kernel(m[2], chip[1] if chip else "sm_50", unescape(m[4]),
                              parse_launch(header)))
    return kernels


def evaluate(expr, extents):
    """The value of a #pgkp.expr body over the extents s0, s1, ..."""
    tokens = re.findall(r"floordiv|ceildiv|mod|min|max|s\d+|\d+|[-+*(),]", expr)
    if "".join(tokens) != re.sub(r"\s", "", expr):
        raise ValueError(f"cannot read expression '{expr}'")
    position = 0

    def peek():
        return tokens[position] if position < len(tokens) else None

    def take():
        nonlocal position
        position += 1
        return tokens[position - 1]

    def factor():
        token = take()
        if token == "-":
            return -factor()
        if token == "(":
            value = sum_()
            take()
            return value
        if token in ("min", "max"):
            take()
            values = [sum_()]
            while take() == ",":
                values.append(sum_())
            return min(values) if token == "min" else max(values)
        return extents[int(token[1:])] if token[0] == "s" else int(token)

    def term():
        value = factor()
        while peek() in ("*", "floordiv", "ceildiv", "mod"):
            op, rhs = take(), factor()
            value = {"*": lambda: value * rhs, "floordiv": lambda: value // rhs,
                     "ceildiv": lambda: -(-value // rhs), "mod": lambda: value % rhs}[op]()
        return value

    def sum_():
        value = term()
        while peek() in ("+", "-"):
            value = value + term() if take() == "+" else value - term()
        return value

    value = sum_()
    if position != len(tokens):
        raise ValueError(f"cannot read expression '{expr}'")
    return value


def assemble(kernel, ptxas):
    """ptxas's output; raises CalledProcessError where it refuses the text."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "k.ptx")
        with open(source, "w") as f:
            f.write(kernel.text)
        done = subprocess.run([ptxas, f"-arch={kernel.chip}", "-v", source,
                               "-o", os.path.join(folder, "k.cubin")],
                              capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"{kernel.name}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("module", nargs="?", default="-")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--extract", metavar="DIR")
    parser.add_argument("--assemble", metavar="PTXAS")
    args = parser.parse_args()
    text = sys.stdin.read() if args.module == "-" else open(args.module).read()
    kernels = read_kernels(text)
    if not kernels:
        print("error: the module has no gpu.binary", file=sys.stderr)
        return 1
    for kernel in kernels:
        if args.list:
            print(f"{kernel.name}: symbol {kernel.symbol}, grid {kernel.grid[0]}, "
                  f"block {kernel.block[0]}, {len(kernel.params)} parameters")
        if args.extract:
            os.makedirs(args.extract, exist_ok=True)
            with open(os.path.join(args.extract, kernel.name + ".ptx"), "w") as f:
                f.write(kernel.text)
        if args.assemble:
            try:
                output = assemble(kernel, args.assemble)
            except ValueError as error:
                print(f"error: {error}", file=sys.stderr)
                return 1
            used = re.search(r"Used (\d+) registers", output)
            spilled = re.search(r"(\d+) bytes spill stores", output)
            print(f"{kernel.name}: assembled, {used[1] if used else '?'} registers, "
                  f"{spilled[1] if spilled else '?'} bytes spilled")
    print(f"{len(kernels)} kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
