# SPDX-License-Identifier: Apache-2.0
# GoogleTest, and the functions that declare the tests of the project.
#
#   cudaq_add_test(NAME <target> SOURCES <file>... [LIBS <target>...] [LABELS <label>...]
#                  [TIMEOUT <seconds>] [PROCESSORS <n> [QUIET <regex>]] [RUN_SERIAL <regex>])
#     A GoogleTest program; every TEST in it is one ctest entry. The program gets no arguments of the caller: a test
#     finds its files through the macros of cudaq_test_paths.
#   cudaq_test_paths(<target> <macro> <path> [<macro> <path>...])
#     A macro for each file or folder that a test program needs: unittests/support/program_paths.h.
#   cudaq_add_script_test(NAME <name> COMMAND <program> <argument>... [LABELS ...] [TIMEOUT ...] [PROCESSORS ...]
#                  [COST <seconds>] [RUN_SERIAL] [FIXTURES_SETUP <f>] [FIXTURES_REQUIRED <f>])
#     Any other program as a test. Exit status 77 means skipped; the last line of its output is then the reason.
#   cudaq_add_emulated_test(NAME <name> WAY <way> PROGRAMS <target>...)
#     A test of a cross build: unittests/tools/emulated_programs.sh with its way and the programs.
#   cudaq_add_gpu_test(<as cudaq_add_test>)
#     A test that needs a GPU to run, but not to be built or listed. On a machine without a GPU it is skipped, or fails
#     if CUDAQ_REQUIRE_GPU=1 is set in the environment. It is device-linked with the archive of the dispatch kernels and
#     has the label gpu. The file <target>.gputest in the program's folder holds TIMEOUT and RUN_SERIAL for
#     unittests/gpu_check.sh, which runs the tests without ctest.
#
# PROCESSORS is the number of cores that a test keeps busy: ctest -j starts the test when that number is free. It is 1
# where a second one is busy only now and then. With QUIET it is 1 for the tests of the program whose names match this
# regular expression, so a new test is taken as busy. COST is for tests that take long: ctest starts them first, so that
# none of them ends a run alone.
# RUN_SERIAL is for tests that check times: no other test runs at the same time. For a GoogleTest program it is followed
# by a regular expression of the names of its tests. On a machine without a GPU, GPU tests do not run alone: they are
# skipped.
include(GoogleTest)

set(CUDAQ_TEST_PREFIX "" CACHE STRING "Prefix of all test names; it names the build variant")
set(CUDAQ_TEST_TIMEOUT_FACTOR 1 CACHE STRING "Factor for the time limits of all tests, for slow build variants")

set(CUDAQ_GOOGLETEST_DIR /usr/src/googletest/googletest CACHE PATH "Folder of GoogleTest's sources")
if(EXISTS "${CUDAQ_GOOGLETEST_DIR}/src/gtest-all.cc")
  # Built here, because it needs the sanitizer and the target architecture of the tests.
  add_library(cudaq-gtest STATIC "${CUDAQ_GOOGLETEST_DIR}/src/gtest-all.cc")
  target_include_directories(cudaq-gtest SYSTEM
    PUBLIC "${CUDAQ_GOOGLETEST_DIR}/include" PRIVATE "${CUDAQ_GOOGLETEST_DIR}")
  cudaq_third_party(cudaq-gtest)
  target_link_libraries(cudaq-gtest PUBLIC Threads::Threads)
  add_library(cudaq-gtest-main STATIC "${CUDAQ_GOOGLETEST_DIR}/src/gtest_main.cc")
  cudaq_third_party(cudaq-gtest-main)
  target_link_libraries(cudaq-gtest-main PUBLIC cudaq-gtest)
  add_library(GTest::gtest ALIAS cudaq-gtest)
  add_library(GTest::gtest_main ALIAS cudaq-gtest-main)
else()
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    message(FATAL_ERROR "GoogleTest was found neither as sources in ${CUDAQ_GOOGLETEST_DIR} nor as a CMake package. "
      "Install it (Debian: googletest), or configure with -DCUDAQ_REALTIME_BUILD_TESTS=OFF.")
  endif()
endif()

