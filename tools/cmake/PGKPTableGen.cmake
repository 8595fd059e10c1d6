# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# TableGen rules; every target they make is a dependency of PGKPIncGen.

# pgkp_add_inc_gen(target): closes a group of mlir_tablegen calls.
macro(pgkp_add_inc_gen target)
  add_public_tablegen_target(${target})
  add_dependencies(mlir-headers ${target})
  add_dependencies(PGKPIncGen ${target})
endmacro()

# pgkp_add_passes(room): from <room>/Passes.td, <room>/Passes.h.inc with the
# registration function registerPGKP<room>Passes, and a documentation page.
macro(pgkp_add_passes room)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${room})
  set(LLVM_TARGET_DEFINITIONS ${room}/Passes.td)
  mlir_tablegen(${room}/Passes.h.inc -gen-pass-decls -name=PGKP${room})
  pgkp_add_inc_gen(PGKP${room}PassesIncGen)
  add_mlir_doc(${room}/Passes PGKP${room}Passes ./ -gen-pass-doc)
endmacro()
