#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the recorded llama decoder layer under every policy and prints one table.

Cold (an empty store each) under off, eager, lazy, predictive and oracle; then eager and
predictive again with the profile and with the store that the cold eager run left: it has
compiled and measured every key that the requests use. Every run has the same seconds of
lead before the first arrival. The bundle is built once. Metrics are read from the JSON
that pgkp-run writes; it stays in the work folder.

Then the whole 4-layer model serves 500 recorded forwards under lazy, eager and predictive
with eager's profile. --model plays another model of test/models instead of the layer.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = os.path.join(ROOT, "test", "models")
WHOLE_MODEL = "llama_model"
COLD = ["off", "eager", "lazy", "predictive", "oracle"]

# Column title, JSON path, format.
COLUMNS = [
    ("hit rate", "preparation.hit_rate", "{:.3f}"),
    ("request hit", "preparation.request_hit_rate", "{:.3f}"),
    ("late", "preparation.late", "{:d}"),
    ("lost s", "lost.total_s", "{:.3f}"),
    ("cold start ms", "cold_start_ms", "{:.1f}"),
    ("first p50 ms", "first_invocation_ms.p50", "{:.3f}"),
    ("first p99 ms", "first_invocation_ms.p99", "{:.3f}"),
    ("invoc p99 us", "invocation_us.p99", "{:.1f}"),
    ("jobs", "compile.jobs", "{:d}"),
    ("cpu s", "compile.cpu_s", "{:.2f}"),
    ("wasted s", "compile.wasted_cpu_s", "{:.2f}"),
    ("loads", "load.count", "{:d}"),
    ("kernel s", "kernel_s", "{:.3f}"),
    ("completion s", "completion_s", "{:.2f}"),
]


def lookup(metrics, path):
    for part in path.split("."):
        if not isinstance(metrics, dict):
            return None
        metrics = metrics.get(part)
    return metrics


def cell(metrics, path, form):
    value = lookup(metrics, path)
    if value is None:
        return "-"
    return form.format(int(value) if form.endswith("d}") else value)


def table(rows):
    """rows: (name, metrics); the lines of a table with right-aligned columns."""
    lines = [["run"] + [title for title, _, _ in COLUMNS]]
    lines += [[name] + [cell(metrics, path, form) for _, path, form in COLUMNS]
              for name, metrics in rows]
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    text = ["  ".join([line[0].ljust(widths[0])] +
                      [value.rjust(width) for value, width in zip(line[1:], widths[1:])])
            for line in lines]
    text.insert(1, "  ".join("-" * width for width in widths))
    return text


