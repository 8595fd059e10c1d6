#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Environment variables: Env.def names them all, and its page is up to date.

PGKP_* is read through base/Env.h alone, tests excepted. --write writes the page.
"""

import os
import re
import sys

import common

TABLE = "runtime/src/base/Env.def"
PAGE = "docs/runtime/environment.md"
READER = "runtime/src/base/Env.cpp"
STRING = r'"((?:[^"\\]|\\.)*)"'
ENTRY = re.compile(r"^PGKP_ENV\(\s*(PGKP_\w+)\s*,\s*" + r"\s*,\s*".join([STRING] * 3) + r"\s*\)", re.M)
DIRECT = re.compile(r'\bgetenv\s*\(\s*"PGKP_')
THROUGH = re.compile(r'\bgetEnv(?:Number|Flag)?\s*\(\s*"(\w+)"')


def entries(text):
    return ENTRY.findall(text)


def page(text):
    def cell(value):
        return value.replace("|", "\\|")
    rows = "".join(f"| `{name}` | {cell(kind)} | {cell(default) or 'empty'} | {cell(meaning)} |\n"
                   for name, kind, default, meaning in entries(text))
    return ("<!-- Generated from runtime/src/base/Env.def by tools/lint/check_env.py --write. -->\n"
            "# Environment variables\n\n"
            "An empty variable counts as unset. A number that cannot be read, or that is out of\n"
            "range, is reported on standard error and ignored.\n\n"
            "| variable | value | default | meaning |\n| --- | --- | --- | --- |\n" + rows)


def check(root, build=None):
    table = common.read(root, TABLE)
    names = [name for name, *_ in entries(table)]
    findings = []
    if len(names) != len(re.findall(r"^PGKP_ENV\(", table, re.M)) or not names:
        findings.append((TABLE, 0, "has a row that is not PGKP_ENV(name, \"type\", \"default\", \"text\")"))
    for name in sorted({n for n in names if names.count(n) > 1}):
        findings.append((TABLE, 0, f"names '{name}' twice"))
    if not os.path.exists(os.path.join(root, PAGE)) or common.read(root, PAGE) != page(table):
        findings.append((PAGE, 0, "is not what Env.def gives; run tools/lint/check_env.py --write"))
    for path in common.tracked_files(root):
        if not path.endswith((".h", ".cpp")) or path == READER or "/tests/" in path:
            continue
        for number, line in enumerate(common.read(root, path).splitlines(), 1):
            if DIRECT.search(line):
                findings.append((path, number, "reads PGKP_* with getenv; use base/Env.h"))
            for name in THROUGH.findall(line):
                if name.startswith("PGKP_") and name not in names:
                    findings.append((path, number, f"'{name}' is not in Env.def"))
    return findings


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        target = os.path.join(common.ROOT, PAGE)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w") as out:
            out.write(page(common.read(common.ROOT, TABLE)))
        sys.exit(0)
    common.main(check, __doc__)
