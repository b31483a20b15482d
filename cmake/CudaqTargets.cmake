# SPDX-License-Identifier: Apache-2.0
# Settings that all targets of the project share: language level, warnings, sanitizers, CUDA headers. Functions for
# precompiled headers, for the linker, and for third-party code.
include(GNUInstallDirs)
set(CUDAQ_DATA_FOLDER "share/cudaq-realtime/data") # of the recorded shots, below the prefix of an installation

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
# An installed program finds the library by a path relative to its own folder: the tree may be moved.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
find_package(Threads REQUIRED)

# If ccache is installed, it keeps every object, of the project and of others, by the content of what was compiled.
# Paths below the source folder are compared as relative paths, so that a clone in another folder finds the objects of
# this one. The sloppiness is what ccache needs for precompiled headers: it compares the content of headers, not their
# times, and the definitions of a precompiled header are the same for all its users (cudaq_use_headers).
find_program(CUDAQ_CCACHE NAMES ccache)
mark_as_advanced(CUDAQ_CCACHE)
if(CUDAQ_CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(_ccache_settings "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime)
  foreach(_language IN ITEMS C CXX CUDA)
    if(NOT DEFINED CMAKE_${_language}_COMPILER_LAUNCHER)
      set(CMAKE_${_language}_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env ${_ccache_settings} "${CUDAQ_CCACHE}")
    endif()
  endforeach()
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()
# -g1: line numbers for back traces, but no variables. Variables double the compile time. A debugger needs the build
# type Debug.
add_compile_options("$<$<AND:$<CONFIG:RelWithDebInfo>,$<COMPILE_LANGUAGE:C,CXX>>:-g1>")

# These options are set for the whole directory, because a sanitizer must instrument every object of the build,
# GoogleTest and PyMatching included.
set(CUDAQ_SANITIZER "" CACHE STRING "Instrument everything: thread, or address (with undefined)")
set_property(CACHE CUDAQ_SANITIZER PROPERTY STRINGS "" thread address)
if(CUDAQ_SANITIZER STREQUAL "thread")
  set(_sanitize -fsanitize=thread)
elseif(CUDAQ_SANITIZER STREQUAL "address")
  # Without the check for null references: libstdc++ binds the reference of `catch (abi::__forced_unwind &)` to null.
  # A null pointer that is used ends the program all the same.
  set(_sanitize -fsanitize=address,undefined -fno-sanitize=null -fno-sanitize-recover=all)
elseif(CUDAQ_SANITIZER)
  message(FATAL_ERROR "CUDAQ_SANITIZER is '${CUDAQ_SANITIZER}'; it can be empty, thread, or address")
endif()
# The optimisation of code that is not measured: tests, and everything under a sanitizer. The address sanitizer finds at
# -O0 what it finds at -O1, and the build takes half the time. Tests of threads need the speed of -O1.
set(CUDAQ_QUICK_LEVEL -O1)
if(CUDAQ_SANITIZER)
  if(CUDAQ_SANITIZER STREQUAL "address")
    set(CUDAQ_QUICK_LEVEL -O0)
  endif()
  # In instrumented code, these warnings of GCC are false alarms.
  foreach(_warning IN ITEMS maybe-uninitialized array-bounds stringop-overflow)
    add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-${_warning}>)
  endforeach()
  add_compile_options(${_sanitize} ${CUDAQ_QUICK_LEVEL} -g1 -fno-omit-frame-pointer)
  add_link_options(${_sanitize})
endif()
include(CudaqHardening)

# The library includes cuda_runtime_api.h and libcu++. Both are headers of the toolkit; without one, those that
# FetchCudaHeaders.cmake has fetched. The CUDA runtime is linked statically: the library also loads on a machine
# without a driver.
include(FetchCudaHeaders)
set(_cuda_hints "${CUDAToolkit_ROOT}/include" "$ENV{CUDAToolkit_ROOT}/include" "$ENV{CUDA_HOME}/include"
                "$ENV{CUDA_PATH}/include" /usr/local/cuda/include)
find_path(CUDAQ_CUDA_INCLUDE_DIR cuda_runtime_api.h HINTS ${_cuda_hints} PATHS "${CUDAQ_CUDA_PACKAGES}/include"
          NO_CMAKE_FIND_ROOT_PATH)
# Vulkan maps device memory for the CPU. The library opens it at run time.
find_path(CUDAQ_VULKAN_INCLUDE_DIR vulkan/vulkan_core.h)
find_path(CUDAQ_CCCL_INCLUDE_DIR cuda/atomic
          HINTS "${CUDAQ_CUDA_INCLUDE_DIR}/cccl" "${CUDAQ_CUDA_INCLUDE_DIR}" NO_CMAKE_FIND_ROOT_PATH)
if(NOT CUDAQ_CUDA_INCLUDE_DIR OR NOT CUDAQ_CCCL_INCLUDE_DIR)
  message(FATAL_ERROR "The headers of the CUDA toolkit (cuda_runtime_api.h, libcu++'s cuda/atomic) were not found. "
    "The build needs these headers, but neither a GPU, nor a driver, nor nvcc. Without a toolkit, fetch them from "
    "NVIDIA's packages on PyPI (5.4 MB) and configure again:\n"
    "  cmake -P ${CMAKE_CURRENT_LIST_DIR}/FetchCudaHeaders.cmake\n"
    "Or install CUDA toolkit 12.6 or newer. If it is not in /usr/local/cuda, set the environment variable CUDA_HOME, "
    "or configure with -DCUDAToolkit_ROOT=DIR.")
endif()
if(CUDAQ_REALTIME_ENABLE_CUDA)
  find_library(CUDAQ_CUDART_STATIC cudart_static HINTS "${CUDAQ_CUDA_INCLUDE_DIR}/.." PATH_SUFFIXES lib64 lib)
  if(NOT CUDAQ_CUDART_STATIC)
    message(FATAL_ERROR "libcudart_static.a was not found: not in lib64 or lib beside ${CUDAQ_CUDA_INCLUDE_DIR}, and "
      "not in the system's folders. Install the development files of the CUDA runtime, or configure with "
      "-DCUDAQ_REALTIME_ENABLE_CUDA=OFF (no device path, no graph workers, no mapped or device rings).")
  endif()
endif()
# The kernels and the tests of CUDA headers need nvcc; the library does not.
set(CUDAQ_HAVE_NVCC OFF)
if(CUDAQ_REALTIME_ENABLE_CUDA AND NOT CUDAQ_SANITIZER)
  find_program(CUDAQ_NVCC nvcc HINTS "${CUDAQ_CUDA_INCLUDE_DIR}/../bin")
  if(CUDAQ_NVCC)
    if(NOT CMAKE_CUDA_COMPILER)
      set(CMAKE_CUDA_COMPILER "${CUDAQ_NVCC}")
    endif()
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 90)
    endif()
    set(CMAKE_CUDA_STANDARD 17)
    enable_language(CUDA)
    set(CUDAQ_HAVE_NVCC ON)
    # CMake 3.25 does not know the option by which nvcc compiles C++20.
    foreach(kind STANDARD EXTENSION)
      if(NOT CMAKE_CUDA20_${kind}_COMPILE_OPTION)
        set(CMAKE_CUDA20_${kind}_COMPILE_OPTION "-std=c++20")
      endif()
    endforeach()
  endif()
