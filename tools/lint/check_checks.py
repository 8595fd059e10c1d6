#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lit tests have no line that looks like a check and is none.

A directive whose prefix no RUN line gives to FileCheck, a directive without its colon,
an expected-error without --verify-diagnostics, a test without a RUN line.
"""

import re

import common

SUFFIX = r"(?:-(?:NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+))?(?:\{LITERAL\})?"
DIRECTIVE = re.compile(r"^\s*(?://|#|;)\s*([A-Z][A-Z0-9_-]*?)(" + SUFFIX + r"):(?!:)")
NOT_CHECKS = {"RUN", "REQUIRES", "UNSUPPORTED", "XFAIL", "DEFINE", "REDEFINE", "END", "ALLOW_RETRIES",
              "NOTE", "COM", "TODO", "FIXME"}
EXPECTED = re.compile(r"\bexpected-(?:error|warning|remark|note)(?:-re)?\b")
TESTS = (".mlir", ".ll", ".td", ".test", ".mlirbc", ".lit")


def run_lines(text):
    """RUN commands, continuation lines joined."""
    lines = re.findall(r"\bRUN:\s*(.*)", text)
    joined, pending = [], ""
    for line in lines:
        pending += line
        if pending.endswith("\\"):
            pending = pending[:-1] + " "
            continue
        joined.append(pending)
        pending = ""
    return joined + ([pending] if pending else [])


def prefixes(commands):
    """The prefixes that the FileCheck commands use."""
    used = set()
    for command in commands:
        for part in re.split(r"\||&&|;", command):
            if "FileCheck" not in part:
                continue
            named = re.findall(r"--?check-prefix(?:es)?[= ](\S+)", part)
            used.update(p for names in named for p in names.split(",")) if named else used.add("CHECK")
    return used


def check_file(path, text):
    commands = run_lines(text)
    if not commands:
        yield path, 0, "has no RUN line"
        return
    used = prefixes(commands)
    missing_colon = re.compile(
        r"^\s*(?://|#|;)\s*(?:" + "|".join(sorted(map(re.escape, used), key=len, reverse=True) or ["(?!)"])
        + r")(?:-(?:NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+))?\s+(?!:)\S")
    # FileCheck takes a prefix anywhere in a line, with a comment sign before it or without.
    found = {prefix for prefix in used
             if re.search(r"(?<![\w-])" + re.escape(prefix) + SUFFIX + ":", text)}
    for number, line in enumerate(text.splitlines(), 1):
        directive = DIRECTIVE.match(line)
        if directive:
            prefix = directive.group(1)
            if prefix not in used and prefix not in NOT_CHECKS:
                yield path, number, f"'{prefix}{directive.group(2)}:' is no check: no RUN line uses this prefix"
        elif missing_colon.match(line):
            yield path, number, "looks like a check without its colon"
    if EXPECTED.search(text) and not any("verify-diagnostics" in c for c in commands):
        yield path, 0, "expects diagnostics, but no RUN line has --verify-diagnostics"
    for prefix in sorted(used - found):
        yield path, 0, f"a RUN line uses the prefix '{prefix}'; no line has it"


def check(root, build=None):
    findings = []
    for path in common.tracked_files(root):
        if path.startswith("test/") and path.endswith(TESTS) and \
                not path.startswith(("test/models/", "test/data/")) and "/Inputs/" not in path:
            findings += check_file(path, common.read(root, path))
    return findings


if __name__ == "__main__":
    common.main(check, __doc__)
