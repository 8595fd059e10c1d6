# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the checks share: which files there are, and how a finding is told."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CANNOT_RUN = 77


def tracked_files(root):
    """Paths of the project's files, relative to root, sorted. Without git: all but build folders."""
    git = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True)
    if git.returncode == 0 and git.stdout:
        names = git.stdout.decode().split("\0")
        return sorted(n for n in names if n and os.path.isfile(os.path.join(root, n)))
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith(".git") and not f.startswith("build")]
        found += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), errors="replace") as file:
        return file.read()


def report(findings):
    """Prints "path:line: message" for each finding; the exit status."""
    for path, line, message in findings:
        print(f"{path}:{line}: {message}" if line else f"{path}: {message}")
    return 1 if findings else 0


def main(check, description):
    """A check is a function of the root (and the build folder) that returns findings."""
    import argparse
    parser = argparse.ArgumentParser(description=description.strip().splitlines()[0])
    parser.add_argument("--root", default=ROOT)
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"))
    arguments = parser.parse_args()
    sys.exit(report(check(arguments.root, os.path.abspath(arguments.build_dir))))
