# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what pgkp-run computes for a model with the model's NumPy reference: what the
check_NAME.py scripts share.

A model is a generator module (parse_args, module), a reference function, the extents to try
and its recorded requests. Each run compiles the module, plays requests under a policy with
seeded inputs and --check, and reads inputs and outputs back from the files of --dump.
"""

import argparse
import contextlib
import glob
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SKIPPED = 77


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_bf16(array):
    """Bits of the nearest bf16, ties to even."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def rounding(element):
    """What storing as this type makes of float64 values."""
    if element == "bf16":
        return lambda array: from_bf16(to_bf16(array)).astype(np.float64)
    return lambda array: np.asarray(array, np.float32).astype(np.float64)


@contextlib.contextmanager
def replaced(module, name, value):
    """The module with another value under this name."""
    old = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, old)


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}: {done.stderr[:2000]}")


class Tools:
    """The tools of a build; exits with 77 where there is none."""

    def __init__(self, build):
        self.bin = os.path.join(build, "bin")
        for name in ("pgkp-compile", "pgkp-run", "pgkp-worker"):
            if not os.access(os.path.join(self.bin, name), os.X_OK):
                print(f"no {name} in {self.bin}")
                sys.exit(SKIPPED)

    def compile(self, text, folder):
        source, bundle = os.path.join(folder, "model.mlir"), os.path.join(folder, "model.pgkp")
        with open(source, "w") as out:
            out.write(text)
        run([os.path.join(self.bin, "pgkp-compile"), source, "-o", bundle, "--targets=host",
             "--quiet"])
        return bundle

    def play(self, bundle, entry, roots, requests, policy, seed, element):
        """Yields (extents, arguments, results) of each request, in order."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "requests.csv")
            with open(path, "w") as out:
                out.write(f"arrival_s,entry,{','.join(roots)}\n")
                for number, extents in enumerate(requests):
                    out.write(f"{0.01 * number},{entry},{','.join(map(str, extents))}\n")
            run([os.path.join(self.bin, "pgkp-run"), bundle, f"--requests={path}", "--pace=0",
                 f"--policy={policy}", "--cache-dir=none", f"--seed={seed}", f"--dump={folder}",
                 f"--json={os.path.join(folder, 'm.json')}", "--check", "--quiet"])
            arguments = {}
            for number, extents in enumerate(requests):
                arguments.update(self.read(folder, number, "arg", element))
                results = self.read(folder, number, "result", element)
                yield extents, [arguments[i] for i in sorted(arguments)], \
                    [results[i] for i in sorted(results)]

    @staticmethod
    def read(folder, number, what, element):
        found = {}
        for path in glob.glob(os.path.join(folder, f"{number}-{what}*.npy")):
            array = np.load(path)
            if element == "bf16" and array.dtype == np.uint16:
                array = from_bf16(array)
            found[int(re.search(r"(\d+)\.npy$", path).group(1))] = array
        return found


class Comparison:
    """|got - want| <= tolerance * (1 + |want|), element by element. What the reference masks
    is left out; it may not be more than a tenth of everything."""

    def __init__(self, tolerance):
        self.tolerance, self.worst, self.failed = tolerance, 0.0, 0
        self.compared = self.masked = 0

    def __call__(self, what, got, want):
        if len(got) != len(want):
            print(f"FAIL {what}: {len(got)} results, expected {len(want)}")
            self.failed += 1
        for number, (g, w) in enumerate(zip(got, want)):
            if g.shape != w.shape:
                print(f"FAIL {what} result {number}: shape {g.shape}, expected {w.shape}")
                self.failed += 1
                continue
            if g.size == 0:
                continue
            known = ~np.ma.getmaskarray(w)
            self.compared += known.sum()
            self.masked += g.size - known.sum()
            g, w = g[known].astype(np.float64), np.asarray(w)[known]
            error = float(np.max(np.abs(g - w) / (1 + np.abs(w)), initial=0.0))
            self.worst = max(self.worst, error) if error == error else float("nan")
            if not error <= self.tolerance:  # a NaN fails too
                print(f"FAIL {what} result {number}: error {error:.3g}, tolerance {self.tolerance}")
                self.failed += 1

    def close(self, what):
        if self.masked > 0.1 * self.compared:
            print(f"FAIL {what}: {self.masked} elements in doubt, {self.compared} compared")
            self.failed += 1
        return self.failed


class Model:
    """name: of the files; generator: its module; entry, roots: of the requests;
    reference(args, extents, arguments): the results; tolerance: by element type;
    extents(rng): a random request; requests(): the text of the recorded ones."""

    def __init__(self, name, generator, entry, roots, reference, tolerance, extents, requests):
        self.name, self.generator, self.entry, self.roots = name, generator, entry, roots
        self.reference, self.tolerance = reference, tolerance
        self.extents, self.requests = extents, requests

    def check_files(self):
        failed = 0
        for suffix, want in ((".mlir", self.generator.module(self.generator.parse_args([]))),
                             (".requests.csv", self.requests())):
            with open(os.path.join(HERE, self.name + suffix)) as file:
                if file.read() != want:
                    print(f"FAIL {self.name}{suffix} is not what its script prints")
                    failed += 1
        return failed

    def check_sizes(self, flags, requests, policies, tools, seed):
        """Every policy over the requests, on inputs of its own."""
        args = self.generator.parse_args(flags.split())
        element = getattr(args, "type", "f32")
        compare = Comparison(self.tolerance[element])
        with tempfile.TemporaryDirectory() as folder:
            bundle = tools.compile(self.generator.module(args), folder)
            for number, policy in enumerate(policies):
                played = tools.play(bundle, self.entry, self.roots, requests, policy,
                                    seed + number, element)
                for extents, arguments, results in played:
                    names = " ".join(f"{n}={e}" for n, e in zip(self.roots, extents))
                    with np.errstate(all="ignore"):
                        want = self.reference(args, extents, arguments)
                    compare(f"{self.name} {flags} {policy} {names}", results, want)
        compare.close(f"{self.name} {flags}")
        print(f"{'FAIL' if compare.failed else 'ok'} {self.name} {flags or '(defaults)'}: "
              f"{len(requests)} requests under {', '.join(policies)}, max error "
              f"{compare.worst:.3g} (tolerance {compare.tolerance})", flush=True)
        return compare.failed


def main(model, fixed, others):
    """fixed: extents that are always tried; others: flags of further sizes."""
    parser = argparse.ArgumentParser(description=f"Checks {model.name} against NumPy.")
    parser.add_argument("--build-dir", default=os.environ.get("PGKP_BUILD_DIR",
                                                              os.path.join(ROOT, "build")))
    parser.add_argument("--count", type=int, default=6, help="random requests per module")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policies", default="off,eager", help="of the defaults, by comma")
    options = parser.parse_args()
    tools, rng = Tools(os.path.abspath(options.build_dir)), np.random.default_rng(options.seed)
    failed = model.check_files()
    for flags in ["", *others]:
        requests = fixed + [model.extents(rng) for _ in range(options.count)]
        # Variants of every key are compiled for the first module only: that takes its time.
        policies = options.policies.split(",") if not flags else ["off"]
        failed += model.check_sizes(flags, requests, policies, tools, options.seed)
    return 1 if failed else 0
