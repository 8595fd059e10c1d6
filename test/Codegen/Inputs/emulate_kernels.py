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

# Intrinsics and the functions that stand for them, over those of emulate_block.cpp.
MMA = """define internal { float, float, float, float } @"NAME"(OPERANDS) {
  %o = alloca [6 x i32]
  %s = alloca [4 x float]
  %r = alloca { float, float, float, float }
STORES
  call void @emu_mma(ptr %r, i32 KIND, ptr %o, ptr %s)
  %v = load { float, float, float, float }, ptr %r
  ret { float, float, float, float } %v
}
"""
LDMATRIX = """define internal { i32, i32, i32, i32 } @"NAME"(ptr addrspace(3) %p) {
  %g = addrspacecast ptr addrspace(3) %p to ptr
  %r = alloca { i32, i32, i32, i32 }
  call void @emu_ldmatrix(ptr %r, ptr %g, i32 TRANSPOSE)
  %v = load { i32, i32, i32, i32 }, ptr %r
  ret { i32, i32, i32, i32 } %v
}
"""
CP_ASYNC = """define internal void @"NAME"(ptr addrspace(3) %t, ptr addrspace(1) %f, i32 %n) {
  %tg = addrspacecast ptr addrspace(3) %t to ptr
  %fg = addrspacecast ptr addrspace(1) %f to ptr
  call void @emu_cp_async(ptr %tg, ptr %fg, i32 BYTES, i32 %n)
  ret void
}
"""
SHFL = """define internal TYPE @"NAME"(i32 %m, TYPE %v, i32 %o, i32 %c) {
  %i = bitcast TYPE %v to i32
  %r = call i32 @emu_shfl_bfly(i32 %i, i32 %o)
  %f = bitcast i32 %r to TYPE
  ret TYPE %f
}
"""


def mma(name, kind, operand):
    operands = [f"{operand} %x{i}" for i in range(6)] + [f"float %y{i}" for i in range(4)]
    stores = []
    for i in range(10):
        array, type_, at = ("o", operand, i) if i < 6 else ("s", "float", i - 6)
        stores += [f"  %p{i} = getelementptr i32, ptr %{array}, i64 {at}",
                   f"  store {type_} %{'x' if i < 6 else 'y'}{at}, ptr %p{i}, align 4"]
    return (MMA.replace("NAME", name).replace("OPERANDS", ", ".join(operands))
            .replace("STORES", "\n".join(stores)).replace("KIND", str(kind)))


def stand_in(name):
    """The definition that replaces an intrinsic, or None where there is none."""
    kinds = {"llvm.nvvm.mma.m16n8k16.row.col.bf16": (0, "i32"),
             "llvm.nvvm.mma.m16n8k16.row.col.f32.f32": (1, "<2 x half>"),
             "llvm.nvvm.mma.m16n8k8.row.col.tf32": (2, "i32")}
    if name in kinds:
        return mma("emu." + name, *kinds[name])
    text = None
    if m := re.fullmatch(r"llvm\.nvvm\.ldmatrix\.sync\.aligned\.m8n8\.x4(\.trans)?\.b16\.p3", name):
        text = LDMATRIX.replace("TRANSPOSE", "1" if m[1] else "0")
    elif m := re.fullmatch(r"llvm\.nvvm\.cp\.async\.c[ga]\.shared\.global\.(\d+)\.s", name):
        text = CP_ASYNC.replace("BYTES", m[1])
    elif m := re.fullmatch(r"llvm\.nvvm\.shfl\.sync\.bfly\.([if]32)", name):
        text = SHFL.replace("TYPE", "i32" if m[1] == "i32" else "float")
    return text.replace("NAME", "emu." + name) if text else None


def host_ir(text, shared_bytes):
    """Device IR with what only a device has as calls, and an entry on void **."""
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
    text = re.sub(r"call void @llvm\.nvvm\.cp\.async\.commit\.group\(\)",
                  "call void @emu_cp_commit()", text)
    text = re.sub(r"call void @llvm\.nvvm\.cp\.async\.wait\.group\(", "call void @emu_cp_wait(",
                  text)
    # Not a number in every element that nothing wrote.
    text = re.sub(r"(@dynamic_shared = )external (addrspace\(3\) global) \[0 x i8\]",
                  lambda m: f'{m[1]}internal {m[2]} [{shared_bytes} x i8] c"' +
                  "\\FF" * shared_bytes + '"', text)
    for name in sorted(set(re.findall(r"@(llvm\.nvvm\.[\w.]+)", text))):
        if definition := stand_in(name):
            text = re.sub(r"@" + re.escape(name) + r"(?![\w.])", f'@"emu.{name}"', text)
            text += "\n" + definition
    if "@llvm.nvvm." in text:
        raise ValueError("not emulated: " + re.search(r"@llvm\.nvvm\.[\w.]*", text)[0])
    loads, args = [], []
    for i, t in enumerate(types):
        loads += [f"  %s{i} = getelementptr ptr, ptr %args, i64 {i}",
                  f"  %p{i} = load ptr, ptr %s{i}", f"  %v{i} = load {t}, ptr %p{i}"]
        args.append(f"{t} %v{i}")
    return text + "\n".join(
        ["", "declare i32 @emu_tid_x()", "declare i32 @emu_ctaid_x()", "declare i32 @emu_nctaid_x()",
         "declare void @emu_barrier()", "declare void @emu_cp_commit()",
         "declare void @emu_cp_wait(i32)", "declare i32 @emu_shfl_bfly(i32, i32)",
         "declare void @emu_mma(ptr, i32, ptr, ptr)", "declare void @emu_ldmatrix(ptr, ptr, i32)",
         "declare void @emu_cp_async(ptr, ptr, i32, i32)", "define void @emu_entry(ptr %args) {", *loads,
         f"  call void @{head[1]}({', '.join(args)})", "  ret void", "}", ""])


def build(folder, case, llvm):
    kernel = case["kernel"]
    with open(os.path.join(folder, kernel + ".ll")) as f:
        ir = host_ir(f.read(), case["shared"])
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


def widen(array, type_):
    """bf16 is kept as its bits."""
    if type_ == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def compare(case, data, outputs):
    """Largest difference relative to the largest expected magnitude of a result."""
    worst = 0.0
    for r, got in enumerate(outputs):
        want = data[f"result{r}"]
        if types := case.get("types"):
            got = widen(got, types[case["args"] - case["results"] + r])
        if not np.issubdtype(want.dtype, np.floating):
            worst = max(worst, float(np.any(got != want)))
        elif want.size:
            scale = max(float(np.abs(want).max()), 1e-30)
            difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
            # Judged by the precision of what was rounded: 8 or 11 bits for 24.
            precision = case.get("precision", str(want.dtype))
            difference /= {"bf16": 2.0 ** 8, "tf32": 2.0 ** 8, "f16": 2.0 ** 6,
                           "float16": 2.0 ** 13}.get(precision, 1.0)
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
            libraries[name] = build(args.folder, case, args.llvm)
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
