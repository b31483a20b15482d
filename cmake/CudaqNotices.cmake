# SPDX-License-Identifier: Apache-2.0
# Writes THIRD_PARTY_NOTICES.txt into the build folder: the code of other projects that is in the installed files, in
# which of them, and its licence, word for word from where the code was found. What is only used by tests, or linked as
# a shared library of the system, is not in it. cmake --install installs it beside LICENSE, and the wheel has it.
set(CUDAQ_NOTICES "${PROJECT_BINARY_DIR}/THIRD_PARTY_NOTICES.txt")
set(_notices "Code of other projects in the installed files of cudaq-realtime ${CUDAQ_REALTIME_VERSION_TEXT}\n")

# cudaq_notice(<name and version> <SPDX licence> <where it is used> <file with the licence>...): the first file that
# exists is taken. Without one, the licence is only named.
function(cudaq_notice name licence where)
  string(REPEAT "=" 100 line)
  string(APPEND _notices "\n${line}\n${name}\nLicence: ${licence}\nUsed in: ${where}\n${line}\n\n")
  foreach(file IN LISTS ARGN)
    if(EXISTS "${file}")
      file(READ "${file}" text)
      string(STRIP "${text}" text)
      string(APPEND _notices "${text}\n")
      set(_notices "${_notices}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(STATUS "Notices: no file with the licence of ${name} was found; THIRD_PARTY_NOTICES.txt only names it")
  string(APPEND _notices "The text of the licence was not found when this file was made.\n")
  set(_notices "${_notices}" PARENT_SCOPE)
endfunction()

# The version of an unpacked source archive, with a blank before it.
function(cudaq_source_version folder out)
  set(version "")
  if(EXISTS "${folder}/PKG-INFO")
    file(STRINGS "${folder}/PKG-INFO" version REGEX "^Version: " LIMIT_COUNT 1)
    string(REPLACE "Version:" "" version "${version}")
  endif()
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

# cudaq_source_notice(<name> <target> <property of it with the folder of the sources> <where it is used>)
function(cudaq_source_notice name target property where)
  get_target_property(folder ${target} ${property})
  cudaq_source_version("${folder}" version)
  cudaq_notice("${name}${version}" Apache-2.0 "${where}" "${folder}/LICENSE")
  set(_notices "${_notices}" PARENT_SCOPE)
endfunction()

if(TARGET cudaq-pymatching)
  set(_where "libcudaq-qec-decoding, libcudaq-qec-server, libcudaq-qec-model-gpu, the programs, decoder plug-ins")
  cudaq_source_notice(PyMatching cudaq-pymatching CUDAQ_PYMATCHING_FOLDER "${_where}")
  cudaq_source_notice(Stim cudaq-pymatching CUDAQ_STIM_FOLDER "${_where}")
endif()
if(TARGET cudaq-chromobius)
  cudaq_source_notice(Chromobius cudaq-chromobius CUDAQ_CHROMOBIUS_FOLDER "libcudaq-qec-chromobius")
endif()
foreach(_plugin IN ITEMS ldpc tesseract)
  string(TOUPPER ${_plugin} _name)
  if(TARGET cudaq-qec-${_plugin})
    cudaq_notice("${_plugin}" "see the text" "libcudaq-qec-${_plugin}" "${CUDAQ_${_name}_DIR}/LICENSE")
  endif()
endforeach()
get_filename_component(_toolkit "${CUDAQ_CUDA_INCLUDE_DIR}/.." REALPATH)
foreach(_package IN ITEMS runtime cccl) # the second: what FetchCudaHeaders.cmake has fetched
  file(GLOB _${_package} "${_toolkit}/dist-info/nvidia_cuda_${_package}-*/licenses/License.txt"
       "${_toolkit}/../../nvidia_cuda_${_package}-*.dist-info/licenses/License.txt")
endforeach()
if(CUDAQ_REALTIME_ENABLE_CUDA)
  string(JOIN ", " _where libcudaq-realtime libcudaq-realtime-graphs libcudaq-realtime-bridge-shm
    libcudaq-qec-realtime-gpu libcudaq-qec-model-gpu libcudaq-qec-relay-bp-gpu "the programs")
  cudaq_notice("NVIDIA CUDA runtime (libcudart_static)" "NVIDIA's end user licence agreement of the CUDA toolkit"
    "${_where}" "${_toolkit}/EULA.txt" ${_runtime})
endif()
if(TARGET cudaq-realtime-dispatch)
  cudaq_notice("NVIDIA CCCL (libcu++)" "Apache-2.0 WITH LLVM-exception"
    "libcudaq-realtime-dispatch, libcudaq-realtime-graphs, cudaq-realtime-gpu, cudaq-realtime-bench" ${_cccl})
endif()
if(TARGET cudaq-realtime-tool)
  set(_debian /usr/share/doc)
  foreach(_one "CLI11|BSD-3-Clause|libcli11-dev" "JSON for Modern C++|MIT|nlohmann-json3-dev"
               "fmt (headers)|MIT|libfmt-dev")
    string(REPLACE "|" ";" _one "${_one}")
    list(GET _one 0 _name)
    list(GET _one 1 _licence)
    list(GET _one 2 _package)
    cudaq_notice("${_name}" "${_licence}" "the programs" "${_debian}/${_package}/copyright")
  endforeach()
  if(CUDAQ_REALTIME_PORTABLE_PROGRAMS)
    cudaq_notice(yaml-cpp MIT "the programs" "${_debian}/libyaml-cpp-dev/copyright")
  endif()
endif()
file(GENERATE OUTPUT "${CUDAQ_NOTICES}" CONTENT "${_notices}") # written only if it has changed
