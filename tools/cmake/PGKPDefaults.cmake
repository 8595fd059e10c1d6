# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Language level, output folders, ccache, linker and sanitizers for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE_PROGRAM}" CACHE STRING "")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}" CACHE STRING "")
endif()

find_program(PGKP_LLD NAMES ld.lld-22 PATHS /usr/bin /usr/lib/llvm-22/bin)
if(PGKP_LLD)
  get_filename_component(PGKP_LLD_DIR "${PGKP_LLD}" DIRECTORY)
  # -B makes the driver find lld 22 even where another ld.lld is on PATH.
  add_link_options(-fuse-ld=lld -B/usr/lib/llvm-22/bin)
endif()

if(PGKP_SANITIZER STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=address,undefined)
elseif(PGKP_SANITIZER STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=thread)
elseif(NOT PGKP_SANITIZER STREQUAL "none")
  message(FATAL_ERROR "PGKP_SANITIZER is '${PGKP_SANITIZER}'; expected none, address or thread")
endif()
