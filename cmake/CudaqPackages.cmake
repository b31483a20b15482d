# SPDX-License-Identifier: Apache-2.0
# `cpack -G DEB` or `cpack -G RPM` in the build folder: libcudaq-realtime<major>, libcudaq-realtime-dev,
# libcudaq-realtime-tools and, if it is built, cudaq-realtime-bench, one for each component of the installation. Their
# version is that of version.h.
# docs/packages/packages.md is for users.
set(CUDAQ_PACKAGE_CONTACT "CUDA-Q Realtime maintainers <maintainers@localhost>" CACHE STRING
  "Name and mail address of who builds the packages")
set(CUDAQ_PACKAGE_REVISION 1 CACHE STRING "Revision of the packages of one version, after the dash")

set(_runtime libcudaq-realtime${PROJECT_VERSION_MAJOR})
set(_dev libcudaq-realtime-dev)
set(_tools libcudaq-realtime-tools)
set(_benchmarks cudaq-realtime-bench)
set(CUDAQ_PACKAGE_VERSION "${PROJECT_VERSION}")
if(CUDAQ_REALTIME_PRERELEASE)
  string(APPEND CUDAQ_PACKAGE_VERSION "~${CUDAQ_REALTIME_PRERELEASE}") # which sorts before the release
endif()
set(_exactly "(= ${CUDAQ_PACKAGE_VERSION}-${CUDAQ_PACKAGE_REVISION})")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cudaq-realtime)
set(CPACK_PACKAGE_VENDOR "CUDA-Q Realtime")
set(CPACK_PACKAGE_CONTACT "${CUDAQ_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_VERSION "${CUDAQ_PACKAGE_VERSION}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_COMPONENTS_ALL runtime dev tools)
if(TARGET cudaq-realtime-bench)
  list(APPEND CPACK_COMPONENTS_ALL benchmarks)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_STRIP_FILES TRUE)
# Programs on another machine: the mode of files does not follow the umask of the build.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE "${CUDAQ_PACKAGE_REVISION}")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # dpkg-shlibdeps: the shared libraries that the files need, and their versions
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
  "${PROJECT_BINARY_DIR}/lib" "${PROJECT_BINARY_DIR}/lib/qec" "${PROJECT_BINARY_DIR}/lib/transport/shm"
  "${PROJECT_BINARY_DIR}/lib/transport/client"
  "${PROJECT_BINARY_DIR}/kernels" "${PROJECT_BINARY_DIR}/kernels/qec")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON) # for packages of others that link the libraries
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${_runtime})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
# dpkg runs ldconfig once after an installation; no package has a script.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_LIST_DIR}/debian/triggers")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "RPC dispatch between a quantum control system and its decoders
The shared libraries: rings and dispatchers, decoders, the QEC pipeline,
transports over UDP, RoCE and shared memory. No GPU and no driver is needed.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME ${_dev})
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${_runtime} ${_exactly}")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "pkg-config, cmake")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers and build files of CUDA-Q Realtime
Headers, the archive of dispatch kernels, files for CMake and pkg-config.
The headers include those of the CUDA toolkit, 12.6 or newer.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME ${_tools})
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${_runtime} ${_exactly}")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "python3") # make_data.py
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "Programs of CUDA-Q Realtime
The program cudaq-realtime: demo, decoding server, emulator of a control
system, measurement of latency, a check of the machine; recorded shots.")

set(CPACK_DEBIAN_BENCHMARKS_PACKAGE_NAME ${_benchmarks})
set(CPACK_DEBIAN_BENCHMARKS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_BENCHMARKS_PACKAGE_DEPENDS "${_runtime} ${_exactly}")
set(CPACK_DEBIAN_BENCHMARKS_PACKAGE_RECOMMENDS "${_tools}") # recorded shots
set(CPACK_COMPONENT_BENCHMARKS_DESCRIPTION "Benchmarks of CUDA-Q Realtime
The program cudaq-realtime-bench: rates of logical errors, lag of streams,
the device path and the QEC pipeline beside their floors; compares reports.")

# RPM packages: the same names, components and descriptions. rpmbuild finds the shared libraries that the files need.
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_RELEASE "${CUDAQ_PACKAGE_REVISION}")
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0) # of the project; THIRD_PARTY_NOTICES.txt has those of the code of others
set(CPACK_RPM_PACKAGE_RELOCATABLE OFF)
set(CPACK_RPM_SPEC_MORE_DEFINE "%define _build_id_links none") # the files are those of the installation
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION # folders of other packages
  /usr/share/man /usr/share/man/man1 /usr/share/man/man3
  /usr/share/bash-completion /usr/share/bash-completion/completions
  /usr/share/fish /usr/share/fish/vendor_completions.d /usr/share/zsh /usr/share/zsh/site-functions
  /usr/${CMAKE_INSTALL_LIBDIR} /usr/${CMAKE_INSTALL_LIBDIR}/cmake
  /usr/${CMAKE_INSTALL_LIBDIR}/pkgconfig)
foreach(_component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${_component} _upper)
  set(CPACK_RPM_${_upper}_PACKAGE_NAME ${_${_component}})
  # The first line is the title, the others are the description, as in a Debian package.
  string(REGEX MATCH "^[^\n]*" CPACK_RPM_${_upper}_PACKAGE_SUMMARY "${CPACK_COMPONENT_${_upper}_DESCRIPTION}")
  if(NOT _component STREQUAL runtime)
    set(CPACK_RPM_${_upper}_PACKAGE_REQUIRES "${_runtime} = ${CUDAQ_PACKAGE_VERSION}-${CUDAQ_PACKAGE_REVISION}")
  endif()
endforeach()
set(CPACK_RPM_RUNTIME_POST_INSTALL_SCRIPT_FILE "${CMAKE_CURRENT_LIST_DIR}/rpm/ldconfig")
set(CPACK_RPM_RUNTIME_POST_UNINSTALL_SCRIPT_FILE "${CMAKE_CURRENT_LIST_DIR}/rpm/ldconfig")

# What Debian wants in each package: the licences of the project and of the code of others, changelogs, man pages.
# RPM packages have them, too, without Debian's own changelog and exceptions.
configure_file("${CMAKE_CURRENT_LIST_DIR}/PackageDocuments.cmake.in" PackageDocuments.cmake @ONLY)
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_BINARY_DIR}/PackageDocuments.cmake")
include(CPack)
