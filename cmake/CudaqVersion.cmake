# SPDX-License-Identifier: Apache-2.0
# Reads CUDAQ_REALTIME_VERSION (1.0.0) and CUDAQ_REALTIME_PRERELEASE (rc1, or empty) from version.h, the only place
# where the version is written. Texts have both: CUDAQ_REALTIME_VERSION_TEXT (1.0.0-rc1).
set(_header "${CMAKE_CURRENT_LIST_DIR}/../include/cudaq/realtime/version.h")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_header}")
foreach(_part MAJOR MINOR PATCH)
  file(STRINGS "${_header}" _line REGEX "^#define CUDAQ_REALTIME_VERSION_${_part} [0-9]+$")
  string(REGEX REPLACE ".* ([0-9]+)$" "\\1" _${_part} "${_line}")
endforeach()
set(CUDAQ_REALTIME_VERSION "${_MAJOR}.${_MINOR}.${_PATCH}")
file(STRINGS "${_header}" _line REGEX "^#define CUDAQ_REALTIME_VERSION_PRERELEASE \".*\"$")
string(REGEX REPLACE ".* \"(.*)\"$" "\\1" CUDAQ_REALTIME_PRERELEASE "${_line}")
set(CUDAQ_REALTIME_VERSION_TEXT "${CUDAQ_REALTIME_VERSION}")
if(CUDAQ_REALTIME_PRERELEASE)
  string(APPEND CUDAQ_REALTIME_VERSION_TEXT "-${CUDAQ_REALTIME_PRERELEASE}")
endif()
