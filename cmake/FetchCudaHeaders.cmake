# SPDX-License-Identifier: Apache-2.0
# For a machine without a CUDA toolkit: fetches what a build needs of it, without nvcc. These are the headers of the
# runtime, libcu++ and libcudart_static.a, from NVIDIA's packages on PyPI (5.4 MB), under NVIDIA's licences, which are
# in them. scripts/bootstrap.sh runs it:
#   cmake [-DCUDAQ_DOWNLOAD_CACHE=DIR] [-DCUDAQ_FETCH_NVCC=ON] -P cmake/FetchCudaHeaders.cmake
# CUDAQ_FETCH_NVCC: also nvcc and what it runs, for device kernels (another 99 MB); a build then finds it, too.
# A build includes it, too, and looks into the folder CUDAQ_CUDA_PACKAGES last, after all places of a toolkit. It
# downloads nothing. The Python package has the same packages as build requirements.
include("${CMAKE_CURRENT_LIST_DIR}/PipDownload.cmake")
set(_cudaq_cuda_runtime 13.0.96)
set(_cudaq_cuda_cccl 13.0.85)
set(_cudaq_cuda_crt 13.0.88)
set(_cudaq_cuda_nvcc 13.0.88)
set(_cudaq_cuda_nvvm 13.0.88)
set(_cudaq_cuda_x86_64
  7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
  e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649
  2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4
  56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03
  c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0)
set(_cudaq_cuda_aarch64
  ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55
  6f0203e29fed809ee2b7fe9b1344df66ecab990c37d6a2e0e189b26d6c97ed7c
  ee2ea2a97073e02ee62bb27841f437332be2c248e3eac013df07997ada39c003
  c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f
  c4376a291d72d22a315d9d2f69bdae8f8cd83a627f75bad395cee49a0fe65dc1)
# With the version in its name: a version that is new here never finds the files of an old one.
set(_cudaq_cuda_tree "${CUDAQ_DOWNLOAD_CACHE}/cuda-${_cudaq_cuda_runtime}")
if(CUDAQ_FETCH_NVCC OR EXISTS "${_cudaq_cuda_tree}-nvcc")
  string(APPEND _cudaq_cuda_tree "-nvcc")
endif()
set(CUDAQ_CUDA_PACKAGES "${_cudaq_cuda_tree}/nvidia/cu13")
if(NOT CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE OR EXISTS "${CUDAQ_CUDA_PACKAGES}")
  return()
endif()

cmake_minimum_required(VERSION 3.25)
cmake_host_system_information(RESULT machine QUERY OS_PLATFORM)
if(NOT DEFINED _cudaq_cuda_${machine})
  message(FATAL_ERROR "There is no package with the headers of the CUDA toolkit for ${machine}.")
endif()
string(RANDOM LENGTH 8 suffix)
set(unpacked "${_cudaq_cuda_tree}.${suffix}") # renamed at the end: a build never finds an incomplete folder
set(packages runtime cccl crt)
if(CUDAQ_FETCH_NVCC)
  list(APPEND packages nvcc nvvm)
endif()
foreach(package sha256 IN ZIP_LISTS packages _cudaq_cuda_${machine})
  if(NOT package)
    break() # the hashes of nvcc are the last ones
  endif()
  set(version "${_cudaq_cuda_${package}}")
  set(platform "manylinux2014_${machine}.manylinux_2_17_${machine}")
  set(project "nvidia-cuda-${package}")
  if(package STREQUAL "nvvm")
    set(project nvidia-nvvm)
    if(machine STREQUAL "x86_64")
      set(platform manylinux2010_x86_64.manylinux_2_12_x86_64)
    endif()
  endif()
  string(REPLACE "-" "_" archive "${project}")
  string(APPEND archive "-${version}-py3-none-${platform}.whl")
  cudaq_pip_archive("${project}==${version}" --only-binary "${archive}" "${sha256}" reason)
  if(reason)
    file(REMOVE_RECURSE "${unpacked}")
    message(FATAL_ERROR "${reason}")
  endif()
  file(ARCHIVE_EXTRACT INPUT "${CUDAQ_DOWNLOAD_CACHE}/${archive}" DESTINATION "${unpacked}")
endforeach()
file(RENAME "${unpacked}" "${_cudaq_cuda_tree}" RESULT result)
if(result AND NOT EXISTS "${CUDAQ_CUDA_PACKAGES}") # another one may have been first
  message(FATAL_ERROR "${_cudaq_cuda_tree}: ${result}")
endif()
file(REMOVE_RECURSE "${unpacked}")
set(what "The headers of the CUDA toolkit, without nvcc,")
if(CUDAQ_FETCH_NVCC)
  set(what "The headers of the CUDA toolkit, and nvcc,")
endif()
message(STATUS "${what} are in ${CUDAQ_CUDA_PACKAGES}")
