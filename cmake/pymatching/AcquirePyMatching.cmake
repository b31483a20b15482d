# SPDX-License-Identifier: Apache-2.0
# Finds the C++ sources of PyMatching and Stim at configure time.
#
#   cudaq_acquire_pymatching(<out_pymatching_dir> <out_stim_dir> <out_reason>)
#
# Sets both directories (each contains `src/`), or no directory and a reason. Never stops the configuration: the caller
# decides whether a failure is an error. Sources, in order:
#   1. CUDAQ_PYMATCHING_DIR, CUDAQ_STIM_DIR   directories that the user sets (each is optional)
#   2. CUDAQ_DOWNLOAD_CACHE                   archives of an earlier download; their hash is checked
#   3. pip download, by package name          from the index that the user's pip uses
# A second configuration finds the extracted sources; it neither runs pip nor changes files.

set(CUDAQ_PYMATCHING_VERSION 2.3.1)
set(CUDAQ_STIM_VERSION 1.15.0)
set(CUDAQ_PYMATCHING_SHA256 dac1afab0a190a003a3689a18c3afc5c99a5beaa6a099d79e3d4c8b24c1fa7c5)
set(CUDAQ_STIM_SHA256 95236006859d6754be99629d4fb44788e742e962ac8c59caad421ca088f7350e)

set(CUDAQ_PYMATCHING_DIR "" CACHE PATH "PyMatching source tree to use instead of a download")
set(CUDAQ_STIM_DIR "" CACHE PATH "Stim source tree to use instead of a download")
if(DEFINED ENV{XDG_CACHE_HOME})
  set(_cudaq_cache "$ENV{XDG_CACHE_HOME}/cudaq-realtime")
elseif(DEFINED ENV{HOME})
  set(_cudaq_cache "$ENV{HOME}/.cache/cudaq-realtime")
else()
  set(_cudaq_cache "${CMAKE_BINARY_DIR}/downloads")
endif()
set(CUDAQ_DOWNLOAD_CACHE "${_cudaq_cache}" CACHE PATH "Folder for downloaded source archives")
set(CUDAQ_DOWNLOAD_TIMEOUT 120 CACHE STRING "Time limit of a download, in seconds")
unset(_cudaq_cache)

# Downloads one archive with pip into the cache. `pip download` prepares the metadata of a source archive, which takes
# some seconds and installs build tools in a separate environment. It compiles nothing.
function(_cudaq_pip_download requirement archive sha256 out_reason)
  set(${out_reason} "" PARENT_SCOPE)
  find_program(CUDAQ_PYTHON3 NAMES python3)
  mark_as_advanced(CUDAQ_PYTHON3)
  if(NOT CUDAQ_PYTHON3)
    set(${out_reason} "python3 is not installed" PARENT_SCOPE)
    return()
  endif()
  string(REGEX REPLACE "==.*" "" package "${requirement}")
  # A scratch folder inside the build folder, because two builds may download at the same time.
  set(scratch "${CMAKE_BINARY_DIR}/_pip/${archive}.d")
  file(REMOVE_RECURSE "${scratch}")
  file(MAKE_DIRECTORY "${scratch}")
  message(STATUS "Downloading ${requirement} with pip")
  execute_process(
    COMMAND "${CUDAQ_PYTHON3}" -m pip download --quiet --no-input --disable-pip-version-check
            --retries 1 --timeout 15 --no-deps --no-binary "${package}" --dest "${scratch}" "${requirement}"
    TIMEOUT ${CUDAQ_DOWNLOAD_TIMEOUT} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT EXISTS "${scratch}/${archive}")
    string(REGEX REPLACE "[ \t\r\n]+$" "" output "${output}")
    string(REGEX REPLACE "^.*\n" "" output "${output}")
    set(${out_reason} "pip download ${requirement} failed (${result}): ${output}" PARENT_SCOPE)
    return()
  endif()
  file(SHA256 "${scratch}/${archive}" found)
  if(NOT found STREQUAL sha256)
    set(${out_reason} "${archive} has sha256 ${found}, expected ${sha256}" PARENT_SCOPE)
    return()
  endif()
  # Copies into the target's folder, then renames: a reader never finds an incomplete file.
  string(RANDOM LENGTH 8 suffix)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${CUDAQ_DOWNLOAD_CACHE}"
    OUTPUT_QUIET ERROR_QUIET)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E copy "${scratch}/${archive}" "${CUDAQ_DOWNLOAD_CACHE}/${archive}.${suffix}"
    RESULT_VARIABLE result ERROR_VARIABLE output)
  if(result)
    set(${out_reason} "the cache ${CUDAQ_DOWNLOAD_CACHE} cannot be written (set CUDAQ_DOWNLOAD_CACHE)" PARENT_SCOPE)
    return()
  endif()
  file(RENAME "${CUDAQ_DOWNLOAD_CACHE}/${archive}.${suffix}" "${CUDAQ_DOWNLOAD_CACHE}/${archive}" RESULT result)
  if(result)
    set(${out_reason} "${CUDAQ_DOWNLOAD_CACHE}/${archive}: ${result}" PARENT_SCOPE)
    return()
  endif()
  file(REMOVE_RECURSE "${scratch}")
