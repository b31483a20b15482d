# SPDX-License-Identifier: Apache-2.0
# Options that make an attack through an error in the code harder, for everything that is compiled and linked in this
# folder and below it, code of other projects included. docs/security.md says what they do and what they cost.
#   stack protector   a function whose array is overrun ends the program
#   FORTIFY_SOURCE    the same for the C library's functions, where the compiler knows the size
#   full RELRO        all symbols are bound at the start, and their table is then read only
#   CET               indirect calls and returns end only where they should; only marked, the system switches it on
# Not with a sanitizer, which finds more and needs the original functions. Debug and builds without a type have no
# optimisation, which FORTIFY_SOURCE needs.
include_guard(DIRECTORY)
include(CheckCXXCompilerFlag)
option(CUDAQ_REALTIME_HARDENED "Stack protector, FORTIFY_SOURCE, full RELRO, CET" ON)
if(NOT CUDAQ_REALTIME_HARDENED OR CUDAQ_SANITIZER)
  return()
endif()
set(_hardened -fstack-protector-strong)
check_cxx_compiler_flag(-fcf-protection=full CUDAQ_COMPILER_HAS_CET)
if(CUDAQ_COMPILER_HAS_CET)
  list(APPEND _hardened -fcf-protection=full)
endif()
if(NOT "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS}" MATCHES "_FORTIFY_SOURCE") # a distribution may have its own level
  list(APPEND _hardened "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${_hardened}>")
list(TRANSFORM _hardened PREPEND -Xcompiler= REGEX "^-f")
list(FILTER _hardened INCLUDE REGEX "^-Xcompiler")
add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${_hardened}>")
add_link_options(LINKER:-z,relro,-z,now)