endif()
mark_as_advanced(CUDAQ_NVCC CUDAQ_CUDA_INCLUDE_DIR CUDAQ_CCCL_INCLUDE_DIR CUDAQ_CUDART_STATIC
                 CUDAQ_VULKAN_INCLUDE_DIR)

# Only the presets switch this on: other compilers, and other build types, have other warnings.
option(CUDAQ_WARNINGS_AS_ERRORS "A warning in the project's own code stops the build" OFF)
if(CUDAQ_WARNINGS_AS_ERRORS)
  set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
endif()
add_library(cudaq-options INTERFACE)
target_compile_options(cudaq-options INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion>)
target_include_directories(cudaq-options INTERFACE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}")
target_include_directories(cudaq-options SYSTEM INTERFACE "${CUDAQ_CUDA_INCLUDE_DIR}" "${CUDAQ_CCCL_INCLUDE_DIR}")

# Precompiled headers: slow headers are compiled once for all targets with the same options. Each source still includes
# what it uses, because it must also compile with CUDAQ_PRECOMPILED_HEADERS=OFF.
#   cudaq_compile_headers(<owner> <header>...)   the owner: a target with one empty source, and without definitions
#   cudaq_use_headers(<target> <owner>)          the target uses the precompiled headers of the owner
option(CUDAQ_PRECOMPILED_HEADERS "Precompile slow headers, and compile some sources of the program together" ON)
set(CUDAQ_STANDARD_HEADERS <algorithm> <atomic> <chrono> <condition_variable> <functional> <map> <memory> <mutex>
    <string> <thread> <vector>)