endfunction()

# Sets the extracted source tree of one package, or a reason. `user_dir`: the directory that the user set, or "".
# `probe`: a file that the tree must have.
function(cudaq_acquire_source package version sha256 user_dir probe out_dir out_reason)
  set(${out_dir} "" PARENT_SCOPE)
  set(${out_reason} "" PARENT_SCOPE)
  if(user_dir)
    if(EXISTS "${user_dir}/${probe}")
      set(${out_dir} "${user_dir}" PARENT_SCOPE)
    else()
      set(${out_reason} "${user_dir}, which is set for ${package}, does not contain ${probe}" PARENT_SCOPE)
    endif()
    return()
  endif()

  string(TOLOWER "${package}-${version}" stem)
  set(tree "${CMAKE_BINARY_DIR}/_sources/${stem}")
  set(stamp "${tree}.sha256")
  if(EXISTS "${stamp}" AND EXISTS "${tree}/${probe}")
    file(READ "${stamp}" stamped)
    if(stamped STREQUAL sha256)
      set(${out_dir} "${tree}" PARENT_SCOPE)
      return()
    endif()
  endif()

  set(archive "${stem}.tar.gz")
  set(cached "${CUDAQ_DOWNLOAD_CACHE}/${archive}")
  set(found "")
  if(EXISTS "${cached}")
    file(SHA256 "${cached}" found)
  endif()
  if(NOT found STREQUAL sha256)
    if(found)
      message(STATUS "${cached} has the wrong hash and is replaced")
    endif()
    _cudaq_pip_download("${package}==${version}" "${archive}" "${sha256}" reason)
    if(reason)
      set(${out_reason} "${reason}" PARENT_SCOPE)
      return()
    endif()
  endif()

  file(REMOVE_RECURSE "${tree}" "${stamp}")
  file(ARCHIVE_EXTRACT INPUT "${cached}" DESTINATION "${CMAKE_BINARY_DIR}/_sources")
  if(NOT EXISTS "${tree}/${probe}")
    set(${out_reason} "${archive} does not contain ${probe}" PARENT_SCOPE)
    return()
  endif()
  file(WRITE "${stamp}" "${sha256}")
  set(${out_dir} "${tree}" PARENT_SCOPE)
endfunction()

function(cudaq_acquire_pymatching out_pymatching_dir out_stim_dir out_reason)
  set(${out_pymatching_dir} "" PARENT_SCOPE)
  set(${out_stim_dir} "" PARENT_SCOPE)
  cudaq_acquire_source(PyMatching ${CUDAQ_PYMATCHING_VERSION} ${CUDAQ_PYMATCHING_SHA256} "${CUDAQ_PYMATCHING_DIR}"
                     src/pymatching/sparse_blossom/driver/mwpm_decoding.cc pymatching_dir reason)
  if(NOT reason)
    cudaq_acquire_source(stim ${CUDAQ_STIM_VERSION} ${CUDAQ_STIM_SHA256} "${CUDAQ_STIM_DIR}"
                       src/stim/dem/detector_error_model.cc stim_dir reason)
  endif()
  set(${out_reason} "${reason}" PARENT_SCOPE)
  if(NOT reason)
    set(${out_pymatching_dir} "${pymatching_dir}" PARENT_SCOPE)
    set(${out_stim_dir} "${stim_dir}" PARENT_SCOPE)
  endif()
endfunction()
