# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lit configuration of the compiler half.

Environment:
  PGKP_LIT_ROUNDTRIP=0  do not run every pgkp-opt with --verify-roundtrip
"""

import os
import subprocess

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import FindTool, ToolSubst

config.name = "PGKP"
config.test_format = lit.formats.ShTest(not llvm_config.use_lit_shell)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "data", "models"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.pgkp_obj_root, "test")

llvm_config.with_system_environment(["HOME", "TMPDIR"])
llvm_config.use_default_substitutions()
# "not" and "count" are found by name.
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)

# Round trips make every test a test of the parser, the printer and bytecode.
opt_args = []
if os.environ.get("PGKP_LIT_ROUNDTRIP", "1") != "0":
    opt_args.append("--verify-roundtrip")

bin_dir = os.path.join(config.pgkp_obj_root, "bin")
tools = [ToolSubst("pgkp-opt", extra_args=opt_args)]
for name in ("pgkp-worker", "pgkp-compile", "pgkp-run", "pgkp-cache", "pgkp-replay", "pgkp-bench"):
    tools.append(ToolSubst(name, unresolved="ignore"))
    if os.path.exists(os.path.join(bin_dir, name)):
        config.available_features.add(name)
llvm_config.add_tool_substitutions(tools, [bin_dir, config.llvm_tools_dir])

config.substitutions.append(("%build", config.pgkp_obj_root))
config.substitutions.append(("%llvm_bin", config.llvm_tools_dir))
config.substitutions.append(("%models", os.path.join(config.test_source_root, "models")))
config.substitutions.append(("%python", config.python_executable))

# A feature stands for a program that was found, never for one that is hoped for.
if config.ptxas and os.access(config.ptxas, os.X_OK):
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", config.ptxas))
if subprocess.run([config.python_executable, "-c", "import numpy"], capture_output=True).returncode == 0:
    config.available_features.add("numpy")
# What test/Codegen/Inputs/kernel_cases.py compiles its references with.
if all(os.access(os.path.join(config.llvm_tools_dir, tool), os.X_OK) for tool in ("mlir-opt", "mlir-translate", "llc")):
    config.available_features.add("llvm-tools")
