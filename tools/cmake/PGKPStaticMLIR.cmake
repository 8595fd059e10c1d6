# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Self-contained tools: MLIR, LLVM and lld from archives instead of their shared
# libraries. Included by PGKPFindMLIR where PGKP_MLIR_LINKAGE is static.
# Defines the interface library pgkp_static_mlir: everything that a tool of ours
# may need. The linker takes from it only the objects that are referenced.

# What the code generators need, for the two targets that we compile for.
set(PGKP_STATIC_LLVM_COMPONENTS
  Support Core Remarks TargetParser BitReader BitWriter AsmParser IRReader Linker
  MC Target IPO Passes Analysis TransformUtils
  FrontendOpenMP FrontendOffloading FrontendAtomic
  NVPTXCodeGen NVPTXDesc NVPTXInfo
  X86CodeGen X86AsmParser X86Disassembler X86Desc X86Info
  Option DebugInfoDWARF DTLTO LTO Object WindowsManifest) # for lld
llvm_map_components_to_libnames(PGKP_STATIC_LLVM_LIBS ${PGKP_STATIC_LLVM_COMPONENTS})

# The exported targets of MLIR and lld name the shared libLLVM; give them archives.
function(pgkp_replace_libllvm)
  foreach(target IN LISTS ARGN)
    if(NOT TARGET ${target})
      continue()
    endif()
    get_target_property(deps ${target} INTERFACE_LINK_LIBRARIES)
    if(deps MATCHES "(^|;|:)LLVM($|;|>)")
      list(REMOVE_ITEM deps LLVM [[$<LINK_ONLY:LLVM>]])
      set_target_properties(${target} PROPERTIES
        INTERFACE_LINK_LIBRARIES "${deps};${PGKP_STATIC_LLVM_LIBS}")
    endif()
  endforeach()
endfunction()

find_package(LLD 22.1 REQUIRED CONFIG)
pgkp_replace_libllvm(${MLIR_EXPORTED_TARGETS} ${LLD_EXPORTED_TARGETS})
# add_llvm_executable would add the shared library back.
set(LLVM_LINK_LLVM_DYLIB OFF)

# libLLVMSupport names these; Debian has the archives but no CMake targets for them.
find_library(PGKP_STATIC_ZSTD NAMES libzstd.a REQUIRED)
find_library(PGKP_STATIC_Z NAMES libz.a REQUIRED)
foreach(pair "zstd::libzstd_shared=${PGKP_STATIC_ZSTD}" "ZLIB::ZLIB=${PGKP_STATIC_Z}")
  string(REPLACE "=" ";" pair "${pair}")
  list(GET pair 0 target)
  list(GET pair 1 archive)
  if(NOT TARGET ${target})
    add_library(${target} INTERFACE IMPORTED)
  endif()
  set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${archive}")
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${archive}"
      IMPORTED_LOCATION_NONE "${archive}" IMPORTED_LOCATION_RELEASE "${archive}")
  endif()
endforeach()

# Polly's archive is in a package of its own; see NoPolly.cpp.
add_library(pgkp_no_polly STATIC ${CMAKE_CURRENT_LIST_DIR}/static/NoPolly.cpp)
llvm_update_compile_flags(pgkp_no_polly)
set_target_properties(LLVMExtensions PROPERTIES
  INTERFACE_LINK_LIBRARIES "LLVMSupport;pgkp_no_polly")

# MLIR's registration of everything initializes every target that LLVM was built
# with. The ones that we do not compile for get empty initializers.
set(pgkp_left_out ${LLVM_TARGETS_TO_BUILD})
list(REMOVE_ITEM pgkp_left_out X86 NVPTX)
set(pgkp_initializers "")
foreach(target IN LISTS pgkp_left_out)
  foreach(part Target TargetInfo TargetMC AsmPrinter AsmParser Disassembler)
    string(APPEND pgkp_initializers "void LLVMInitialize${target}${part}(void) {}\n")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/LeftOutTargets.c CONTENT "${pgkp_initializers}")
add_library(pgkp_left_out_targets STATIC ${PROJECT_BINARY_DIR}/LeftOutTargets.c)

add_library(pgkp_static_mlir INTERFACE)
set(pgkp_static_mlir_libs)
foreach(group MLIR_DIALECT_LIBS MLIR_CONVERSION_LIBS MLIR_EXTENSION_LIBS MLIR_TRANSLATION_LIBS)
  get_property(libs GLOBAL PROPERTY ${group})
  list(APPEND pgkp_static_mlir_libs ${libs})
endforeach()
list(APPEND pgkp_static_mlir_libs MLIROptLib MLIRRegisterAllDialects MLIRRegisterAllExtensions
  MLIRRegisterAllPasses MLIRBuiltinToLLVMIRTranslation MLIRTargetLLVMIRExport MLIRBytecodeReader
  MLIRBytecodeWriter MLIRParser)
list(FILTER pgkp_static_mlir_libs EXCLUDE REGEX "Test")
list(REMOVE_DUPLICATES pgkp_static_mlir_libs)
target_link_libraries(pgkp_static_mlir INTERFACE ${pgkp_static_mlir_libs} ${PGKP_STATIC_LLVM_LIBS}
  pgkp_left_out_targets)
target_link_options(pgkp_static_mlir INTERFACE
  -Wl,--gc-sections -Wl,--icf=all -Wl,-O2 -Wl,--strip-all -static-libstdc++ -static-libgcc)
