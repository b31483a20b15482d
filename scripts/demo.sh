#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the program and runs its main job on recorded shots of the d=13 surface code: scripts/demo.sh [option...]
# Options go to `cudaq-realtime demo` (--help lists them). Installs what is missing; a second run starts at once.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/bootstrap.sh demo
options=()
if [ ! -e /usr/src/googletest/googletest/src/gtest-all.cc ]; then
  options=(-DCUDAQ_REALTIME_BUILD_TESTS=OFF) # the test framework is not needed here; scripts/test.sh switches them on again
fi
cmake --preset release --log-level=WARNING "${options[@]}" >/dev/null
cmake --build build/release -j "${CUDAQ_JOBS:-$(nproc)}" --target tools/cudaq-realtime -- --quiet
exec build/release/tools/cudaq-realtime demo "$@"
