# SPDX-License-Identifier: Apache-2.0
# What a user of a package reads: the pages, the examples with their Makefile, and man pages of the C API. Pages keep
# their places among each other, so their links work. Python writes the man pages; without it there are none.
# `cmake --build BUILD --target cudaq-realtime-site` makes the pages as HTML (Debian packages: mkdocs, doxygen); they
# are installed if they were made before.
set(_documents "${CMAKE_INSTALL_DOCDIR}")
install(FILES README.md SECURITY.md CODE_OF_CONDUCT.md DESTINATION "${_documents}")
install(FILES tools/data/README.md DESTINATION "${_documents}/tools/data")
install(DIRECTORY docs DESTINATION "${_documents}"
        PATTERN archive EXCLUDE # for those who change the code
        PATTERN site EXCLUDE
        PATTERN "examples/CMakeLists.txt" EXCLUDE # for this source tree
        PATTERN "examples/decoders.yaml" EXCLUDE)
# The same file, with the model where an installation has it.
file(RELATIVE_PATH _data "${CMAKE_INSTALL_FULL_DOCDIR}/docs/examples"
     "${CMAKE_INSTALL_PREFIX}/${CUDAQ_DATA_FOLDER}")
file(READ docs/examples/decoders.yaml _decoders)
string(REPLACE "../../tools/data" "${_data}" _decoders "${_decoders}")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/decoders.yaml" CONTENT "${_decoders}" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/decoders.yaml" DESTINATION "${_documents}/docs/examples")
install(DIRECTORY "${PROJECT_BINARY_DIR}/site/" DESTINATION "${_documents}/html" OPTIONAL)

find_package(Python3 COMPONENTS Interpreter QUIET)
if(NOT Python3_Interpreter_FOUND)
  message(STATUS "cudaq-realtime: no Python, so without man pages of the C API")
  return()
endif()
set(_man3 "${PROJECT_BINARY_DIR}/man3")
file(GLOB_RECURSE _headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/cudaq/*.h")
add_custom_command(OUTPUT "${_man3}/cudaq_realtime.h.3" VERBATIM
  DEPENDS "${PROJECT_SOURCE_DIR}/scripts/man_pages.py" "${PROJECT_SOURCE_DIR}/docs/api/index.md" ${_headers}
  COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/man_pages.py" "${_man3}"
          "${CUDAQ_REALTIME_VERSION_TEXT}")
add_custom_target(cudaq-realtime-api-pages DEPENDS "${_man3}/cudaq_realtime.h.3")
add_dependencies(cudaq-realtime cudaq-realtime-api-pages) # built by all who build what is installed
install(DIRECTORY "${_man3}" DESTINATION "${CMAKE_INSTALL_MANDIR}")
add_custom_target(cudaq-realtime-site VERBATIM USES_TERMINAL
  COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/build_site.py" "${PROJECT_BINARY_DIR}/site")
