#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The configuration refuses C++ libraries that have a C++ runtime of their own each, and says what to do. The rest is
# built with such a runtime. Usage: static_runtime.sh <cmake> <source directory> <scratch directory>
set -euo pipefail
cmake=$1 source=$2 scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch/part"
# What decides, alone: the rest of a configuration takes its time.
printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(part CXX)' \
  "include($source/cmake/CudaqCxxRuntime.cmake)" >"$scratch/part/CMakeLists.txt"

configures() { # folder, options
  "$cmake" -S "$1" -B "$scratch/build" --fresh "${@:2}" >"$scratch/log" 2>&1
}

if configures "$source" -DCMAKE_SHARED_LINKER_FLAGS=-static-libstdc++ -DCUDAQ_REALTIME_BUILD_TESTS=OFF; then
  echo "libraries with a runtime of their own each were not refused" && exit 1
fi
tr -s ' \n' ' ' <"$scratch/log" | grep "link it shared, without -static-libstdc++. Or configure with" >/dev/null ||
  { cat "$scratch/log" && echo "the refusal does not say what to do" && exit 1; }
if [ -e "$scratch/build/build.ninja" ] || [ -e "$scratch/build/Makefile" ]; then
  echo "it went on" && exit 1
fi

static=-DCMAKE_CXX_FLAGS=-static-libstdc++
if configures "$scratch/part" $static -DCUDAQ_REALTIME_BUILD_QEC=ON; then
  echo "a static runtime by the flags of the compiler was not refused" && exit 1
fi
if configures "$scratch/part" -DCMAKE_EXE_LINKER_FLAGS=-static-libstdc++ -DCUDAQ_REALTIME_BUILD_QEC=ON; then
  echo "programs with a runtime of their own were not refused" && exit 1
fi
configures "$scratch/part" $static -DCUDAQ_REALTIME_BUILD_QEC=OFF ||
  { cat "$scratch/log" && echo "the C interface was refused" && exit 1; }
configures "$scratch/part" -DCUDAQ_REALTIME_BUILD_QEC=ON ||
  { cat "$scratch/log" && echo "a shared runtime was refused" && exit 1; }
configures "$scratch/part" $static -DCUDAQ_REALTIME_BUILD_QEC=ON -DCUDAQ_ALLOW_STATIC_CXX_RUNTIME=ON ||
  { cat "$scratch/log" && echo "it was refused although it is allowed" && exit 1; }
