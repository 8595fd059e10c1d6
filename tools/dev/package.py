#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packs the static tools, the runtime library and its headers as one .tar.xz.

Everything but the C library is inside, so it runs on a machine without LLVM and on newer
distributions than the one that built it (Ubuntu 24.04 for one). Fails above 64 MiB.
"""

import argparse
import glob
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools", "lint"))
import check_needed  # noqa: E402

LIMIT = 64 * 1024 * 1024
TOOLS = ["pgkp-opt", "pgkp-compile", "pgkp-run", "pgkp-worker", "pgkp-replay", "pgkp-cache", "pgkp-bench"]
# Debian has no static google-benchmark: its library travels beside pgkp-bench, which
# takes the C++ library of the machine it runs on.
EXCEPTIONS = {"pgkp-bench": ("libbenchmark.so.1debian", "libstdc++.so.6", "libgcc_s.so.1")}
README = """PGKP {version}, built for x86-64 Linux with glibc 2.36 or newer

bin/         pgkp-opt, pgkp-compile, pgkp-run, pgkp-worker, pgkp-replay, pgkp-cache, pgkp-bench
lib/         libpgkp_runtime.so
include/     pgkp-c/runtime.h, its C interface
test/models/ a decoder layer and its recorded requests
./gpu.py     checks this package on the machine it is on

    bin/pgkp-compile test/models/llama_decoder.mlir -o llama.pgkp --targets=host
    bin/pgkp-run llama.pgkp --requests=test/models/llama_decoder.requests.csv --check --pace=0
"""


def version():
    with open(os.path.join(ROOT, "VERSION")) as file:
        return file.read().strip()


def copy(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy2(source, target)


def strip(path):
    subprocess.run(["strip", "--strip-unneeded", path], check=True)


def foreign(path, allowed):
    return [name for name in check_needed.needed(path)
            if not check_needed.C_LIBRARY.match(name) and name not in allowed]


def fill(build, folder):
    """Lays the package's tree; the reasons why it is not self-contained."""
    problems = []
    for tool in TOOLS:
        source, target = os.path.join(build, "bin", tool), os.path.join(folder, "bin", tool)
        if not os.path.exists(source):
            problems.append(f"{tool} was not built")
            continue
        copy(source, target)
        strip(target)
        allowed = EXCEPTIONS.get(tool, ())
        problems += [f"{tool} needs {name}" for name in foreign(target, allowed)]
        if "libbenchmark.so.1debian" in allowed:
            library = sorted(glob.glob("/usr/lib/*/libbenchmark.so.1debian"))
            if library and "libbenchmark.so.1debian" in check_needed.needed(target):
                copy(os.path.realpath(library[0]), os.path.join(folder, "lib", "libbenchmark.so.1debian"))
    library = os.path.join(build, "lib", "libpgkp_runtime.so")
    if os.path.exists(library):
        real = os.path.realpath(library)
        target = os.path.join(folder, "lib", os.path.basename(real))
        copy(real, target)
        strip(target)
        for name in ("libpgkp_runtime.so.0", "libpgkp_runtime.so"):
            os.symlink(os.path.basename(real), os.path.join(folder, "lib", name))
        problems += [f"libpgkp_runtime.so needs {name}" for name in foreign(target, ())]
    else:
        problems.append("libpgkp_runtime.so was not built")
    for pattern, place in (("include/pgkp-c/*.h", "include/pgkp-c"), ("test/models/*", "test/models"),
                           ("LICENSE", ""), ("THIRD_PARTY.md", ""), ("tools/dev/gpu.py", "")):
        for source in glob.glob(os.path.join(ROOT, pattern)):
            if os.path.isfile(source):
                copy(source, os.path.join(folder, place, os.path.basename(source)))
    with open(os.path.join(folder, "README"), "w") as out:
        out.write(README.format(version=version()))
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", action="store_true", help="print what to build, and stop")
    parser.add_argument("--build-dir", default="build-static-tools")
    parser.add_argument("--out", default="build/package")
    arguments = parser.parse_args()
    if arguments.targets:
        print(" ".join(TOOLS + ["pgkp_runtime"]))
        return 0
    name = f"pgkp-{version()}-linux-x86_64"
    shutil.rmtree(arguments.out, ignore_errors=True)
    folder = os.path.join(arguments.out, name)
    os.makedirs(folder)
    problems = fill(arguments.build_dir, folder)
    if problems:
        for problem in problems:
            print(f"error: {problem}", file=sys.stderr)
        return 1
    archive = os.path.join(arguments.out, f"{name}.tar.xz")
    # One stream with a window over all tools: they share most of LLVM.
    tar = subprocess.Popen(["tar", "-C", arguments.out, "--sort=name", "--owner=0", "--group=0",
                            "--numeric-owner", "-cf", "-", name], stdout=subprocess.PIPE)
    with open(archive, "wb") as out:
        xz = subprocess.run(["xz", "--lzma2=preset=6,dict=256MiB", "-c"], stdin=tar.stdout, stdout=out)
    if tar.wait() or xz.returncode:
        print("error: packing failed", file=sys.stderr)
        return 1
    size = os.path.getsize(archive)
    for entry in sorted(os.listdir(os.path.join(folder, "bin"))):
        print(f"{os.path.getsize(os.path.join(folder, 'bin', entry)) / 2**20:8.1f} MiB  bin/{entry}")
    print(f"{size / 2**20:8.1f} MiB  {os.path.relpath(archive)}")
    if size > LIMIT:
        print(f"error: {archive} has {size} bytes; at most {LIMIT} are allowed", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
