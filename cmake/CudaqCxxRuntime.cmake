# SPDX-License-Identifier: Apache-2.0
# Refuses a build of the C++ libraries whose compiler links the C++ runtime statically: each library and each program
# would have a runtime of its own, and their C++ interfaces pass its objects across (docs/building.md). Such a program
# may end in std::promise, in an exception, or in a stream, far from its cause.
function(cudaq_require_shared_cxx_runtime)
  # Libraries are linked with CMAKE_SHARED_LINKER_FLAGS, programs and try_compile with CMAKE_EXE_LINKER_FLAGS.
  set(_built_with
    "${CMAKE_CXX_COMPILER} ${CMAKE_CXX_FLAGS} ${CMAKE_SHARED_LINKER_FLAGS} ${CMAKE_EXE_LINKER_FLAGS}")
  if(NOT CMAKE_READELF OR CUDAQ_SHARED_CXX_RUNTIME_WITH STREQUAL _built_with)
    return()
  endif()
  set(_folder "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/cudaq_cxx_runtime")
  file(WRITE "${_folder}/library.cpp"
    "#include <future>\nvoid answer(std::promise<int> &to) { to.set_value(1); }\n")
  separate_arguments(_flags NATIVE_COMMAND "${CMAKE_SHARED_LINKER_FLAGS}")
  try_compile(_links "${_folder}" SOURCES "${_folder}/library.cpp"
    COMPILE_DEFINITIONS -fPIC LINK_OPTIONS -shared ${_flags} COPY_FILE "${_folder}/library.so" NO_CACHE)
  if(NOT _links)
    return() # the build says why
  endif()
  execute_process(COMMAND "${CMAKE_READELF}" -d "${_folder}/library.so" OUTPUT_VARIABLE _needed ERROR_QUIET)
  if(_needed MATCHES "NEEDED" AND NOT _needed MATCHES "lib(std)?c[+][+]")
    message(FATAL_ERROR "The C++ runtime is linked statically into each library or program "
      "(${_built_with}). The C++ libraries of the decoders and the pipeline pass "
      "objects of the runtime to programs, which needs one runtime for all: link it shared, without -static-libstdc++. "
      "Or configure with -DCUDAQ_REALTIME_BUILD_QEC=OFF: the C interface of the rest works with any runtime. "
      "To try the C++ libraries all the same, without support: -DCUDAQ_ALLOW_STATIC_CXX_RUNTIME=ON.")
  endif()
  set(CUDAQ_SHARED_CXX_RUNTIME_WITH "${_built_with}" CACHE INTERNAL "Flags whose libraries share the C++ runtime")
endfunction()

if(CUDAQ_REALTIME_BUILD_QEC AND NOT CUDAQ_ALLOW_STATIC_CXX_RUNTIME)
  cudaq_require_shared_cxx_runtime()
endif()
