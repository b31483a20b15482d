# SPDX-License-Identifier: Apache-2.0
# Read by ctest, from the file that scripts/test.sh --all writes. Every test that is added after this file is run by
# measure.sh, which notes how much processor time it takes, that of an emulator included.
#   CUDAQ_PROCESSOR_TIMES   the file with the times
# cudaq_check_processor_times() adds the test that compares them with ../long_tests.txt. It comes last.
set(cudaq_measure "${CMAKE_CURRENT_LIST_DIR}/measure.sh")
set(cudaq_check_times "${CMAKE_CURRENT_LIST_DIR}/check_times.py")
set(cudaq_long_tests "${CMAKE_CURRENT_LIST_DIR}/../long_tests.txt")

# The function that CMake replaces stays as _add_test. An argument may be empty or have semicolons.
function(add_test name)
  set(command "")
  foreach(i RANGE 1 ${ARGC})
    if(i LESS ARGC)
      string(APPEND command " [====[${ARGV${i}}]====]")
    endif()
  endforeach()
  cmake_language(EVAL CODE "_add_test([====[${name}]====] [====[${cudaq_measure}]====]
    [====[${CUDAQ_PROCESSOR_TIMES}]====] [====[${name}]====] ${command})")
  set_property(GLOBAL APPEND PROPERTY cudaq_measured_tests "${name}")
endfunction()

function(cudaq_check_processor_times)
  get_property(names GLOBAL PROPERTY cudaq_measured_tests)
  _add_test(ProcessorTime.LongTestsAreListed "${cudaq_check_times}" "${CUDAQ_PROCESSOR_TIMES}" "${cudaq_long_tests}")
  set_tests_properties(ProcessorTime.LongTestsAreListed PROPERTIES DEPENDS "${names}")
endfunction()
