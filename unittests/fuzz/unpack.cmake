# SPDX-License-Identifier: Apache-2.0
# Unpacks the corpora of all fuzz targets: cmake -DTO=FOLDER -P unpack.cmake
file(REMOVE_RECURSE "${TO}")
file(GLOB archives "${CMAKE_CURRENT_LIST_DIR}/corpus/*.tar.gz" "${CMAKE_CURRENT_LIST_DIR}/corpus/*/*.tar.gz")
foreach(archive IN LISTS archives)
  cmake_path(GET archive STEM target)
  file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${TO}/${target}")
endforeach()