function(cudaq_compile_headers owner)
  if(CUDAQ_PRECOMPILED_HEADERS)
    target_precompile_headers(${owner} PRIVATE ${ARGN})
  endif()
endfunction()
function(cudaq_use_headers target owner)
  if(CUDAQ_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()
# cudaq_compile_together(<target> <count>): compiles `count` sources of the target in one unit, all of them if it is 0.
# Called after the target has its sources. CMake's UNITY_BUILD is not used, because its units have the path of the
# clone: no other clone would find their objects in the cache of ccache.
function(cudaq_compile_together target count)
  if(NOT CUDAQ_PRECOMPILED_HEADERS)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^[^$]*\\.cpp$")
  set_source_files_properties(${sources} PROPERTIES HEADER_FILE_ONLY ON)
  list(LENGTH sources all)
  if(count EQUAL 0)
    set(count ${all})
  endif()
  math(EXPR last "${all} - 1")
  foreach(first RANGE 0 ${last} ${count})
    list(SUBLIST sources ${first} ${count} together)
    set(text "")
    foreach(source IN LISTS together)
      cmake_path(ABSOLUTE_PATH source NORMALIZE)
      cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
      string(APPEND text "#include \"${source}\"\n")
    endforeach()
    set(unit "${CMAKE_CURRENT_BINARY_DIR}/${target}_unit_${first}.cpp")
    file(CONFIGURE OUTPUT "${unit}" CONTENT "${text}" @ONLY)
    target_sources(${target} PRIVATE "${unit}")
  endforeach()
endfunction()
file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/empty.cpp" CONTENT "")
add_library(cudaq-library-headers OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/empty.cpp")
target_link_libraries(cudaq-library-headers PRIVATE cudaq-options)
cudaq_compile_headers(cudaq-library-headers ${CUDAQ_STANDARD_HEADERS})

# A cooperative dispatch kernel of up to 512 threads has 128 registers per thread. The same limit holds for every
# handler that it may call.
set(CUDAQ_HANDLER_REGISTERS $<$<COMPILE_LANGUAGE:CUDA>:-maxrregcount=128>)

# cudaq_quick_link(<target>...): links programs with lld, if it is installed. It is used for tests, which are linked
# again after each change. What is installed is linked with the compiler's default linker. Not mold: its version in
# Debian 12 (1.10) has made programs that do not start, because of where its read-only data begins, and did not end for
# some inputs.
find_program(CUDAQ_QUICK_LINKER NAMES ld.lld)
mark_as_advanced(CUDAQ_QUICK_LINKER)
function(cudaq_quick_link)
  if(CUDAQ_QUICK_LINKER AND NOT CMAKE_CROSSCOMPILING)
    foreach(target IN LISTS ARGN)
      target_link_options(${target} PRIVATE -fuse-ld=lld)
    endforeach()
  endif()
endfunction()

# cudaq_third_party(<target>): options for code of other projects (GoogleTest, PyMatching, Stim).
function(cudaq_third_party target)
  target_compile_options(${target} PRIVATE -w -g0 $<$<BOOL:${CUDAQ_SANITIZER}>:-O1>
                         $<$<STREQUAL:${CUDAQ_SANITIZER},address>:-fno-sanitize=undefined>)
endfunction()
