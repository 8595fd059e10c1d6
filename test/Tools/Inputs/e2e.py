#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""End-to-end runs of pgkp-run; each subcommand is one test and exits non-zero on the first
expectation that does not hold."""

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

POLICIES = ["off", "eager", "lazy", "predictive", "oracle"]


class Tools:
    def __init__(self, bin_dir, model, work):
        self.bin, self.model, self.work = bin_dir, model, work
        self.bundle = os.path.join(work, "model.pgkp")

    def compile(self, source=None):
        run([f"{self.bin}/pgkp-compile", source or self.model + ".mlir", "-o", self.bundle, "--quiet"])

    def requests(self, count, extents=None):
        """The first `count` recorded requests, or requests with the given extents."""
        path = os.path.join(self.work, "requests.csv")
        with open(self.model + ".requests.csv") as f:
            rows = list(csv.reader(f))
        header, rows = rows[0], rows[1:]
        if extents:
            rows = [[str(0.05 * i), rows[0][1], *map(str, e)] for i, e in enumerate(extents)]
        with open(path, "w") as f:
            csv.writer(f).writerows([header] + rows[:count])
        return path

    def args(self, policy, requests, *more):
        out = os.path.join(self.work, f"{policy}.json")
        return [f"{self.bin}/pgkp-run", self.bundle, f"--requests={requests}", f"--policy={policy}",
                "--pace=0", f"--json={out}", "--quiet", "--check", *more], out

    def run(self, policy, requests, *more, env=None):
        args, out = self.args(policy, requests, *more)
        run(args, env)
        with open(out) as f:
            return json.load(f)


def run(args, env=None):
    done = subprocess.run(args, capture_output=True, text=True, env={**os.environ, **(env or {})})
    if done.returncode != 0:
        sys.exit(f"{' '.join(args)}\nexit status {done.returncode}\n{done.stderr}")
    return done


def expect(what, holds, detail=""):
    print(("ok: " if holds else "FAILED: ") + what + (f" ({detail})" if detail else ""))
    if not holds:
        sys.exit(1)


# Ragged, aligned, decode and prefill; every class of the decoder's kernels turns up.
EXTENTS = [(1, 16, 0), (1, 1, 16), (1, 1, 17), (3, 5, 0), (3, 1, 5), (4, 32, 0), (4, 1, 32),
           (2, 7, 0), (2, 1, 7), (1, 33, 0), (1, 1, 33), (4, 48, 16), (1, 64, 64), (1, 1, 128)] * 3


def policies(t):
    """No policy changes an output; what is in the store is not compiled again."""
    t.compile()
    requests = t.requests(len(EXTENTS), EXTENTS)
    for policy in POLICIES:
        m = t.run(policy, requests, "--cache-dir=none", "--lead=0.2")
        expect(f"{policy}: names itself", m["policy"] == policy)
        if policy == "off":
            expect("off: compiles nothing", m["compile"]["jobs"] == 0)
        if policy == "eager":
            expect("eager: compiles", m["compile"]["jobs"] > 0)
    cache = os.path.join(t.work, "cache")
    cold = t.run("eager", requests, f"--cache-dir={cache}")
    warm = t.run("eager", requests, f"--cache-dir={cache}")
    expect("eager after eager compiles nothing", warm["compile"]["jobs"] == 0, f"cold {cold['compile']['jobs']}")
    expect("eager after eager measures nothing", warm["tuning"]["evaluations"] == 0)
    for policy in POLICIES:
        m = t.run(policy, requests, f"--cache-dir={cache}", "--workers=0")
        expect(f"{policy} with the store needs no worker", m["compile"]["jobs"] == 0)
    profile = os.path.join(t.work, "profile")
    t.run("eager", requests, f"--cache-dir={cache}", f"--save-profile={profile}")
    m = t.run("predictive", requests, f"--cache-dir={cache}", f"--profile={profile}", "--lead=1")
    expect("profile, store and lead: most first uses are ready", m["preparation"]["hit_rate"] is None or
           m["preparation"]["hit_rate"] >= 0.9, str(m["preparation"]["hit_rate"]))


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(x) for x in f.read().split()]
    except OSError:
        pass
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as f:
                    if int(f.read().rsplit(")", 1)[1].split()[1]) == pid:
                        found.append(int(entry))
            except OSError:
                continue
    return found


def all_children(pid):
    """Threads can have children of their own."""
    found = set()
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as f:
                found.update(int(x) for x in f.read().split())
    except OSError:
        pass
    return found or set(children(pid))


def faults(t):
    """Workers killed and stopped in the middle change no output and no exit status."""
    t.compile()
    requests = t.requests(len(EXTENTS), EXTENTS)
    for sig, counter in ((signal.SIGKILL, "killed"), (signal.SIGSTOP, "hung")):
        args, out = t.args("eager", requests, "--cache-dir=none", "--workers=1")
        process = subprocess.Popen(args, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "PGKP_JOB_TIMEOUT_S": "5"})
        injected, seen, deadline = 0, set(), time.time() + 60
        while process.poll() is None and injected < 3 and time.time() < deadline:
            for worker in all_children(process.pid) - seen:
                time.sleep(0.25)  # in the middle of a job
                seen.add(worker)
                try:
                    os.kill(worker, sig)
                    injected += 1
                except ProcessLookupError:
                    pass
            time.sleep(0.01)
        _, stderr = process.communicate(timeout=300)
        expect(f"{counter}: exit status 0", process.returncode == 0, stderr.strip()[-300:])
        with open(out) as f:
            m = json.load(f)
        expect(f"{counter}: faults were injected", injected > 0)
        expect(f"workers.{counter} equals the faults", m["workers"][counter] == injected,
               f"{m['workers']}, injected {injected}")


def static(t):
    """Nothing dynamic: no prepare, no thread, no worker."""
    source = os.path.join(t.work, "static.mlir")
    with open(source, "w") as f:
        f.write("""func.func @twice(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %r = linalg.add ins(%x, %x : tensor<64x64xf32>, tensor<64x64xf32>)
                  outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
""")
    t.compile(source)
    requests = os.path.join(t.work, "requests.csv")
    with open(requests, "w") as f:
        f.write("arrival_s,entry\n" + "".join(f"{i * 0.5},twice\n" for i in range(4)))
    out = os.path.join(t.work, "m.json")
    process = subprocess.Popen([f"{t.bin}/pgkp-run", t.bundle, f"--requests={requests}", "--check", "--quiet",
                                "--policy=predictive", "--cache-dir=none", f"--json={out}"])
    time.sleep(0.7)
    threads, workers = len(os.listdir(f"/proc/{process.pid}/task")), all_children(process.pid)
    expect("runs", process.wait(timeout=60) == 0)
    expect("one thread", threads == 1, str(threads))
    expect("no worker", not workers)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("test", choices=["policies", "faults", "static"])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--model", required=True, help="path of the model without .mlir")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        globals()[options.test](Tools(options.bin, options.model, work))


if __name__ == "__main__":
    main()
