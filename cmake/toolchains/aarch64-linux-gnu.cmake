# SPDX-License-Identifier: Apache-2.0
# Toolchain file for Debian's cross compiler. The tests run under qemu-user. The libraries of others, which only the
# programs and some providers need, are those that scripts/arm64_libraries.sh has fetched.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
execute_process(COMMAND "${CMAKE_CURRENT_LIST_DIR}/../../scripts/arm64_libraries.sh" --folder
  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE CUDAQ_ARM64_LIBRARIES COMMAND_ERROR_IS_FATAL ANY)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu "${CUDAQ_ARM64_LIBRARIES}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Libraries that need other libraries of that folder, when a program is linked and when it is loaded.
set(folders "${CUDAQ_ARM64_LIBRARIES}/usr/lib/aarch64-linux-gnu" "${CUDAQ_ARM64_LIBRARIES}/lib/aarch64-linux-gnu")
list(JOIN folders ":" folders)
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-Wl,-rpath-link,${folders}")
endforeach()
find_program(CUDAQ_QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static)
if(CUDAQ_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR
    "${CUDAQ_QEMU_AARCH64};-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=${folders}")
endif()
