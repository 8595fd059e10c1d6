#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the built files need at run time, and what the runtime library exports.

The runtime and the tools in the application's place need no LLVM, MLIR or CUDA; the
runtime library needs the C library alone and exports exactly what pgkp-c/runtime.h declares.
"""

import glob
import os
import re
import subprocess

import common

FOREIGN = re.compile(r"^lib(MLIR|LLVM|lld|clang|cuda|cudart|nv\w*|cublas\w*|cupti)\b")
C_LIBRARY = re.compile(r"^(lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux[\w-]*\.so\.\d+)$")
HEADER = "include/pgkp-c/runtime.h"
APPLICATION_SIDE = ("pgkp-run", "pgkp-compile", "pgkp-replay", "pgkp-cache", "pgkp-bench")


def readelf(path, *arguments):
    done = subprocess.run(["readelf", "-W", *arguments, path], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def needed(path):
    """The libraries that the file names; None: not an ELF file."""
    text = readelf(path, "-d")
    return None if text is None else re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def exported(path):
    """Names that a shared library defines for others, without their version."""
    names = []
    for line in (readelf(path, "--dyn-syms") or "").splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[4] in ("GLOBAL", "WEAK") and fields[6] not in ("UND", "ABS"):
            names.append(fields[7].split("@")[0])
    return names


def declared(root):
    """The functions that the C header promises."""
    header = common.read(root, HEADER)
    return set(re.findall(r"^PGKP_EXPORT\b[^;{]*?\b(pgkp_\w+)\s*\(", header, re.M))


def check_library(path, libraries, symbols, promised):
    for name in libraries:
        if not C_LIBRARY.match(name):
            yield path, 0, f"needs '{name}'; the runtime library needs the C library alone"
    for name in sorted(set(symbols) - promised):
        yield path, 0, f"exports '{name}'; {HEADER} does not declare it"
    for name in sorted(promised - set(symbols)):
        yield path, 0, f"does not export '{name}', which {HEADER} declares"


def check_tool(path, libraries):
    for name in libraries:
        if FOREIGN.match(name):
            yield path, 0, f"needs '{name}'; this tool runs in the application's place"


def check(root, build):
    findings, seen = [], 0
    if not os.path.isdir(os.path.join(build, "lib")):
        return [(build, 0, "has no lib folder; build first")]
    for path in sorted(glob.glob(os.path.join(build, "lib", "libpgkp_runtime.so"))):
        seen += 1
        findings += check_library(path, needed(path) or [], exported(path), declared(root))
    for name in APPLICATION_SIDE:
        path = os.path.join(build, "bin", name)
        if os.path.exists(path):
            findings += check_tool(path, needed(path) or [])
    if not seen:
        findings.append((build, 0, "lib/libpgkp_runtime.so was not built"))
    return findings


if __name__ == "__main__":
    common.main(check, __doc__)
