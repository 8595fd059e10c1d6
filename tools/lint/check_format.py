#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C++ files are as clang-format 14 and .clang-format say. --fix rewrites them."""

import os
import re
import shutil
import subprocess
import sys

import common

SUFFIXES = (".h", ".c", ".cpp", ".cu")


def clang_format():
    """clang-format 14: other versions break lines elsewhere."""
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path and re.search(r"version 14\.", subprocess.run([path, "--version"], capture_output=True,
                                                              text=True).stdout):
            return path
    return None


def sources(root):
    return [p for p in common.tracked_files(root) if p.endswith(SUFFIXES)]


def check(root, build=None):
    tool, files = clang_format(), sources(root)
    if tool is None:
        return [("clang-format", 0, "version 14 was not found")]
    if not files:
        return []
    done = subprocess.run([tool, "--style=file", "-n", "--Werror", *files], cwd=root,
                          capture_output=True, text=True)
    first = {}
    for path, line in re.findall(r"^(\S+?):(\d+):\d+: error: code should be clang-formatted",
                                 done.stderr, re.M):
        first.setdefault(path, line)
    if done.returncode and not first:
        return [("clang-format", 0, done.stderr.strip())]
    return [(path, line, "is not formatted; ./dev format does it") for path, line in first.items()]


if __name__ == "__main__":
    if sys.argv[1:] == ["--fix"]:
        tool = clang_format() or sys.exit("error: clang-format 14 was not found")
        sys.exit(subprocess.run([tool, "--style=file", "-i", *sources(common.ROOT)],
                                cwd=common.ROOT).returncode)
    common.main(check, __doc__)
