#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every check of this folder; exit 1 where one found something."""

import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKS = sorted(name for name in os.listdir(HERE) if name.startswith("check_") and name.endswith(".py"))


def run_check(name, build):
    """Exit status and output of one check."""
    done = subprocess.run([sys.executable, os.path.join(HERE, name), f"--build-dir={build}"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", default="build")
    arguments = parser.parse_args()
    failed = 0
    for name in CHECKS:
        status, output = run_check(name, arguments.build_dir)
        print(f"{'ok' if status == 0 else 'FAILED':6} {name}")
        print("".join(f"       {line}\n" for line in output.splitlines()), end="")
        failed += status != 0
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
