#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the program and decodes recorded shots of the d=13 surface code with it: scripts/demo.sh [option...]
# The options are those of `cudaq-realtime demo` (--help lists them). Installs missing packages. A second run installs
# and builds nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/bootstrap.sh demo
options=()
if [ ! -e /usr/src/googletest/googletest/src/gtest-all.cc ]; then
  # The demo does not need the test framework. scripts/test.sh switches the tests on again.
  options=(-DCUDAQ_REALTIME_BUILD_TESTS=OFF)
fi
cmake --preset release --log-level=WARNING "${options[@]}" >/dev/null
targets=(tools/cudaq-realtime)
case " $* " in
  *" --device gpu "* | *" --device=gpu "*)
    # Minutes more. In a build without nvcc there is no such target, and the program says so.
    if ninja -C build/release -t query tools/cudaq-realtime-gpu >/dev/null 2>&1; then
      targets+=(tools/cudaq-realtime-gpu)
    fi
    ;;
esac
cmake --build build/release -j "${CUDAQ_JOBS:-$(nproc)}" --target "${targets[@]}" -- --quiet
exec build/release/tools/cudaq-realtime demo "$@"
