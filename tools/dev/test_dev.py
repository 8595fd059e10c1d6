#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The counting of tests: what passed, failed and was skipped, and that nothing is lost."""

import contextlib
import importlib.util
import io
import os
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def load(name):
    spec = importlib.util.spec_from_file_location(f"pgkp_{name}", os.path.join(HERE, f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


test = load("test")
gpu = load("gpu")

CTEST = """<testsuite>
<testcase name="a" status="run"/>
<testcase name="b" status="fail"><failure message=""/><system-out>expected 1</system-out></testcase>
<testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>/x/Test.cpp:7: Skipped
no GPU here

</system-out></testcase>
<testcase name="d" status="notrun"><skipped message="Unable to find executable"/></testcase>
</testsuite>"""
LIT = """<testsuites><testsuite>
<testcase classname="PGKP.Target" name="a.mlir"/>
<testcase classname="PGKP.Target" name="b.mlir"><failure>no match</failure></testcase>
<testcase classname="PGKP.Target" name="c.mlir"><skipped message="Missing required feature(s): ptxas"/></testcase>
</testsuite></testsuites>"""


class Ptx(unittest.TestCase):
    def test_modules_of_a_printed_module(self):
        text = r'gpu.binary @a [#gpu.object<#t, assembly = "//\0A.entry a()\22x\\">] gpu.binary @b ' \
               r'[#gpu.object<#t, properties = {p = "q"}, assembly = "b">]'
        self.assertEqual(gpu.ptx_modules(text), ['//\n.entry a()"x\\', "b"])


class Counting(unittest.TestCase):
    def count(self, text, status, read):
        results = test.Results()
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report.xml")
            if text is not None:
                with open(report, "w") as out:
                    out.write(text)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                test.count(results, "s", report, status, "", read)
                code = results.close()
        return code, printed.getvalue()

    def test_ctest(self):
        code, text = self.count(CTEST, 8, test.read_ctest_case)
        self.assertEqual(code, 1)
        self.assertEqual(text.splitlines()[-1], "1 passed, 2 failed, 1 skipped")
        self.assertIn("skipped s: c: no GPU here", text)
        self.assertIn("failed s: d", text)
        self.assertIn("expected 1", text)

    def test_lit(self):
        code, text = self.count(LIT, 1, test.read_lit_case)
        self.assertEqual(code, 1)
        self.assertEqual(text.splitlines()[-1], "1 passed, 1 failed, 1 skipped")
        self.assertIn("skipped s: PGKP/Target/c.mlir: Missing required feature(s): ptxas", text)

    def test_all_good(self):
        code, text = self.count('<testsuite><testcase name="a" status="run"/></testsuite>', 0,
                                test.read_ctest_case)
        self.assertEqual((code, text), (0, "1 passed, 0 failed\n"))

    def test_nothing_found(self):
        code, text = self.count("<testsuite/>", 0, test.read_ctest_case)
        self.assertEqual((code, text.splitlines()[-1]), (1, "0 passed, 1 failed"))

    def test_no_report(self):
        code, text = self.count(None, -11, test.read_lit_case)
        self.assertEqual((code, text.splitlines()[-1]), (1, "0 passed, 1 failed"))

    def test_runner_that_failed_after_its_tests(self):
        code, text = self.count('<testsuite><testcase name="a" status="run"/></testsuite>', 1,
                                test.read_ctest_case)
        self.assertEqual((code, text.splitlines()[-1]), (1, "1 passed, 1 failed"))


if __name__ == "__main__":
    unittest.main()
