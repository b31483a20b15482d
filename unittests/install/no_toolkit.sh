#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# As on a machine without a CUDA toolkit, in a mount namespace in which it is hidden: what the README's commands do
# there until they compile, a plain Release build of some files, and a C program with the installed library. With
# CUDAQ_TEST_WHOLE=1 the whole build instead, in each build type, both commands of the README, the second one for some
# rooms, and the Python package from its sources.
# Usage: no_toolkit.sh <source root> <installed prefix> <scratch directory>
set -euo pipefail
source=$1 prefix=$2 scratch=$3
if [ -z "${CUDAQ_TOOLKIT_HIDDEN:-}" ]; then
  skip() {
    echo "skipped: $1"
    exit 77
  }
  unshare --map-root-user --mount true 2>/dev/null || skip "unshare may not make a mount namespace here"
  cmake -P "$source/cmake/FetchCudaHeaders.cmake" 2>"$scratch.log" || skip "$(tr '\n' ' ' <"$scratch.log")"
  exec env -u CUDA_HOME -u CUDA_PATH -u CUDAToolkit_ROOT -u CUDACXX -u CPATH -u LIBRARY_PATH CUDAQ_TOOLKIT_HIDDEN=1 \
    unshare --map-root-user --mount "$0" "$@"
fi

for folder in /usr/local/cuda*; do
  [ ! -d "$folder" ] || mount -t tmpfs none "$folder"
done
compiles() { cc -x c -fsyntax-only - <<<"#include <cuda_runtime_api.h>" 2>/dev/null; }
if compiles; then
  mount -t tmpfs none /usr/local/include
fi
for nvcc in $(type -aP nvcc); do # a link or a script in another folder
  mount --bind /dev/null "$nvcc"
done
if compiles; then
  echo "skipped: the toolkit is not in /usr/local, and cannot be hidden"
  exit 77
fi
rm -rf "$scratch"
mkdir -p "$scratch"

"$source/scripts/bootstrap.sh" demo | tee "$scratch/bootstrap.log"
grep 'no CUDA toolkit here: its headers are fetched from PyPI, and GPU kernels are left out' "$scratch/bootstrap.log"

build() { # build type, more options
  cmake -S "$source" -B "$scratch/$1" -G Ninja "-DCMAKE_BUILD_TYPE=$1" -DCUDAQ_REALTIME_BUILD_TESTS=OFF "${@:2}"
}
if [ -z "${CUDAQ_TEST_WHOLE:-}" ]; then
  build Release -DCUDAQ_PRECOMPILED_HEADERS=OFF -DCUDAQ_WITH_PYMATCHING=OFF | tee "$scratch/configure.log"
  grep 'no device kernels in this build' "$scratch/configure.log"
  if grep -m1 -e '-Werror' "$scratch/Release/compile_commands.json"; then
    echo "a build that is not of our presets makes errors of warnings"
    exit 1
  fi
  cmake --build "$scratch/Release" --target lib/qec/CMakeFiles/cudaq-qec-server-core.dir/server/config_fields.cpp.o \
    lib/CMakeFiles/cudaq-realtime-objects.dir/gpu_memory/coherent_memory.cpp.o | tee "$scratch/build.log"
  if grep 'warning:' "$scratch/build.log"; then
    exit 1
  fi
else
  for type in Release MinSizeRel Debug; do
    build "$type" --log-level=WARNING
    cmake --build "$scratch/$type" -j 2
    "$scratch/$type/tools/cudaq-realtime" demo --config d3
  done
  # Both commands of the README, in a copy of the sources: they make build/ beside themselves.
  mkdir "$scratch/copy"
  tar -C "$source" --exclude=./build -c . | tar -C "$scratch/copy" -x
  "$scratch/copy/scripts/demo.sh" --shots 2000
  "$scratch/copy/scripts/test.sh" --quick base ring api
  "$scratch/Release/tools/cudaq-realtime" info | grep -A 2 'LACK device kernels *left out: no nvcc was found'
  python3 -m pip wheel --quiet --no-deps --wheel-dir "$scratch/dist" --config-settings "build-dir=$scratch/python" \
    "$source"
  ls "$scratch"/dist/cudaq_realtime-*.whl
fi

libdir=$(dirname "$(find "$prefix" -name libcudaq-realtime.so)")
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I "$prefix/include" "$source/unittests/install/consumer/consumer.c" \
  -o "$scratch/consumer" -L "$libdir" -lcudaq-realtime "-Wl,-rpath,$libdir"
"$scratch/consumer"
