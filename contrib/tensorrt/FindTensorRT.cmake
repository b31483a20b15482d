# SPDX-License-Identifier: Apache-2.0
# Finds TensorRT: in TENSORRT_ROOT (a CMake or an environment variable), then in the system's directories.
# The caller of find_package names the oldest version that it accepts.
# Sets TensorRT_FOUND and TensorRT_VERSION, and defines the target TensorRT::tensorrt (inference library, ONNX parser).
set(_hints "${TENSORRT_ROOT}" "$ENV{TENSORRT_ROOT}")
find_path(TensorRT_INCLUDE_DIR NvInfer.h HINTS ${_hints}
          PATH_SUFFIXES include "include/${CMAKE_LIBRARY_ARCHITECTURE}" "${CMAKE_LIBRARY_ARCHITECTURE}")
find_library(TensorRT_LIBRARY nvinfer HINTS ${_hints} PATH_SUFFIXES lib lib64 "lib/${CMAKE_LIBRARY_ARCHITECTURE}")
find_library(TensorRT_ONNX_LIBRARY nvonnxparser HINTS ${_hints}
             PATH_SUFFIXES lib lib64 "lib/${CMAKE_LIBRARY_ARCHITECTURE}")
# On some systems the ONNX parser's header is in a separate package. Without it TensorRT counts as not found.
if(TensorRT_INCLUDE_DIR AND NOT EXISTS "${TensorRT_INCLUDE_DIR}/NvOnnxParser.h")
  set(TensorRT_INCLUDE_DIR TensorRT_INCLUDE_DIR-NOTFOUND)
endif()

set(TensorRT_VERSION "")
if(TensorRT_INCLUDE_DIR)
  # The header defines "NV_TENSORRT_MAJOR 10", since version 11 "TRT_MAJOR_ENTERPRISE 11".
  foreach(_part MAJOR MINOR PATCH)
    file(STRINGS "${TensorRT_INCLUDE_DIR}/NvInferVersion.h" _line LIMIT_COUNT 1
         REGEX "^#define (NV_TENSORRT_${_part}|TRT_${_part}_ENTERPRISE) +[0-9]+")
    string(REGEX REPLACE "^[^ ]+ [^ ]+ +([0-9]+).*" "\\1" _number "${_line}")
    list(APPEND TensorRT_VERSION "${_number}")
  endforeach()
  list(JOIN TensorRT_VERSION "." TensorRT_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TensorRT VERSION_VAR TensorRT_VERSION
  REQUIRED_VARS TensorRT_LIBRARY TensorRT_ONNX_LIBRARY TensorRT_INCLUDE_DIR)
mark_as_advanced(TensorRT_INCLUDE_DIR TensorRT_LIBRARY TensorRT_ONNX_LIBRARY)
if(TensorRT_FOUND AND NOT TARGET TensorRT::tensorrt)
  add_library(TensorRT::tensorrt INTERFACE IMPORTED)
  target_include_directories(TensorRT::tensorrt SYSTEM INTERFACE "${TensorRT_INCLUDE_DIR}")
  target_link_libraries(TensorRT::tensorrt INTERFACE "${TensorRT_ONNX_LIBRARY}" "${TensorRT_LIBRARY}")
endif()
