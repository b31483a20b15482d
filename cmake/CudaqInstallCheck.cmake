# SPDX-License-Identifier: Apache-2.0
# The first rules of the installation. Header and package names of this library equal those of NVIDIA's CUDA-Q Realtime,
# so `cmake --install` refuses to write over a copy of another project: see RefuseForeignCopy.cmake. It also strips what
# it installs.
include(GNUInstallDirs)
install(CODE "set(CUDAQ_OVERWRITE_FOREIGN \"${CUDAQ_REALTIME_OVERWRITE_FOREIGN}\")
set(CUDAQ_INCLUDEDIR \"${CMAKE_INSTALL_INCLUDEDIR}\")
set(CUDAQ_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")
set(CUDAQ_SOVERSION \"${PROJECT_VERSION_MAJOR}\")
set(CUDAQ_INSTALLS_QEC \"${CUDAQ_REALTIME_BUILD_QEC}\")
include(\"${CMAKE_CURRENT_LIST_DIR}/RefuseForeignCopy.cmake\")" ALL_COMPONENTS)
# Not in a part of another project: that project's own files would be stripped, too.
if(CUDAQ_REALTIME_INSTALL_STRIPPED AND PROJECT_IS_TOP_LEVEL)
  install(CODE "set(CMAKE_INSTALL_DO_STRIP TRUE)" ALL_COMPONENTS)
endif()
