# SPDX-License-Identifier: Apache-2.0
# cudaq_add_decoder_plugin(<name> <source>): target cudaq-qec-<name>, the plug-in libcudaq-qec-<name>.so, which reads
# models with Stim's parser.
function(cudaq_add_decoder_plugin name source)
  set(plugin cudaq-qec-${name})
  add_library(${plugin} MODULE ${source})
  set_target_properties(${plugin} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${plugin} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${plugin} PRIVATE cudaq-pymatching)
  # -fno-strict-aliasing: the headers of Stim need it.
  target_compile_options(${plugin} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -fno-strict-aliasing)
  target_link_options(${plugin} PRIVATE LINKER:--exclude-libs,ALL LINKER:-z,defs
    "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/decoder_plugin.map")
  if(CUDAQ_REALTIME_INSTALL)
    install(TARGETS ${plugin} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/cudaq-realtime/decoders")
  endif()
endfunction()

# cudaq_check_plugin_source(<name> <option> <file>): an error if the directory that the option names lacks the file, or
# if there is no Stim.
function(cudaq_check_plugin_source name option file)
  if(NOT EXISTS "${${option}}/${file}")
    message(FATAL_ERROR "${name}: ${option} is ${${option}}, which does not contain ${file}. "
                        "Set it to the repository of ${name}, or to nothing.")
  endif()
  if(NOT TARGET cudaq-pymatching)
    message(FATAL_ERROR "${name}: its plug-in needs Stim, which comes with PyMatching; that is not available")
  endif()
  message(STATUS "${name}: ${${option}}")
endfunction()