def run(command):
    """Standard output of the command; ends the demo with its error line where it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.stderr.write(done.stderr)
        sys.exit(f"error: {os.path.basename(command[0])} ended with {done.returncode}: "
                 f"{' '.join(command)}")
    return done.stdout


def shorten(line, width=118):
    return line if len(line) <= width else line[:width - 4].rstrip() + " ..."


def excerpt(text, dispatches=4):
    """Of the prepared module: one kernel's head, and the entry's prepares and dispatches."""
    lines = text.splitlines()
    kernel = next((line for line in lines if re.match(r"\s*pgkp\.kernel ", line)), None)
    start = next((n for n, line in enumerate(lines) if re.match(r"\s*func\.func @", line)), None)
    out = [kernel, "  ..."] if kernel else []
    if start is None:
        return out
    out.append(lines[start])
    left = dispatches
    for line in lines[start + 1:]:
        if re.match(r"\s*func\.func |\s*pgkp\.kernel ", line):
            break
        if re.search(r"\bpgkp\.(prepare|observe|await)\b", line):
            out.append(line)
        elif re.search(r"\bpgkp\.dispatch\b", line):
            if left > 0:
                out.append(line)
            left -= 1
    if left < 0:
        out.append(f"    ... {-left} more dispatches")
    return [shorten(line) for line in out]


def limit_requests(source, target, count):
    with open(source) as file:
        lines = file.read().splitlines()
    with open(target, "w") as out:
        out.write("\n".join(lines[:count + 1]) + "\n")
    return min(count, len(lines) - 1)


class Session:
    """One model's bundle and requests, played under policies; keeps the table's rows."""

    def __init__(self, build, work, model, count, arguments):
        self.build, self.arguments, self.model = build, arguments, model
        self.work = os.path.join(work, model)
        os.makedirs(self.work)
        self.source = os.path.join(MODELS, model + ".mlir")
        self.bundle = os.path.join(self.work, model + ".pgkp")
        self.requests = os.path.join(self.work, "requests.csv")
        self.count = limit_requests(os.path.join(MODELS, model + ".requests.csv"), self.requests,
                                    count)
        self.results, self.rows = {}, []
        self.profile = os.path.join(self.work, "eager.profile")
        start = time.monotonic()
        run([self.tool("pgkp-compile"), self.source, "-o", self.bundle, "--targets=host"])
        self.build_s = time.monotonic() - start

    def tool(self, name):
        return os.path.join(self.build, "bin", name)

    def store(self, name):
        return os.path.join(self.work, f"store-{name}")

    def play(self, name, policy, store, *extra):
        report = os.path.join(self.work, re.sub(r"\W+", "-", name) + ".json")
        command = [self.tool("pgkp-run"), self.bundle, f"--requests={self.requests}", "--device=host",
                   f"--policy={policy}", f"--cache-dir={self.store(store)}",
                   f"--pace={self.arguments.pace:g}", f"--lead={self.arguments.lead:g}",
                   f"--json={report}", "--quiet", *extra]
        if self.arguments.workers is not None:
            command.append(f"--workers={self.arguments.workers}")
        if sys.stdout.isatty():
            print(f"\r\033[Krunning: {self.model}, {name}", end="", flush=True)
        run(command)
        with open(report) as file:
            self.results[name] = json.load(file)
        self.rows.append((name, self.results[name]))

    def print_table(self):
        if sys.stdout.isatty():
            print("\r\033[K", end="")
        print("\n".join(table(self.rows)))


def play_layer(session):
    """Every policy, and what a saved profile and a saved store are worth."""
    for policy in COLD:
        session.play(policy, policy, policy,
                     *([f"--save-profile={session.profile}"] if policy == "eager" else []))
    for policy in ("eager", "predictive"):
        session.play(f"{policy}, saved profile", policy, f"{policy}-profile",
                     f"--profile={session.profile}")
    for policy in ("eager", "predictive"):
        shutil.copytree(session.store("eager"), session.store(f"{policy}-again"))
        session.play(f"{policy}, saved store", policy, f"{policy}-again")


def play_model(session):
    """Predictive with a profile, lazy and eager beside it."""
    session.play("lazy", "lazy", "lazy")
    session.play("eager", "eager", "eager", f"--save-profile={session.profile}")
    session.play("predictive, saved profile", "predictive", "predictive", f"--profile={session.profile}")


def lost_share(results):
    for name, metrics in results.items():
        lost, all_s = lookup(metrics, "lost.total_s"), lookup(metrics, "completion_s")
        if lost is not None and all_s:
            yield f"{name}: lost {100 * lost / all_s:.3f} % of {all_s:.2f} s"


def claims(results):
    """What the runs show of the two promises about a saved store."""
    again = lookup(results["eager, saved store"], "compile.jobs")
    yield f"eager with eager's store: {again} compile jobs (promised: 0)"
    cold = lookup(results["eager"], "first_invocation_ms.p99")
    warm = lookup(results["predictive, saved store"], "first_invocation_ms.p99")
    if cold and warm is not None:
        yield (f"first invocation p99: predictive with its store {warm:.3f} ms, cold eager "
               f"{cold:.3f} ms, ratio {warm / cold:.3f} (promised: at most 0.1)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="./dev demo")
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"))
    parser.add_argument("--model", default="llama_decoder", help="a model of test/models to play")
    parser.add_argument("--requests", type=int, default=325, help="how many of its recorded forwards")
    parser.add_argument("--model-requests", type=int, default=500,
                        help=f"how many forwards of {WHOLE_MODEL}; 0: none")
    parser.add_argument("--lead", type=float, default=3.0,
                        help="seconds of preparation before the first arrival")
    parser.add_argument("--pace", type=float, default=8.0,
                        help="arrivals this many times faster than recorded; 0: back to back")
    parser.add_argument("--workers", type=int, help="compiler processes at most")
    arguments = parser.parse_args()
    if arguments.requests < 1:
        parser.error(f"--requests is {arguments.requests}; expected at least 1")
    if not os.path.exists(os.path.join(MODELS, arguments.model + ".mlir")):
        parser.error(f"--model is '{arguments.model}'; expected the name of a module in {MODELS}")
    if arguments.pace < 0:
        parser.error(f"--pace is {arguments.pace}; expected 0 or more")

    build = os.path.abspath(arguments.build_dir)
    work = os.path.join(build, "demo")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    session = Session(build, work, arguments.model, arguments.requests, arguments)

    print(f"{arguments.model} after pgkp-prepare-pipeline, an excerpt:\n")
    print("\n".join(excerpt(run([session.tool("pgkp-opt"), session.source, "--pgkp-prepare-pipeline"]))))
    pace = (f"arrivals at {arguments.pace:g} times the recorded pace" if arguments.pace
            else "arrivals back to back")
    print(f"\n{session.count} recorded forwards of {arguments.model} (f32; extents capped as "
          f"test/models/make_requests.py says), {pace}\nafter {arguments.lead:g} s of lead, on the "
          f"host device. Bundle built in {session.build_s:.1f} s.\n", flush=True)
    play_layer(session)
    session.print_table()
    print("\n-: not applicable or not measured. Names and definitions: docs/metrics.md; JSON of each run: "
          f"{os.path.relpath(work)}/")
    print("\n".join(claims(session.results)))
    if arguments.model_requests > 0:
        whole = Session(build, work, WHOLE_MODEL, arguments.model_requests, arguments)
        print(f"\n{whole.count} recorded forwards of {WHOLE_MODEL}: embedding, four layers, output projection. "
              f"Bundle built in {whole.build_s:.1f} s.\n", flush=True)
        play_model(whole)
        whole.print_table()
        print("\n".join(lost_share(whole.results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
