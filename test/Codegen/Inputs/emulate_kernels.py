#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the cases of kernel_cases.py on the host: device LLVM IR, compiled for this machine,
with every device thread as a fiber (emulate_block.cpp).

Usage: emulate_kernels.py DIR --llvm BIN_DIR
"""

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
REGISTERS = {"tid.x": "emu_tid_x", "ctaid.x": "emu_ctaid_x", "nctaid.x": "emu_nctaid_x"}


def host_ir(text):
    """Device IR with special registers and barriers as calls, and an entry on void **."""
    text = re.sub(r"^target .*\n", "", text, flags=re.M)
    text = re.sub(r"^declare .*@llvm\.nvvm\..*\n", "", text, flags=re.M)
    head = re.search(r"define ptx_kernel void @([\w$]+)\((.*)\) (?:#\d+ )?\{", text)
    types = [re.match(r"(ptr addrspace\(1\)|\w+)", p.strip())[1] for p in head[2].split(",")]
    text = text.replace("define ptx_kernel", "define internal")
    for register, name in REGISTERS.items():
        text = re.sub(r"call (?:range\(.*?\) )?i32 @llvm\.nvvm\.read\.ptx\.sreg\." +
                      re.escape(register) + r"\(\)", f"call i32 @{name}()", text)
    text = re.sub(r"call void @llvm\.nvvm\.barrier[\w.]*\([^)]*\)(?: #\d+)?",
                  "call void @emu_barrier()", text)
    if "@llvm.nvvm." in text:
        raise ValueError("not emulated: " + re.search(r"@llvm\.nvvm\.[\w.]*", text)[0])
    loads, args = [], []
    for i, t in enumerate(types):
        loads += [f"  %s{i} = getelementptr ptr, ptr %args, i64 {i}",
                  f"  %p{i} = load ptr, ptr %s{i}", f"  %v{i} = load {t}, ptr %p{i}"]
        args.append(f"{t} %v{i}")
    return text + "\n".join(
        ["", "declare i32 @emu_tid_x()", "declare i32 @emu_ctaid_x()", "declare i32 @emu_nctaid_x()",
         "declare void @emu_barrier()", "define void @emu_entry(ptr %args) {", *loads,
         f"  call void @{head[1]}({', '.join(args)})", "  ret void", "}", ""])


def build(folder, kernel, llvm):
    with open(os.path.join(folder, kernel + ".ll")) as f:
        ir = host_ir(f.read())
    obj, lib = (os.path.join(folder, f"{kernel}.emu{e}") for e in (".o", ".so"))
    subprocess.run([os.path.join(llvm, "llc"), "-O1", "-relocation-model=pic", "-filetype=obj",
                    "-o", obj], input=ir, text=True, check=True)
    subprocess.run(["c++", "-O1", "-shared", "-fPIC", "-o", lib,
                    os.path.join(HERE, "emulate_block.cpp"), obj, "-lm"], check=True)
    return ctypes.CDLL(lib)


def launch(library, case, arrays, grid):
    """Runs the kernel on these arrays, in place."""
    values = []
    for kind, index in case["params"]:
        if kind == "pointer":
            values.append(np.array([arrays[index].ctypes.data], np.int64))
        elif kind == "scalar":
            values.append(np.ascontiguousarray(arrays[index]))
        else:
            values.append(np.array([case["extents"][index]], np.int64))
    pointers = np.array([v.ctypes.data for v in values], np.int64)
    if library.emu_launch(library.emu_entry, ctypes.c_void_p(pointers.ctypes.data), grid,
                          case["block"]):
        raise RuntimeError("threads of a block did not meet at a barrier")


def compare(case, data, outputs):
    """Largest difference relative to the largest expected magnitude of a result."""
    worst = 0.0
    for r, got in enumerate(outputs):
        want = data[f"result{r}"]
        if not np.issubdtype(want.dtype, np.floating):
            worst = max(worst, float(np.any(got != want)))
        elif want.size:
            scale = max(float(np.abs(want).max()), 1e-30)
            difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
            if want.dtype == np.float16:  # judged by its own precision
                difference /= 2.0 ** 13
            worst = max(worst, float(np.nan_to_num(difference, nan=np.inf).max()) / scale)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--llvm", required=True)
    parser.add_argument("--tolerance", type=float, default=2e-5)
    args = parser.parse_args()
    with open(os.path.join(args.folder, "cases.json")) as f:
        cases = json.load(f)
    libraries, failed, worst = {}, 0, {}
    for case in cases:
        name = case["kernel"]
        if name not in libraries:
            libraries[name] = build(args.folder, name, args.llvm)
        data = np.load(os.path.join(args.folder, case["data"]))
        for grid in sorted({case["grid"], 1, 3}):
            arrays = [data[f"arg{i}"].copy() for i in range(case["args"])]
            first = case["args"] - case["results"]
            launch(libraries[name], case, arrays, grid)
            error = compare(case, data, arrays[first:])
            worst[name] = max(worst.get(name, 0.0), error)
            if error > args.tolerance:
                failed += 1
                print(f"FAIL {name} {case['extents']} grid {grid}: error {error:.3g}")
    for name, error in worst.items():
        print(f"{name}: largest relative error {error:.2g}")
    print(f"{len(cases)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
