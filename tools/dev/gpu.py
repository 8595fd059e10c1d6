#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the tools on the machine they are on, one with a GPU: start, PTX, a short run.

Works on the unpacked package (where it lies at the top) and on build/. Standard library
only. Ends with "N passed, N failed"; what cannot be checked here is named and skipped.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def find_home():
    """The folder with bin/ and the folder with test/models/."""
    if os.path.isdir(os.path.join(HERE, "bin")):
        return HERE, HERE
    root = os.path.dirname(os.path.dirname(HERE))
    return os.path.join(root, "build"), root


def call(*command, timeout=300):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return -1, "", str(error)


def ptx_modules(text):
    """The PTX of every gpu.binary in a printed module; MLIR escapes bytes as two hex digits."""
    unescape = lambda m: "\\" if m.group(1) == "\\" else chr(int(m.group(1), 16))
    return [re.sub(r"\\(\\|[0-9A-Fa-f]{2})", unescape, literal)
            for literal in re.findall(r'assembly = "((?:[^"\\]|\\.)*)"', text)]


class Checks:
    def __init__(self, home, models):
        self.home, self.models = home, models
        self.model = os.path.join(models, "llama_decoder.mlir")
        self.passed = self.failed = self.skipped = 0

    def tool(self, name):
        return os.path.join(self.home, "bin", name)

    def expect(self, name, good, detail=""):
        if good:
            self.passed += 1
        else:
            self.failed += 1
        print(f"{'ok' if good else 'FAILED':7} {name}")
        if not good:
            print("".join(f"        {line}\n" for line in detail.strip().splitlines()[-20:]), end="")
        return good

    def skip(self, name, reason):
        self.skipped += 1
        print(f"skipped {name}: {reason}")

    def start(self):
        for name in ("pgkp-opt", "pgkp-compile", "pgkp-run", "pgkp-worker"):
            status, out, err = call(self.tool(name), "--version")
            self.expect(f"{name} --version", status == 0 and re.search(r"\d+\.\d+\.\d+", out), out + err)

    def ptx(self, folder, chip):
        status, out, err = call(self.tool("pgkp-opt"), self.model, f"--pgkp-to-nvvm-pipeline=chip={chip}")
        modules = ptx_modules(out)
        missing = set(re.findall(r"pgkp\.kernel \w* ?@(\w+)", out)) - {
            name for text in modules for name in re.findall(r"\.entry\s+pgkp_(\w+)", text)}
        if not self.expect(f"PTX for {chip}: {len(modules)} kernels", status == 0 and modules and
                           not missing, err or f"no PTX for {sorted(missing)}"):
            return
        calls = [text for text in modules if ".extern .func" in text]
        self.expect("no kernel calls a function outside itself", not calls, "\n".join(calls[:1]))
        # A wrapper may outlive the toolkit that it calls.
        assembler = next((p for p in (shutil.which("ptxas"), "/usr/local/cuda/bin/ptxas")
                          if p and call(p, "--version")[0] == 0), None)
        if assembler is None:
            self.skip("ptxas", "not found")
            return
        for n, text in enumerate(modules):
            source = os.path.join(folder, f"{n}.ptx")
            with open(source, "w") as file:
                file.write(text)
            status, said, err = call(assembler, f"-arch={chip}" + ("a" if f"{chip}a" in text else ""),
                                     source, "-o", source + ".cubin")
            names = ", ".join(re.findall(r"\.entry\s+(\w+)", text))
            self.expect(f"ptxas takes {names}", status == 0, said + err)

    def host_run(self, folder, requests):
        bundle, report = os.path.join(folder, "llama.pgkp"), os.path.join(folder, "run.json")
        status, out, err = call(self.tool("pgkp-compile"), self.model, "-o", bundle, "--targets=host")
        if not self.expect("pgkp-compile for the host", status == 0, out + err):
            return
        start = time.monotonic()
        status, out, err = call(self.tool("pgkp-run"), bundle, f"--requests={requests}", "--device=host",
                                "--policy=predictive", f"--cache-dir={folder}/store", "--pace=0",
                                "--check", "--quiet", f"--json={report}")
        if self.expect(f"pgkp-run on the host with --check ({time.monotonic() - start:.1f} s)",
                       status == 0, out + err):
            with open(report) as file:
                metrics = json.load(file)
            self.expect("its metrics name the host device", metrics.get("schema") == 1, str(metrics))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chip", default="sm_90")
    parser.add_argument("--requests", type=int, default=40, help="how many recorded forwards to run")
    arguments = parser.parse_args()
    home, root = find_home()
    checks = Checks(home, os.path.join(root, "test", "models"))
    if not os.path.exists(checks.tool("pgkp-opt")):
        sys.exit(f"error: {checks.tool('pgkp-opt')} was not found; run ./dev build or unpack the package")
    gpu = shutil.which("nvidia-smi")
    status, out, _ = call(gpu, "--query-gpu=name,driver_version", "--format=csv,noheader") if gpu else (1, "", "")
    print(f"GPU: {out.strip()}" if status == 0 else "GPU: none seen")
    with tempfile.TemporaryDirectory() as folder:
        requests = os.path.join(folder, "requests.csv")
        with open(os.path.join(checks.models, "llama_decoder.requests.csv")) as file:
            lines = file.read().splitlines()[:arguments.requests + 1]
        with open(requests, "w") as out:
            out.write("\n".join(lines) + "\n")
        checks.start()
        checks.ptx(folder, arguments.chip)
        checks.host_run(folder, requests)
    line = f"{checks.passed} passed, {checks.failed} failed"
    print(line + (f", {checks.skipped} skipped" if checks.skipped else ""))
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
