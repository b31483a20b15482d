# SPDX-License-Identifier: Apache-2.0
# Finds the Holoscan sensor bridge: its class GpuRoceTransceiver. HOLOLINK_ROOT (a CMake or an environment variable) is
# a folder with its sources, because its installation lacks the header; HOLOLINK_BUILD is the folder in which it was
# built (default: HOLOLINK_ROOT/build).
# Sets Hololink_FOUND, Hololink_VERSION, Hololink_INCLUDE_DIR, Hololink_MISSING (what was not found), and defines the
# target Hololink::gpu_roce_transceiver. The include folder is also set if the libraries are missing.
set(_roots "${HOLOLINK_ROOT}" "$ENV{HOLOLINK_ROOT}")
set(_header hololink/operators/gpu_roce_transceiver/gpu_roce_transceiver.hpp)
find_path(Hololink_INCLUDE_DIR ${_header} HINTS ${_roots} PATH_SUFFIXES src NO_DEFAULT_PATH)
set(Hololink_VERSION "")
if(Hololink_INCLUDE_DIR AND EXISTS "${Hololink_INCLUDE_DIR}/../VERSION")
  file(STRINGS "${Hololink_INCLUDE_DIR}/../VERSION" Hololink_VERSION LIMIT_COUNT 1)
endif()
set(_builds "${HOLOLINK_BUILD}" "$ENV{HOLOLINK_BUILD}")
foreach(_root IN LISTS _roots)
  list(APPEND _builds "${_root}/build" "${_root}")
endforeach()
find_library(Hololink_TRANSCEIVER_LIBRARY gpu_roce_transceiver HINTS ${_builds}
             PATH_SUFFIXES src/hololink/operators/gpu_roce_transceiver lib)
find_library(Hololink_CORE_LIBRARY hololink_core HINTS ${_builds} PATH_SUFFIXES src/hololink/core lib)

set(Hololink_MISSING "")
if(NOT Hololink_INCLUDE_DIR)
  list(APPEND Hololink_MISSING "the header ${_header} (HOLOLINK_ROOT: the folder of the sources)")
endif()
foreach(_library IN ITEMS TRANSCEIVER:gpu_roce_transceiver CORE:hololink_core)
  string(REPLACE ":" ";" _library "${_library}")
  list(GET _library 0 _kind)
  list(GET _library 1 _name)
  if(NOT Hololink_${_kind}_LIBRARY)
    list(APPEND Hololink_MISSING "the library ${_name} (HOLOLINK_BUILD: the folder of the build)")
  endif()
endforeach()
list(JOIN Hololink_MISSING ", " _missing)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Hololink VERSION_VAR Hololink_VERSION
  REQUIRED_VARS Hololink_INCLUDE_DIR Hololink_TRANSCEIVER_LIBRARY Hololink_CORE_LIBRARY
  REASON_FAILURE_MESSAGE "missing: ${_missing}")
mark_as_advanced(Hololink_INCLUDE_DIR Hololink_TRANSCEIVER_LIBRARY Hololink_CORE_LIBRARY)
if(Hololink_FOUND AND NOT TARGET Hololink::gpu_roce_transceiver)
  add_library(Hololink::gpu_roce_transceiver INTERFACE IMPORTED GLOBAL)
  target_include_directories(Hololink::gpu_roce_transceiver SYSTEM INTERFACE "${Hololink_INCLUDE_DIR}")
  # Archives: what they use comes after them. The kernels of the archive need the CUDA runtime, which the caller links.
  target_link_libraries(Hololink::gpu_roce_transceiver INTERFACE
    "${Hololink_TRANSCEIVER_LIBRARY}" "${Hololink_CORE_LIBRARY}" fmt ibverbs mlx5 cuda)
endif()
