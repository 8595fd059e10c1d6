#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs PGKP's test suites over a finished build and counts them in one last line.

Every suite reports through a file (ctest and lit: JUnit XML) or an exit status, never
through text made for people. A suite that finds no test counts as one failure.
"""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree as xml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED = 77  # the exit status by which a script says that it cannot run here
DEFAULT = ["lint", "unit", "lit", "models", "runtime-only"]
FULL = DEFAULT + ["asan", "tsan"]
TAIL_LINES = 40


class Results:
    """What each test did; prints failures as they come and everything else at the end."""

    def __init__(self):
        self.passed, self.failed, self.skipped = [], [], []

    def add(self, suite, name, outcome, detail=""):
        """outcome: "passed", "failed" or "skipped"; detail: output or reason."""
        getattr(self, outcome).append((suite, name, detail.strip()))
        if outcome == "failed":
            print(f"FAILED {suite}: {name}")
            for line in detail.strip().splitlines()[-TAIL_LINES:]:
                print(f"    {line}")
            sys.stdout.flush()

    def close(self):
        for suite, name, reason in self.skipped:
            print(f"skipped {suite}: {name}: {reason or 'no reason given'}")
        for suite, name, _ in self.failed:
            print(f"failed {suite}: {name}")
        line = f"{len(self.passed)} passed, {len(self.failed)} failed"
        if self.skipped:
            line += f", {len(self.skipped)} skipped"
        print(line)
        return 1 if self.failed else 0


def shared_data():
    """Where the traces of others are, for tests that read them: a folder beside the checkout."""
    folder = os.path.join(os.path.dirname(ROOT), "shared", "data")
    return {"PGKP_TEST_DATA": folder} if os.path.isdir(folder) else {}


def execute(command, timeout, env=None):
    """Exit status (None: timed out) and both outputs."""
    try:
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout,
                              env={**shared_data(), **os.environ, **(env or {})})
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as error:
        return None, (error.stdout or b"").decode(errors="replace") + f"\ntimed out after {timeout} s"
    except OSError as error:
        return 127, f"error: {command[0]}: {error.strerror}"


def jobs():
    return str(len(os.sched_getaffinity(0)))


def gtest_skip_reason(output):
    """What the test gave to GTEST_SKIP()."""
    lines = output.splitlines()
    for n, line in enumerate(lines):
        if re.search(r": Skipped$", line) and n + 1 < len(lines):
            return lines[n + 1].strip()
    return ""


def fresh_report(build, name):
    report = os.path.join(build, "test-results", name)
    os.makedirs(os.path.dirname(report), exist_ok=True)
    if os.path.exists(report):
        os.remove(report)
    return report


def count(results, suite, report, status, output, read_case):
    """Adds every test case of a JUnit report; status and output are those of the runner.

    A runner that wrote no report, found no test, or failed without naming a failed test
    is a failure of its own.
    """
    runner = "the test runner"
    if not os.path.exists(report):
        results.add(suite, runner, "failed", f"{output}\nended with {status} and no report")
        return
    before = len(results.failed)
    cases = list(xml.parse(report).getroot().iter("testcase"))
    for case in cases:
        results.add(suite, *read_case(case))
    if not cases:
        results.add(suite, runner, "failed", f"{output}\nfound no test")
    elif status != 0 and len(results.failed) == before:
        results.add(suite, runner, "failed", f"{output}\nended with {status}")


def read_ctest_case(case):
    output = case.findtext("system-out") or ""
    kind, failure, skipped = case.get("status"), case.find("failure"), case.find("skipped")
    if kind == "run" and failure is None:
        return case.get("name"), "passed", ""
    if kind == "disabled":
        return case.get("name"), "skipped", "disabled"
    if kind == "notrun" and skipped is not None and "SKIP" in (skipped.get("message") or ""):
        return case.get("name"), "skipped", gtest_skip_reason(output)
    message = failure.get("message", "") if failure is not None else f"status '{kind}'"
    return case.get("name"), "failed", f"{output}\n{message}"


def read_lit_case(case):
    name = "/".join(filter(None, [(case.get("classname") or "").replace(".", "/"), case.get("name")]))
    failure, skipped = case.find("failure"), case.find("skipped")
    if failure is not None:
        return name, "failed", failure.text or ""
    if skipped is not None:
        return name, "skipped", skipped.get("message") or skipped.text or ""
    return name, "passed", ""


def run_ctest(results, suite, build, env=None, wrapper=()):
    report = fresh_report(build, "ctest.xml")
    status, output = execute([*wrapper, "ctest", "--test-dir", build, "--output-junit",
                              os.path.abspath(report), "-j", jobs(), "--timeout", "300",
                              "--no-tests=error"], 3000, env)
    count(results, suite, report, status, output, read_ctest_case)


def run_unit(results, build):
    run_ctest(results, "unit", build)


def run_lit(results, build):
    tests = os.path.join(build, "test")
    site = os.path.join(tests, "lit.site.cfg.py")
    if not os.path.exists(site):
        results.add("lit", "check-pgkp", "failed", f"{site} was not configured")
        return
    with open(site) as file:
        found = re.search(r'^config\.llvm_tools_dir = .*?"(.*?)"', file.read(), re.M)
    lit = os.path.join(found.group(1), "lit") if found else "lit"
    report = fresh_report(build, "lit.xml")
    status, output = execute([lit, "-q", "-j", jobs(), "--timeout", "300",
                              "--xunit-xml-output", report, tests], 3000)
    count(results, "lit", report, status, output, read_lit_case)


def run_models(results, build):
    folder = os.path.join(ROOT, "test", "models")
    names = sorted(name for name in os.listdir(folder) if re.fullmatch(r"check_\w+\.py", name))
    for name in names:
        status, output = execute([sys.executable, os.path.join(folder, name)], 900,
                                 {"PGKP_BUILD_DIR": build})
        outcome = {0: "passed", SKIPPED: "skipped"}.get(status, "failed")
        results.add("models", name, outcome, output)
    if not names:
        results.add("models", "check_*.py", "failed", "found no test")


def load(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(path))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


def run_unittests(results, suite, path):
    """A Python unittest file, one result for each of its tests."""

    class Collect(unittest.TestResult):
        def addSuccess(self, test):
            results.add(suite, test.id(), "passed")

        def addFailure(self, test, error):
            results.add(suite, test.id(), "failed", self._exc_info_to_string(error, test))

        addError = addFailure

        def addSkip(self, test, reason):
            results.add(suite, test.id(), "skipped", reason)

    loaded = unittest.defaultTestLoader.loadTestsFromModule(load(path))
    if not loaded.countTestCases():
        results.add(suite, os.path.basename(path), "failed", "found no test")
    loaded.run(Collect())


def run_lint(results, build):
    lint = load(os.path.join(ROOT, "tools", "lint", "run.py"))
    for check in lint.CHECKS:
        status, output = lint.run_check(check, build)
        outcome = {0: "passed", SKIPPED: "skipped"}.get(status, "failed")
        results.add("lint", check, outcome, output)
    run_unittests(results, "lint", os.path.join(ROOT, "tools", "lint", "test", "test_lint.py"))
    run_unittests(results, "lint", os.path.join(ROOT, "tools", "dev", "test_dev.py"))


def configure_and_build(results, suite, preset, wrapper=(), build=None):
    """The build folder of the preset; None where it failed (and was counted)."""
    build = build or f"build-{preset}"
    for command in (["cmake", "--preset", preset, "-B", build], ["cmake", "--build", build, "-j", jobs()]):
        status, output = execute([*wrapper, *command], 3000)
        if status != 0:
            results.add(suite, " ".join(command), "failed", output)
            return None
    return build


def run_runtime_only(results, build):
    """The runtime where MLIR, LLVM and CUDA are absent: their folders are hidden, where
    this process may hide them, from configuration, build and tests alike."""
    hide = os.path.join(ROOT, "tools", "dev", "without_llvm.sh")
    status, output = execute([hide, "true"], 60)
    wrapper = [hide] if status == 0 else []
    results.add("runtime-only", "LLVM hidden by a mount namespace",
                "passed" if wrapper else "skipped", output)
    # A folder of its own: one that was configured elsewhere names programs that are hidden now.
    folder = configure_and_build(results, "runtime-only", "runtime-only", wrapper, "build-without-llvm")
    if folder is None:
        return
    results.add("runtime-only", "build", "passed")
    run_ctest(results, "runtime-only", folder, wrapper=wrapper)


def run_sanitizer(results, name):
    folder = configure_and_build(results, name, name)
    if folder is not None:
        run_ctest(results, name, folder, {
            "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
            "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
        })


SUITES = {
    "unit": run_unit,
    "lit": run_lit,
    "models": run_models,
    "lint": run_lint,
    "runtime-only": run_runtime_only,
    "asan": lambda results, build: run_sanitizer(results, "asan"),
    "tsan": lambda results, build: run_sanitizer(results, "tsan"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--full", action="store_true", help="the sanitizers, too")
    parser.add_argument("suites", nargs="*", choices=[[], *SUITES], metavar="SUITE")
    arguments = parser.parse_args()
    results = Results()
    for suite in arguments.suites or (FULL if arguments.full else DEFAULT):
        start, count = time.monotonic(), len(results.passed) + len(results.failed)
        print(f"-- {suite}", flush=True)
        SUITES[suite](results, arguments.build_dir)
        count = len(results.passed) + len(results.failed) - count
        print(f"   {count} run in {time.monotonic() - start:.1f} s", flush=True)
    return results.close()


if __name__ == "__main__":
    sys.exit(main())
