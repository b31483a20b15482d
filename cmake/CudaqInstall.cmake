# SPDX-License-Identifier: Apache-2.0
# The install tree: headers, libraries, and the files by which CMake and pkg-config find them. tools/CMakeLists.txt adds
# the programs. The tree may be moved as a whole. Each optional component has a targets file of its own: see
# cudaq-realtime-config.cmake.in.
#
# Components: `runtime` has what a program needs to run, `dev` what it needs to be built, `tools` the programs.
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)
set(_library LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT dev)
set(_module LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime) # opened at run time by its name

set(_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/cudaq-realtime")
install(DIRECTORY include/cudaq/realtime DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/cudaq"
        FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh")
install(TARGETS cudaq-realtime cudaq-realtime-dispatch-headers EXPORT cudaq-realtime-targets ${_library})
install(EXPORT cudaq-realtime-targets NAMESPACE cudaq:: DESTINATION "${_package_dir}")
foreach(_provider IN ITEMS udp roce cpu-roce gpu-roce)
  if(TARGET cudaq-realtime-bridge-${_provider})
    install(TARGETS cudaq-realtime-bridge-${_provider} ${_module})
  endif()
endforeach()
install(TARGETS cudaq-realtime-bridge-shm ${_module})
if(TARGET cudaq-realtime-bridge-ucx) # without a Debian package: the packages do not depend on UCX
  install(TARGETS cudaq-realtime-bridge-ucx LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ucx)
endif()
install(TARGETS cudaq-realtime-shm-client EXPORT cudaq-realtime-realtime-shm-client-targets ${_library})
install(EXPORT cudaq-realtime-realtime-shm-client-targets NAMESPACE cudaq:: DESTINATION "${_package_dir}")
if(TARGET cudaq-realtime-dispatch)
  install(TARGETS cudaq-realtime-dispatch EXPORT cudaq-realtime-realtime-dispatch-targets
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT cudaq-realtime-realtime-dispatch-targets NAMESPACE cudaq:: DESTINATION "${_package_dir}")
  install(TARGETS cudaq-realtime-graphs EXPORT cudaq-realtime-realtime-graphs-targets ${_library})
  install(EXPORT cudaq-realtime-realtime-graphs-targets NAMESPACE cudaq:: DESTINATION "${_package_dir}")
endif()
if(TARGET cudaq-realtime-gpu-roce-hooks)
  install(TARGETS cudaq-realtime-gpu-roce-hooks EXPORT cudaq-realtime-realtime-gpu-roce-hooks-targets
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT cudaq-realtime-realtime-gpu-roce-hooks-targets NAMESPACE cudaq:: DESTINATION "${_package_dir}")
endif()
if(TARGET cudaq-qec-realtime)
  install(DIRECTORY include/cudaq/qec DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/cudaq"
          FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh")
  install(TARGETS cudaq-qec-realtime EXPORT cudaq-realtime-qec-realtime-targets ${_library})
  install(EXPORT cudaq-realtime-qec-realtime-targets NAMESPACE cudaq:: DESTINATION "${_package_dir}")
  install(TARGETS cudaq-qec-decoding EXPORT cudaq-realtime-qec-decoding-targets ${_library})
  install(EXPORT cudaq-realtime-qec-decoding-targets NAMESPACE cudaq:: DESTINATION "${_package_dir}")
  install(TARGETS cudaq-qec-client EXPORT cudaq-realtime-qec-client-targets ${_library})
  install(EXPORT cudaq-realtime-qec-client-targets NAMESPACE cudaq:: DESTINATION "${_package_dir}")
endif()
if(TARGET cudaq-qec-server)
  install(TARGETS cudaq-qec-server EXPORT cudaq-realtime-qec-server-targets ${_library})
  install(EXPORT cudaq-realtime-qec-server-targets NAMESPACE cudaq:: DESTINATION "${_package_dir}")
endif()
if(TARGET cudaq-qec-realtime-gpu)
  install(TARGETS cudaq-qec-realtime-gpu EXPORT cudaq-realtime-qec-realtime-gpu-targets ${_library})
  install(EXPORT cudaq-realtime-qec-realtime-gpu-targets NAMESPACE cudaq:: DESTINATION "${_package_dir}")
  install(TARGETS cudaq-qec-model-gpu cudaq-qec-relay-bp-gpu ${_module})
endif()
set(CUDAQ_ARCHIVE_ARCHITECTURES "")
if(TARGET cudaq-realtime-dispatch)
  get_target_property(CUDAQ_ARCHIVE_ARCHITECTURES cudaq-realtime-dispatch CUDA_ARCHITECTURES)
endif()
configure_package_config_file(cmake/cudaq-realtime-config.cmake.in cudaq-realtime-config.cmake
                              INSTALL_DESTINATION "${_package_dir}" PATH_VARS CMAKE_INSTALL_INCLUDEDIR
                              NO_SET_AND_CHECK_MACRO)
# Like the soname: within a major version, a released name keeps its meaning and layout.
write_basic_package_version_file(cudaq-realtime-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/cudaq-realtime-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/cudaq-realtime-config-version.cmake" DESTINATION "${_package_dir}")

file(RELATIVE_PATH CUDAQ_PC_PREFIX "/x/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/x")
set(CUDAQ_PC_CUDA_INCLUDE_DIR "${CUDAQ_CUDA_INCLUDE_DIR}")
if(CUDAQ_CUDA_INCLUDE_DIR STREQUAL "${CUDAQ_CUDA_PACKAGES}/include") # only for this build: not named to others
  set(CUDAQ_PC_CUDA_INCLUDE_DIR /usr/local/cuda/include)
endif()
configure_file(cmake/cudaq-realtime.pc.in cudaq-realtime.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/cudaq-realtime.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
# Each other library that programs link: its target has the name of the library and of its .pc file. More arguments:
# options of the compiler.
function(add_pkgconfig _name _requires _description)
  list(TRANSFORM ARGN PREPEND " " OUTPUT_VARIABLE _options)
  list(JOIN _options "" _options)
  if(TARGET ${_name})
    if(_requires)
      string(APPEND _requires " = ${PROJECT_VERSION}")
    endif()
    configure_file(cmake/cudaq-library.pc.in ${_name}.pc @ONLY)
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${_name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  endif()
endfunction()
add_pkgconfig(cudaq-realtime-dispatch cudaq-realtime
  "dispatch kernels for handlers on the GPU, for nvcc -rdc=true" -DCUDAQ_REALTIME_USES_DISPATCH_ARCHIVE)
add_pkgconfig(cudaq-realtime-graphs cudaq-realtime
  "dispatch of RPC requests to CUDA graphs, launched from the device")
add_pkgconfig(cudaq-realtime-shm-client cudaq-realtime "requests to another process through shared memory")
add_pkgconfig(cudaq-qec-decoding "" "decoders for detector error models")
add_pkgconfig(cudaq-qec-client cudaq-realtime "a client of the decoding server, over UDP or shared memory")
add_pkgconfig(cudaq-qec-server cudaq-realtime "a decoding server inside a program")
add_pkgconfig(cudaq-qec-realtime cudaq-realtime "QEC pipeline: predecoding and decoding of requests from a ring")
add_pkgconfig(cudaq-qec-realtime-gpu cudaq-qec-realtime
  "resident GPU workers; device and inference engines of the AI services")
install(FILES LICENSE "${CUDAQ_NOTICES}" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT runtime)
if(TARGET cudaq-realtime-tool AND TARGET cudaq-qec-realtime) # records the shots that are too large for a package
  install(PROGRAMS tools/data/make_data.py DESTINATION "${CMAKE_INSTALL_DATADIR}/cudaq-realtime/data"
          COMPONENT tools)
endif()
