#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Includes go in one direction.

Runtime: a room includes itself and the rooms that runtime/CMakeLists.txt lets it depend
on; forecast, planner, governor, store and tuner never see each other; nothing of LLVM,
MLIR, lld or CUDA. Compiler: of the runtime only schema/ and base/; rooms of lib/ in the
order of LIB_ROOMS. The C ABI headers include the C library alone. Tools: those that run
in the application's place include nothing of the compiler.
"""

import os
import re

import common

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ROOM = re.compile(r"^pgkp_add_room\((\S+)([^)]*)\)", re.M)
STRANGERS = ("forecast", "planner", "governor", "store", "tuner")
COMPILER = ("mlir/", "mlir-c/", "llvm/", "llvm-c/", "lld/", "clang/")
# CUDA is loaded with dlopen, so our own declarations stand for its headers.
CUDA = re.compile(r"^(cuda|nvJitLink|nvrtc|nvml|cublas|cupti)\w*\.h$")
# What each room of include/pgkp and lib may include of the others.
LIB_ROOMS = {
    "Dialect": set(),
    "Analysis": {"Dialect"},
    "Transforms": {"Dialect", "Analysis", "Codegen"},
    "Conversion": {"Dialect", "Analysis"},
    "Codegen": {"Dialect", "Analysis"},
    "Target": {"Dialect", "Analysis", "Codegen", "Conversion"},
    "Pipelines": {"Dialect", "Analysis", "Transforms", "Conversion", "Codegen", "Target"},
}
# The driver is a library of its own, above the pipelines, in the folder of Codegen.
DRIVER = re.compile(r"^(lib|include/pgkp)/Codegen/Driver\w*\.")
COMPILER_TOOLS = {"pgkp-opt", "pgkp-worker"}
C_HEADERS = {"assert.h", "errno.h", "float.h", "inttypes.h", "limits.h", "stdbool.h", "stddef.h",
             "stdint.h", "stdio.h", "string.h"}


def includes(text):
    """(line number, path, quoted) of each #include."""
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found.group(2), found.group(1) == '"'


def room_table(root):
    """Room to the rooms it may include, transitively, from runtime/CMakeLists.txt."""
    direct = {}
    for name, rest in ROOM.findall(common.read(root, "runtime/CMakeLists.txt")):
        depends = re.search(r"\bDEPENDS\b(.*?)(?:\bLINK\b|$)", rest, re.S)
        direct[name] = depends.group(1).split() if depends else []
    table = {}
    for room in direct:
        reached, todo = set(), list(direct[room])
        while todo:
            dep = todo.pop()
            if dep not in reached:
                reached.add(dep)
                todo += direct.get(dep, [])
        table[room] = reached
    return table


def room_of(path, rooms):
    """The longest room name that path (below runtime/src) begins with; None: no room."""
    inside = [room for room in rooms if path.startswith(room + "/")]
    return max(inside, key=len, default=None)


def check_table(table):
    return [("runtime/CMakeLists.txt", 0, f"room '{a}' depends on '{b}'; these two do not know each other")
            for a in STRANGERS for b in STRANGERS if b in table.get(a, ())]


def outside(include):
    """Why the runtime may not include this; None where it may."""
    if include.startswith(COMPILER):
        return f"includes '{include}'; the runtime knows neither LLVM nor MLIR"
    if include.startswith("pgkp/"):
        return f"includes '{include}'; the runtime does not know the compiler half"
    if CUDA.match(include):
        return f"includes '{include}'; CUDA is reached by dlopen only"
    return None


def check_room(path, text, room, table):
    for line, include, quoted in includes(text):
        problem = outside(include)
        if problem:
            yield path, line, problem
            continue
        target = room_of(include, table) if quoted else None
        if target and target != room and target not in table[room]:
            yield path, line, f"room '{room}' includes '{include}'; it does not depend on '{target}'"


def check_lib(path, text, runtime_rooms):
    room = re.match(r"(?:lib|include/pgkp)/([^/]+)/", path)
    room = room.group(1) if room and not DRIVER.match(path) else None
    for line, include, quoted in includes(text):
        target = room_of(include, runtime_rooms)
        if target and target not in ("schema", "base"):
            yield path, line, (f"includes '{include}'; of the runtime the compiler knows only "
                               "schema/ and base/")
        other = re.match(r"pgkp/([^/]+)/", include)
        if room in LIB_ROOMS and include == "pgkp/Codegen/Driver.h":
            yield path, line, f"'{room}' includes '{include}'; the driver is above all rooms"
        elif room in LIB_ROOMS and other and other.group(1) != room and \
                other.group(1) not in LIB_ROOMS[room]:
            yield path, line, f"'{room}' includes '{include}'; it does not depend on '{other.group(1)}'"


def check_c_header(path, text):
    for line, include, quoted in includes(text):
        if include not in C_HEADERS and not include.startswith("pgkp-c/"):
            yield path, line, f"includes '{include}'; the C ABI needs the C library alone"


def check_tool(path, text):
    for line, include, quoted in includes(text):
        if include.startswith(COMPILER) or include.startswith("pgkp/"):
            yield path, line, f"includes '{include}'; only {', '.join(sorted(COMPILER_TOOLS))} know the compiler"


def check(root, build=None):
    table = room_table(root)
    findings = check_table(table)
    for path in common.tracked_files(root):
        if not path.endswith((".h", ".c", ".cpp", ".cu", ".def", ".inc")):
            continue
        text = common.read(root, path)
        if path.startswith("runtime/src/"):
            room = room_of(path[len("runtime/src/"):], table)
            if room is None:
                findings.append((path, 0, "is in no room of runtime/CMakeLists.txt"))
            else:
                findings += check_room(path, text, room, table)
        elif path.startswith("runtime/"):
            findings += [(path, line, problem) for line, include, _ in includes(text)
                         for problem in [outside(include)] if problem]
        elif path.startswith(("lib/", "include/pgkp/")):
            findings += check_lib(path, text, table)
        elif path.startswith("include/pgkp-c/"):
            findings += check_c_header(path, text)
        elif path.startswith("tools/") and path.count("/") > 1 and \
                path.split("/")[1] not in COMPILER_TOOLS | {"cmake"}:
            findings += check_tool(path, text)
    return findings


if __name__ == "__main__":
    common.main(check, __doc__)
