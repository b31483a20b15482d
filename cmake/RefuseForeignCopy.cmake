# SPDX-License-Identifier: Apache-2.0
# Runs during `cmake --install`, before any file is written: ends the installation if the destination has a file that
# this library would replace and that another project has made. Each file is known by a text that only ours contains.
function(cudaq_refuse_foreign folder file text)
  cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
  set(path "$ENV{DESTDIR}${folder}/${file}")
  if(NOT EXISTS "${path}")
    return()
  endif()
  file(STRINGS "${path}" found REGEX "${text}" LIMIT_COUNT 1)
  if(found STREQUAL "")
    message(FATAL_ERROR "${path} exists and is not of this project: its names equal those of NVIDIA's CUDA-Q Realtime. "
      "Install into another prefix (cmake --install BUILD --prefix DIR), or configure with "
      "-DCUDAQ_REALTIME_OVERWRITE_FOREIGN=ON to replace it. Nothing was installed.")
  endif()
endfunction()

if(NOT CUDAQ_OVERWRITE_FOREIGN AND NOT "$ENV{CUDAQ_REALTIME_OVERWRITE_FOREIGN}")
  cudaq_refuse_foreign("${CUDAQ_INCLUDEDIR}/cudaq/realtime/daemon/dispatcher" cudaq_realtime.h
                       "docs/ring_protocol[.]md")
  foreach(library libcudaq-realtime.so libcudaq-realtime.so.${CUDAQ_SOVERSION})
    cudaq_refuse_foreign("${CUDAQ_LIBDIR}" ${library} "CUDAQ_REALTIME_0[.]1")
  endforeach()
  cudaq_refuse_foreign("${CUDAQ_LIBDIR}" libcudaq-realtime-dispatch.a "cudaq_launch_dispatch_kernel_regular_v2")
  if(CUDAQ_INSTALLS_QEC)
    cudaq_refuse_foreign("${CUDAQ_INCLUDEDIR}/cudaq/qec/realtime" pipeline.h "docs/pipeline[.]md")
  endif()
  cudaq_refuse_foreign("${CUDAQ_LIBDIR}/cmake/cudaq-realtime" cudaq-realtime-config.cmake
                       "cudaq-realtime_CUDA_INCLUDE_DIR")
endif()
