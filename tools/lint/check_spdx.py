#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every source file names its licence in its first three lines."""

import os

import common

LINE = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
SUFFIXES = (".h", ".c", ".cpp", ".cu", ".def", ".inc", ".td", ".fbs", ".py", ".sh", ".cmake", ".map",
            ".in")
NAMES = {"CMakeLists.txt", "dev", "lit.cfg.py", "run"}


def check(root, build=None):
    findings = []
    for path in common.tracked_files(root):
        name = os.path.basename(path)
        if name in NAMES or name.endswith(SUFFIXES):
            head = common.read(root, path).splitlines()[:3]
            if not any(LINE in line for line in head):
                findings.append((path, 1, f"expected '{LINE}'"))
    return findings


if __name__ == "__main__":
    common.main(check, __doc__)
