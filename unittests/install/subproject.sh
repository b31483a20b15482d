#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The sources as a part of another project, and builds without parts. Host code without CUDA, unless stated, since it
# compiles quickly. Usage: subproject.sh <way> <source root> <scratch directory>
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
way=$1 source=$2 scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch"
parent() { # more options
  cmake -S "$here/subproject" -B "$scratch/build" -G Ninja "-DHOW=$way" "-DCUDAQ_SOURCE=$source" \
    -DCMAKE_BUILD_TYPE=Debug -DCUDAQ_REALTIME_ENABLE_CUDA=OFF "$@"
}

case $way in
  FetchContent) # is built, run and installed: the install tree has the parent's program only
    parent -DCUDAQ_REALTIME_BUILD_QEC=OFF
    cmake --build "$scratch/build" -j 2
    "$scratch/build/consumer"
    cmake --install "$scratch/build" --prefix "$scratch/prefix" >/dev/null
    [ "$(cd "$scratch/prefix" && find . -type f)" = ./bin/consumer ]
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