# Headers that every test includes, precompiled once for all tests of the variant. This is possible because all tests
# have the same compile options.
set(_test_options $<$<COMPILE_LANGUAGE:CXX>:${CUDAQ_QUICK_LEVEL}$<SEMICOLON>-g1>) # the tests compile in half the time
file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/empty_program.cpp" CONTENT "int main() {}\n")
add_executable(cudaq-test-headers EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/empty_program.cpp")
target_link_libraries(cudaq-test-headers PRIVATE cudaq-options GTest::gtest)
target_compile_options(cudaq-test-headers PRIVATE ${_test_options})
cudaq_compile_headers(cudaq-test-headers <gtest/gtest.h> ${CUDAQ_STANDARD_HEADERS})

if(CUDAQ_SANITIZER STREQUAL "thread")
  set(_test_environment "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")
elseif(CUDAQ_SANITIZER STREQUAL "address")
  set(_test_environment "ASAN_OPTIONS=detect_stack_use_after_return=1;UBSAN_OPTIONS=print_stacktrace=1")
endif()

if(CUDAQ_CUDA_INCLUDE_DIR STREQUAL "${CUDAQ_CUDA_PACKAGES}/include")
  # No toolkit: projects and programs that tests compile find the headers as in one.
  list(APPEND _test_environment "CUDA_HOME=${CUDAQ_CUDA_PACKAGES}" "CPATH=${CUDAQ_CUDA_PACKAGES}/include")
endif()

# What a script compiles is kept as the objects of the build are: CMake takes its launchers from the environment, and a
# script puts $CUDAQ_TEST_CCACHE before its compiler.
set(_script_environment ${_test_environment})
if(CUDAQ_CCACHE AND PROJECT_IS_TOP_LEVEL)
  list(APPEND _script_environment ${_ccache_settings} "CUDAQ_TEST_CCACHE=${CUDAQ_CCACHE}")
  foreach(_language IN ITEMS C CXX CUDA)
    list(APPEND _script_environment "CMAKE_${_language}_COMPILER_LAUNCHER=${CUDAQ_CCACHE}")
  endforeach()
endif()

# Sets arg_TIMEOUT, arg_PROCESSORS and labels from the arguments of the caller and the defaults.
macro(_cudaq_test_properties)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600) # only so that a hang ends: a busy machine may be ten times slower
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${CUDAQ_TEST_TIMEOUT_FACTOR}")
  string(REGEX REPLACE "\\.$" "" variant "${CUDAQ_TEST_PREFIX}")
  set(labels ${arg_LABELS} ${variant})
endmacro()

function(cudaq_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT;PROCESSORS;QUIET;RUN_SERIAL" "SOURCES;LIBS;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCES)
    message(FATAL_ERROR "cudaq_add_test: NAME and SOURCES are required; unknown arguments: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  _cudaq_test_properties()
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE ${arg_LIBS} cudaq-options GTest::gtest_main)
  target_compile_options(${arg_NAME} PRIVATE ${_test_options})
  if(NOT arg_SOURCES MATCHES "\\.c(;|$)") # CMake would look for a precompiled header of C, too
    cudaq_use_headers(${arg_NAME} cudaq-test-headers)
  endif()
  cudaq_quick_link(${arg_NAME})
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    target_compile_definitions(${arg_NAME} PRIVATE CUDAQ_TEST_EMULATED)
  endif()
  # CMake runs the program after its link to list its tests, under the emulator if there is one. A program that cannot
  # list its tests fails the build.
  set(prefix)
  if(CUDAQ_TEST_PREFIX) # CMake 3.31 warns of an empty one
    set(prefix TEST_PREFIX "${CUDAQ_TEST_PREFIX}")
  endif()
  gtest_discover_tests(${arg_NAME} ${prefix} DISCOVERY_TIMEOUT 120 NO_PRETTY_VALUES)
  # gtest_discover_tests cannot set a property to a list. ctest reads this file after the list of tests.
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}_properties.cmake")
  file(CONFIGURE OUTPUT "${file}" @ONLY CONTENT [[
set_tests_properties(${@arg_NAME@_TESTS} PROPERTIES LABELS "@labels@" TIMEOUT @arg_TIMEOUT@ PROCESSORS @arg_PROCESSORS@
  ENVIRONMENT "@_test_environment@")
set(alone "@arg_RUN_SERIAL@")
set(quiet "@arg_QUIET@")
if("@labels@" MATCHES "gpu" AND NOT EXISTS "/dev/nvidiactl" AND NOT DEFINED ENV{CUDAQ_REQUIRE_GPU})
  set(alone "")
endif()
foreach(test IN LISTS @arg_NAME@_TESTS)
  if(alone AND test MATCHES "${alone}")
    set_tests_properties("${test}" PROPERTIES RUN_SERIAL TRUE)
  endif()
  if(quiet AND test MATCHES "${quiet}")
    set_tests_properties("${test}" PROPERTIES PROCESSORS 1)
  endif()
endforeach()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${file}")
endfunction()

# The kernel starts no program of another machine: instead of each program that a test starts, the test gets a script
# that starts the emulator with it. Called after all targets are known.
function(_cudaq_write_emulated_programs)
  get_property(targets GLOBAL PROPERTY CUDAQ_TESTED_FILES)
  list(REMOVE_DUPLICATES targets)
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR "' '" emulator)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      file(GENERATE OUTPUT "$<TARGET_FILE:${target}>.emulated"
        CONTENT "#!/bin/sh\nexec '${emulator}' '$<TARGET_FILE:${target}>' \"$@\"\n"
        FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
    endif()
  endforeach()
endfunction()
if(CMAKE_CROSSCOMPILING_EMULATOR)
  cmake_language(DEFER DIRECTORY "${PROJECT_SOURCE_DIR}" CALL _cudaq_write_emulated_programs)
endif()

function(cudaq_test_paths target)
  set(scope PRIVATE)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    set(scope INTERFACE)
  endif()
  while(ARGN)
    list(POP_FRONT ARGN macro path)
    if(CMAKE_CROSSCOMPILING_EMULATOR AND path MATCHES "^\\$<TARGET_FILE:(.+)>$")
      set_property(GLOBAL APPEND PROPERTY CUDAQ_TESTED_FILES ${CMAKE_MATCH_1})
      string(APPEND path "$<$<STREQUAL:$<TARGET_PROPERTY:${CMAKE_MATCH_1},TYPE>,EXECUTABLE>:.emulated>")
    endif()
    set(path "$<PATH:RELATIVE_PATH,${path},$<TARGET_PROPERTY:BINARY_DIR>>")
    target_compile_definitions(${target} ${scope} "${macro}=cudaq::realtime::test::test_path<\"${path}\">()")
  endwhile()
endfunction()

function(cudaq_add_gpu_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "RUN_SERIAL" "NAME;TIMEOUT;PROCESSORS" "SOURCES;LIBS;LABELS")
  set(serial "")
  if(arg_RUN_SERIAL)
    set(serial RUN_SERIAL ".")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  cudaq_add_test(NAME ${arg_NAME} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS} cudaq-realtime-dispatch
                 LABELS gpu ${arg_LABELS} TIMEOUT ${arg_TIMEOUT} PROCESSORS ${arg_PROCESSORS} ${serial}
                 ${arg_UNPARSED_ARGUMENTS})
  set_target_properties(${arg_NAME} PROPERTIES CUDA_SEPARABLE_COMPILATION ON CUDA_RUNTIME_LIBRARY Static)
  # Warning 177, unused variable: GoogleTest declares a static member in every test that no code uses.
  target_compile_options(${arg_NAME} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--diag-suppress=177>)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}.gputest" @ONLY
       CONTENT "timeout=@arg_TIMEOUT@\nserial=@arg_RUN_SERIAL@\n")
