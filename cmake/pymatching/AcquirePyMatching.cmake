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

set(CUDAQ_PYMATCHING_VERSION 2.4.0)
set(CUDAQ_STIM_VERSION 1.16.0)
set(CUDAQ_PYMATCHING_SHA256 0c30dafa506b086f50d15530debd7b7b39228597d22c52d5ccd114bcbb0a2326)
set(CUDAQ_STIM_SHA256 9092a996429dcf616d8d4ca01fec886b7b310caf9425a39fcfe499005636bd52)

set(CUDAQ_PYMATCHING_DIR "" CACHE PATH "PyMatching source tree to use instead of a download")
set(CUDAQ_STIM_DIR "" CACHE PATH "Stim source tree to use instead of a download")
include("${CMAKE_CURRENT_LIST_DIR}/../PipDownload.cmake")

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
  cudaq_pip_archive("${package}==${version}" --no-binary "${archive}" "${sha256}" reason)
  if(reason)
    set(${out_reason} "${reason}" PARENT_SCOPE)
    return()
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

# The version of a source tree, from the PKG-INFO of an archive or from the package itself; else "unknown".
function(cudaq_pymatching_version folder out)
  set(${out} "unknown" PARENT_SCOPE)
  foreach(file IN ITEMS PKG-INFO src/pymatching/_version.py)
    if(EXISTS "${folder}/${file}")
      file(STRINGS "${folder}/${file}" lines REGEX "^(Version: |__version__ *=)" LIMIT_COUNT 1)
      if(lines MATCHES "[0-9]+(\\.[0-9]+)+")
        set(${out} "${CMAKE_MATCH_0}" PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
endfunction()
