#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the cases of kernel_cases.py on an NVIDIA GPU, through the driver API alone.

Usage: run_ptx.py DIR [--tolerance T] [--repeat N]

Loads DIR/KERNEL.ptx, launches every case of DIR/cases.json with its own grid and with grids
of 1 and 3 blocks, and compares with the results that DIR holds. Destinations are poisoned
before, and guard bytes behind them must not change. Needs Python 3, NumPy and libcuda.
Exit status: 0 all right, 1 a case failed, 2 no GPU.
"""

import argparse
import ctypes
import json
import os
import sys
import time

import numpy as np

GUARD = 256


class Driver:
    """A context on device 0 and the few calls that are needed."""

    def __init__(self):
        try:
            self.lib = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise RuntimeError(f"no CUDA driver: {error}") from None
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()

    def call(self, function, *args):
        status = getattr(self.lib, function)(*args)
        if status:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{function}: {(text.value or b'?').decode()} ({status})")

    def load(self, ptx, symbol):
        log = ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER, .._SIZE_BYTES
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(module), ptx.encode() + b"\0", 2,
                      options, values)
        except RuntimeError as error:
            raise RuntimeError(f"{error}: {log.value.decode()}") from None
        self.call("cuModuleGetFunction", ctypes.byref(function), module, symbol.encode())
        return function

    def upload(self, data):
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(len(data)))
        self.call("cuMemcpyHtoD_v2", pointer, data, ctypes.c_size_t(len(data)))
        return pointer

    def download(self, pointer, size):
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, pointer, ctypes.c_size_t(size))
        return data.raw

    def free(self, pointer):
        self.call("cuMemFree_v2", pointer)

    def launch(self, function, grid, block, params):
        pointers = (ctypes.c_void_p * len(params))(
            *[ctypes.cast(ctypes.byref(p), ctypes.c_void_p) for p in params])
        self.call("cuLaunchKernel", function, grid, 1, 1, block, 1, 1, 0, None, pointers, None)

    def synchronize(self):
        self.call("cuCtxSynchronize")


def run_case(driver, function, case, data, grid, repeat):
    """Results of one launch, the time of one of `repeat` more in seconds, and whether guards held."""
    first = case["args"] - case["results"]
    buffers, hosts = [], []
    for i in range(case["args"]):
        array = np.ascontiguousarray(data[f"arg{i}"])
        content = array.tobytes()
        # What a destination holds is input where the body reads it, so poison goes behind it only.
        hosts.append(array)
        buffers.append(driver.upload(content + b"\xa5" * GUARD))
    params = []
    for kind, index in case["params"]:
        if kind == "pointer":
            params.append(buffers[index])
        elif kind == "scalar":
            raw = hosts[index].tobytes()
            params.append((ctypes.c_char * len(raw)).from_buffer_copy(raw))
        else:
            params.append(ctypes.c_int64(case["extents"][index]))
    driver.launch(function, grid, case["block"], params)
    driver.synchronize()
    outputs, intact = [], True
    for i in range(case["args"]):
        raw = driver.download(buffers[i], hosts[i].nbytes + GUARD)
        intact &= raw[hosts[i].nbytes:] == b"\xa5" * GUARD
        if i >= first:
            outputs.append(np.frombuffer(raw[:hosts[i].nbytes], hosts[i].dtype)
                           .reshape(hosts[i].shape))
        else:
            intact &= raw[:hosts[i].nbytes] == hosts[i].tobytes()
    seconds = 0.0
    if repeat:
        start = time.perf_counter()
        for _ in range(repeat):
            driver.launch(function, grid, case["block"], params)
        driver.synchronize()
        seconds = (time.perf_counter() - start) / repeat
    for buffer in buffers:
        driver.free(buffer)
    return outputs, seconds, intact


def relative_error(want, got):
    if not np.issubdtype(want.dtype, np.floating):
        return float(np.any(got != want))
    if not want.size:
        return 0.0
    scale = max(float(np.abs(want).max()), 1e-30)
    difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
    if want.dtype == np.float16:  # judged by its own precision
        difference /= 2.0 ** 13
    return float(np.nan_to_num(difference, nan=np.inf).max()) / scale


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--tolerance", type=float, default=2e-5,
                        help="relative to a result's largest magnitude (default 2e-5, f32)")
    parser.add_argument("--repeat", type=int, default=0, help="launches to time")
    args = parser.parse_args()
    try:
        driver = Driver()
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    with open(os.path.join(args.folder, "cases.json")) as f:
        cases = json.load(f)
    functions, failed, worst, times = {}, 0, {}, {}
    for case in cases:
        name = case["kernel"]
        if name not in functions:
            with open(os.path.join(args.folder, name + ".ptx")) as f:
                functions[name] = driver.load(f.read(), case["symbol"])
        data = np.load(os.path.join(args.folder, case["data"]))
        for grid in sorted({case["grid"], 1, 3}):
            own = grid == case["grid"]
            outputs, seconds, intact = run_case(driver, functions[name], case, data, grid,
                                                args.repeat if own else 0)
            error = max(relative_error(data[f"result{r}"], got) for r, got in enumerate(outputs))
            worst[name] = max(worst.get(name, 0.0), error)
            if own:
                times.setdefault(name, []).append((case["extents"], seconds))
            if error > args.tolerance or not intact:
                failed += 1
                print(f"FAIL {name} {case['extents']} grid {grid}: error {error:.3g}, "
                      f"guards {'intact' if intact else 'overwritten'}")
    print(f"device: {driver.name}")
    for name, error in worst.items():
        line = f"{name}: largest relative error {error:.2g}"
        if args.repeat:
            line += ", " + ", ".join(f"{e}: {s * 1e6:.1f} us" for e, s in times[name])
        print(line)
    print(f"{len(cases)} cases of {len(functions)} kernels, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