endfunction()

function(cudaq_add_script_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "RUN_SERIAL" "NAME;TIMEOUT;PROCESSORS;COST;FIXTURES_SETUP;FIXTURES_REQUIRED"
                        "COMMAND;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR "${arg_COMMAND}" STREQUAL "") # a command may end with X-NOTFOUND
    message(FATAL_ERROR
      "cudaq_add_script_test: NAME and COMMAND are required; unknown arguments: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  _cudaq_test_properties()
  set(name "${CUDAQ_TEST_PREFIX}${arg_NAME}")
  add_test(NAME "${name}" COMMAND ${arg_COMMAND})
  set_tests_properties("${name}" PROPERTIES LABELS "${labels}" TIMEOUT ${arg_TIMEOUT} PROCESSORS ${arg_PROCESSORS}
    RUN_SERIAL "${arg_RUN_SERIAL}" SKIP_RETURN_CODE 77 ENVIRONMENT "${_script_environment}")
  if(arg_COST)
    set_tests_properties("${name}" PROPERTIES COST ${arg_COST})
  endif()
  foreach(kind FIXTURES_SETUP FIXTURES_REQUIRED)
    if(arg_${kind})
      set_tests_properties("${name}" PROPERTIES ${kind} "${CUDAQ_TEST_PREFIX}${arg_${kind}}")
    endif()
  endforeach()
endfunction()

function(cudaq_add_emulated_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;WAY" "PROGRAMS")
  set_property(GLOBAL APPEND PROPERTY CUDAQ_TESTED_FILES ${arg_PROGRAMS})
  list(TRANSFORM arg_PROGRAMS REPLACE "(.+)" "$<TARGET_FILE:\\1>.emulated")
  cudaq_add_script_test(NAME ${arg_NAME} LABELS host PROCESSORS 2 COMMAND
    "${PROJECT_SOURCE_DIR}/unittests/tools/emulated_programs.sh" ${arg_WAY} "${PROJECT_SOURCE_DIR}" ${arg_PROGRAMS})
endfunction()
