#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The sources as a part of another project, and builds without parts. Host code without CUDA, unless stated, since it
# compiles quickly. Without CUDAQ_TEST_WHOLE=1, only what one program of the parent needs is built.
# Usage: subproject.sh <way> <source root> <scratch directory> [nvcc]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
way=$1 source=$2 scratch=$3 nvcc=${4:-}
rm -rf "$scratch"
mkdir -p "$scratch"
parent() { # more options
  cmake -S "$here/subproject" -B "$scratch/build" -G Ninja "-DHOW=$way" "-DCUDAQ_SOURCE=$source" \
    -DCMAKE_BUILD_TYPE=Debug -DCUDAQ_REALTIME_ENABLE_CUDA=OFF "$@"
}

case $way in
  FetchContent) # is built, run and installed: the install tree has the parent's program only
    parent -DCUDAQ_REALTIME_BUILD_QEC=OFF -DCMAKE_CXX_FLAGS_DEBUG= # without debug information it compiles in less time
    targets=(consumer)
    [ -z "${CUDAQ_TEST_WHOLE:-}" ] || targets=(all)
    cmake --build "$scratch/build" -j 2 --target "${targets[@]}"
    "$scratch/build/consumer"
    cmake --install "$scratch/build" --prefix "$scratch/prefix" >/dev/null
    [ "$(cd "$scratch/prefix" && find . -type f)" = ./bin/consumer ]
    ;;
  FetchContentWithKernels) # the archive and the graph scheduler are built, linked and run; without a GPU they say so
    [ -n "$nvcc" ] || { echo "skipped: nvcc was not found" && exit 77; }
    CUDACXX=$nvcc parent -DCUDAQ_REALTIME_BUILD_QEC=OFF -DCUDAQ_REALTIME_ENABLE_CUDA=ON -DCMAKE_CXX_FLAGS_DEBUG=
    targets=(graphs) # one kernel; the archive has all of them
    [ -z "${CUDAQ_TEST_WHOLE:-}" ] || targets+=(consumer)
    cmake --build "$scratch/build" -j 2 --target "${targets[@]}"
    for program in "${targets[@]}"; do
      "$scratch/build/$program"
    done
    ;;
  AddSubdirectory) # with the decoders, which need no download if their sources are not there
    parent -DCUDAQ_WITH_PYMATCHING=OFF
    ninja -C "$scratch/build" -t targets all | grep 'libcudaq-qec-realtime.so' >/dev/null
    ;;
  WithoutQec)
    cmake -S "$source" -B "$scratch/build" -G Ninja -DCUDAQ_REALTIME_BUILD_QEC=OFF -DCUDAQ_REALTIME_ENABLE_CUDA=OFF
    if ninja -C "$scratch/build" -t targets all | grep 'cudaq-qec'; then
      echo "a build without decoders has targets of the decoders"
      exit 1
    fi
    ;;
  *)
    echo "subproject.sh: unknown way $way"
    exit 2
    ;;
esac
