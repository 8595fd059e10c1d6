# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Finds MLIR 22 and defines pgkp_add_mlir_library and pgkp_add_mlir_tool.
# One place decides the linkage: two copies of MLIR in one process break TypeIDs.

if(EXISTS /usr/lib/llvm-22)
  list(APPEND CMAKE_PREFIX_PATH /usr/lib/llvm-22)
endif()
find_package(MLIR 22.1 REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
set(LLVM_RUNTIME_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/bin)
set(LLVM_LIBRARY_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/lib)
set(MLIR_BINARY_DIR ${CMAKE_BINARY_DIR})
separate_arguments(LLVM_DEFINITIONS_LIST NATIVE_COMMAND ${LLVM_DEFINITIONS})
add_definitions(${LLVM_DEFINITIONS_LIST})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include(HandleLLVMOptions)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
include_directories(${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)

# A TypeID is the address of a static: hidden, ours and libMLIR's would differ.
set(CMAKE_CXX_VISIBILITY_PRESET default)

# sizeof(mlir::Pass::Statistic) depends on NDEBUG, and the packaged MLIR has it.
add_definitions(-DNDEBUG)

if(PGKP_MLIR_LINKAGE STREQUAL "static")
  include(PGKPStaticMLIR)
elseif(NOT PGKP_MLIR_LINKAGE STREQUAL "shared")
  message(FATAL_ERROR "PGKP_MLIR_LINKAGE is '${PGKP_MLIR_LINKAGE}'; expected shared or static")
endif()

# pgkp_mlir_libs(out lib...): what to link for the given MLIR component libraries. With
# archives the names do not matter: the linker takes only what is referenced.
function(pgkp_mlir_libs out)
  if(PGKP_MLIR_LINKAGE STREQUAL "shared")
    set(${out} MLIR LLVM PARENT_SCOPE)
  else()
    set(${out} pgkp_static_mlir PARENT_SCOPE)
  endif()
endfunction()

# pgkp_add_mlir_library(name source... DEPENDS IncGen... LINK_LIBS PGKP... MLIR_LIBS MLIR...)
# Every library depends on all generated headers: it is cheap, and a missing
# edge fails only in some parallel builds.
function(pgkp_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS;MLIR_LIBS" ${ARGN})
  pgkp_mlir_libs(mlir ${ARG_MLIR_LIBS})
  add_mlir_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS}
    EXCLUDE_FROM_LIBMLIR DISABLE_INSTALL PARTIAL_SOURCES_INTENDED
    DEPENDS PGKPIncGen ${ARG_DEPENDS}
    LINK_LIBS PUBLIC ${ARG_LINK_LIBS} ${mlir})
endfunction()

# pgkp_add_mlir_tool(name source... LINK_LIBS PGKP... MLIR_LIBS MLIR...)
function(pgkp_add_mlir_tool name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS;MLIR_LIBS" ${ARGN})
  pgkp_mlir_libs(mlir ${ARG_MLIR_LIBS})
  add_llvm_executable(${name} PARTIAL_SOURCES_INTENDED ${ARG_UNPARSED_ARGUMENTS} DEPENDS PGKPIncGen)
  llvm_update_compile_flags(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} ${mlir})
endfunction()
