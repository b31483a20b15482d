#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the libFuzzer programs: build.sh SOURCE BUILD JOBS [OPTION OF NINJA...]. They are in
# BUILD/unittests/fuzz/fuzzers, with run_long.sh, corpora and dictionaries. The folder needs nothing else, and may be
# carried to a machine without clang.
set -euo pipefail
cmake -G Ninja -S "$1" -B "$2" -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
  -DCUDAQ_BUILD_FUZZER=ON -DCUDAQ_TEST_ROOMS=fuzz -DCUDAQ_REALTIME_BUILD_TOOLS=OFF -DCUDAQ_REALTIME_BUILD_QEC=OFF \
  -DCUDAQ_REALTIME_ENABLE_CUDA=OFF --log-level=WARNING >/dev/null
cmake --build "$2" -j "$3" --target fuzzers -- --quiet "${@:4}"
