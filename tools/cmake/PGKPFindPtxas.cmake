# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# PGKP_PTXAS: NVIDIA's assembler, where there is one that runs. A wrapper may outlive the
# toolkit it calls, so that finding the file says nothing.
include_guard(GLOBAL)

function(pgkp_ptxas_runs result program)
  execute_process(COMMAND ${program} --version RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(NOT status EQUAL 0)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

find_program(PGKP_PTXAS ptxas PATHS /usr/local/cuda/bin VALIDATOR pgkp_ptxas_runs)
