#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generates the reference pages of the dialect and the passes from their ODS text."""

import argparse
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INCLUDE = os.path.join(ROOT, "include", "pgkp")
LLVM = os.environ.get("PGKP_LLVM_DIR", "/usr/lib/llvm-22")


def pages():
    """(page, source, generator arguments), for every table that is there."""
    dialect = os.path.join(INCLUDE, "Dialect", "IR")
    yield "dialect.md", os.path.join(dialect, "PGKPOps.td"), ["-gen-dialect-doc", "-dialect=pgkp"]
    yield "interfaces.md", os.path.join(dialect, "PGKPInterfaces.td"), ["-gen-op-interface-docs"]
    for folder, _, names in sorted(os.walk(INCLUDE)):
        if "Passes.td" in names:
            room = os.path.relpath(folder, INCLUDE).replace(os.sep, "-").lower()
            yield f"passes-{room}.md", os.path.join(folder, "Passes.td"), ["-gen-pass-doc"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "docs"))
    arguments = parser.parse_args()
    tool = os.path.join(LLVM, "bin", "mlir-tblgen")
    if not os.path.exists(tool):
        sys.exit(f"error: {tool} was not found; PGKP_LLVM_DIR names the folder of LLVM 22")
    shutil.rmtree(arguments.out, ignore_errors=True)
    os.makedirs(arguments.out)
    made = []
    for page, source, generator in pages():
        target = os.path.join(arguments.out, page)
        done = subprocess.run([tool, *generator, f"-I{ROOT}/include", f"-I{os.path.dirname(source)}",
                               f"-I{LLVM}/include", source, "-o", target],
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"error: {os.path.relpath(source, ROOT)}: {done.stderr.strip()}")
        if not os.path.getsize(target):
            sys.exit(f"error: {os.path.relpath(source, ROOT)} gave an empty page")
        made.append(page)
    environment = os.path.join(ROOT, "docs", "runtime", "environment.md")
    subprocess.run([sys.executable, os.path.join(ROOT, "tools", "lint", "check_env.py"), "--write"],
                   check=True)
    shutil.copy(environment, arguments.out)
    made.append("environment.md")
    print(f"{len(made)} pages in {os.path.relpath(arguments.out)}: {', '.join(made)}")


if __name__ == "__main__":
    main()
