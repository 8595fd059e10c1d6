#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each check flags a bad sample and passes a good one."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import check_checks
import check_env
import check_format
import check_layers
import check_needed
import check_spdx

SPDX = "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
ROOMS = """
pgkp_add_room(base LINK sodium)
pgkp_add_room(schema DEPENDS base LINK headers)
pgkp_add_room(devices/host DEPENDS schema)
pgkp_add_room(forecast DEPENDS schema)
pgkp_add_room(planner DEPENDS schema)
pgkp_add_room(engine DEPENDS forecast planner
  devices/host)
"""


class Sample(unittest.TestCase):
    """A small tree in a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w") as out:
            out.write(text)

    def assert_found(self, findings, *parts):
        """Exactly one finding, and it has all parts."""
        lines = [f"{path}:{line}: {message}" for path, line, message in findings]
        self.assertEqual(len(lines), 1, lines)
        for part in parts:
            self.assertIn(part, lines[0])


class Layers(Sample):
    def setUp(self):
        super().setUp()
        self.write("runtime/CMakeLists.txt", ROOMS)

    def findings(self, path, include):
        self.write(path, f"{SPDX}#include {include}\n")
        return check_layers.check(self.root)

    def test_allowed(self):
        for path, include in (("runtime/src/engine/A.cpp", '"base/Status.h"'),
                              ("runtime/src/devices/host/A.cpp", '"schema/Module.h"'),
                              ("runtime/src/forecast/A.h", "<vector>"),
                              ("lib/Target/A.cpp", '"schema/Envelope.h"'),
                              ("lib/Codegen/A.cpp", '"mlir/IR/Builders.h"'),
                              ("include/pgkp/Transforms/A.h", '"pgkp/Dialect/IR/PGKPOps.h"'),
                              ("include/pgkp-c/a.h", "<stdint.h>"),
                              ("tools/pgkp-opt/a.cpp", '"mlir/IR/Builders.h"')):
            self.assertEqual(self.findings(path, include), [], path)

    def test_room_that_is_no_dependency(self):
        self.assert_found(self.findings("runtime/src/base/A.h", '"engine/Engine.h"'),
                          "runtime/src/base/A.h:2:", "does not depend on 'engine'")

    def test_device_from_a_room_without_devices(self):
        self.assert_found(self.findings("runtime/src/planner/A.h", '"devices/host/Host.h"'),
                          "does not depend on 'devices/host'")

    def test_strangers_in_the_table(self):
        self.write("runtime/CMakeLists.txt", ROOMS.replace("planner DEPENDS schema",
                                                           "planner DEPENDS schema forecast"))
        self.assert_found(check_layers.check(self.root), "'planner' depends on 'forecast'")

    def test_runtime_and_compiler(self):
        self.assert_found(self.findings("runtime/src/base/A.h", '"llvm/ADT/StringRef.h"'), "LLVM")

    def test_runtime_tests_and_compiler(self):
        self.assert_found(self.findings("runtime/tests/base/A.cpp", '"mlir/IR/Value.h"'), "MLIR")

    def test_runtime_and_cuda(self):
        self.assert_found(self.findings("runtime/src/base/A.h", "<cuda_runtime.h>"), "dlopen")

    def test_file_in_no_room(self):
        self.assert_found(self.findings("runtime/src/attic/A.h", "<vector>"), "in no room")

    def test_compiler_and_runtime(self):
        self.assert_found(self.findings("lib/Target/A.cpp", '"engine/Engine.h"'), "schema/ and base/")

    def test_order_of_the_compiler(self):
        self.assert_found(self.findings("lib/Dialect/IR/A.cpp", '"pgkp/Transforms/Passes.h"'),
                          "does not depend on 'Transforms'")

    def test_driver(self):
        self.assertEqual(self.findings("lib/Codegen/DriverBundle.cpp", '"pgkp/Pipelines/Pipelines.h"'), [])
        self.assert_found(self.findings("lib/Target/A.cpp", '"pgkp/Codegen/Driver.h"'), "above all rooms")

    def test_c_abi(self):
        self.assert_found(self.findings("include/pgkp-c/a.h", "<vector>"), "C library")

    def test_tool_in_the_application_s_place(self):
        self.assert_found(self.findings("tools/pgkp-run/a.cpp", '"mlir/IR/Value.h"'), "pgkp-opt")


class Needed(Sample):
    def setUp(self):
        super().setUp()
        self.write("include/pgkp-c/runtime.h", "PGKP_EXPORT int pgkp_f(int n);\n")

    def compile(self, output, source, *flags):
        os.makedirs(os.path.join(self.root, os.path.dirname(output)), exist_ok=True)
        self.write("a.cpp", source)
        subprocess.run(["g++", os.path.join(self.root, "a.cpp"), "-o",
                        os.path.join(self.root, output), *flags], check=True)

    def library(self, source, *flags):
        self.compile("lib/libpgkp_runtime.so", source, "-shared", "-fPIC", *flags)
        return check_needed.check(self.root, self.root)

    def test_good_library(self):
        self.assertEqual(self.library('extern "C" int pgkp_f() { return 1; }',
                                      "-static-libstdc++", "-static-libgcc"), [])

    def test_library_that_needs_more(self):
        found = self.library('#include <string>\n#include <stdexcept>\nextern "C" int pgkp_f(int n) '
                             '{ if (n) throw std::runtime_error("x"); return 0; }')
        self.assertTrue(any("needs 'libstdc++.so.6'" in message for _, _, message in found), found)

    def test_library_that_exports_more(self):
        self.assert_found(self.library('extern "C" int pgkp_f() { return 1; }\nextern "C" int spill() '
                                       "{ return 2; }", "-static-libstdc++", "-static-libgcc"),
                          "exports 'spill'")

    def test_library_that_exports_less(self):
        self.assert_found(self.library('extern "C" int pgkp_f() { return 1; }', "-static-libstdc++",
                                       "-static-libgcc", "-fvisibility=hidden"),
                          "does not export 'pgkp_f'")

    def test_tool_that_needs_llvm(self):
        self.library('extern "C" int pgkp_f() { return 1; }', "-static-libstdc++", "-static-libgcc")
        self.compile("lib/libLLVM.so.22.1", "int llvm() { return 1; }", "-shared", "-fPIC",
                     "-Wl,-soname,libLLVM.so.22.1")
        self.compile("bin/pgkp-run", "int llvm(); int main() { return llvm(); }",
                     os.path.join(self.root, "lib/libLLVM.so.22.1"))
        self.assert_found(check_needed.check(self.root, self.root), "bin/pgkp-run",
                          "needs 'libLLVM.so.22.1'")

    def test_nothing_built(self):
        self.assert_found(check_needed.check(self.root, self.root), "build first")


class Checks(Sample):
    def findings(self, text):
        self.write("test/A/a.mlir", text)
        return check_checks.check(self.root)

    def test_good(self):
        self.assertEqual(self.findings("// RUN: pgkp-opt %s | FileCheck %s\n"
                                       "// RUN: pgkp-opt %s | FileCheck %s --check-prefixes=A,B-C\n"
                                       "// CHECK-LABEL: x\n// A-NEXT: y\n// B-C: z\n// NOTE: text\n"), [])

    def test_unused_prefix(self):
        self.assert_found(self.findings("// RUN: pgkp-opt %s | FileCheck %s\n// CHECK: x\n"
                                        "// CHECK-NEX: y\n"), "a.mlir:3:", "'CHECK-NEX:'")

    def test_missing_colon(self):
        self.assert_found(self.findings("// RUN: pgkp-opt %s | FileCheck %s\n// CHECK: x\n"
                                        "// CHECK-NEXT y\n"), "a.mlir:3:", "without its colon")

    def test_prefix_that_no_line_has(self):
        self.assert_found(self.findings("// RUN: pgkp-opt %s | FileCheck %s\n"), "'CHECK'", "no line")

    def test_prefix_without_a_comment_sign(self):
        self.assertEqual(self.findings("RUN: pgkp-run %s | FileCheck %s --check-prefix=A\nA: x\n"), [])

    def test_continued_run_line(self):
        self.assertEqual(self.findings("// RUN: pgkp-opt %s \\\n// RUN:   | FileCheck %s\n// CHECK: x\n"),
                         [])

    def test_diagnostics_that_are_not_verified(self):
        self.assert_found(self.findings("// RUN: pgkp-opt %s\n// expected-error @+1 {{x}}\n"),
                          "--verify-diagnostics")

    def test_no_run_line(self):
        self.assert_found(self.findings("module {}\n"), "no RUN line")


class Spdx(Sample):
    def test_both(self):
        self.write("lib/a.cpp", SPDX)
        self.assertEqual(check_spdx.check(self.root), [])
        self.write("lib/b.cpp", "int x;\n")
        self.assert_found(check_spdx.check(self.root), "lib/b.cpp:1:")


class Env(Sample):
    TABLE = SPDX + 'PGKP_ENV(PGKP_A, "0|1", "0", "one; \\"two\\"")\n'

    def setUp(self):
        super().setUp()
        self.write(check_env.TABLE, self.TABLE)
        self.write(check_env.PAGE, check_env.page(self.TABLE))

    def test_good(self):
        self.write("runtime/src/base/A.cpp", 'getEnv("PGKP_A"); std::getenv("HOME");\n')
        self.assertEqual(check_env.check(self.root), [])

    def test_stale_page(self):
        self.write(check_env.TABLE, self.TABLE + 'PGKP_ENV(PGKP_B, "x", "", "y")\n')
        self.assert_found(check_env.check(self.root), check_env.PAGE, "--write")

    def test_row_of_another_form(self):
        self.write(check_env.TABLE, self.TABLE + 'PGKP_ENV(PGKP_B, "x")\n')
        self.assert_found(check_env.check(self.root), "row")

    def test_direct_read(self):
        self.write("lib/a.cpp", 'auto x = std::getenv("PGKP_A");\n')
        self.assert_found(check_env.check(self.root), "lib/a.cpp:1:", "getenv")

    def test_name_that_is_not_in_the_table(self):
        self.write("tools/a.cpp", 'auto x = getEnvFlag("PGKP_B");\n')
        self.assert_found(check_env.check(self.root), "tools/a.cpp:1:", "'PGKP_B'")


class Format(Sample):
    def test_both(self):
        self.write(".clang-format", "BasedOnStyle: LLVM\n")
        self.write("lib/a.cpp", "int x;\n")
        self.assertEqual(check_format.check(self.root), [])
        self.write("lib/b.cpp", "int   y;\n")
        self.assert_found(check_format.check(self.root), "lib/b.cpp:1:")


if __name__ == "__main__":
    unittest.main()
