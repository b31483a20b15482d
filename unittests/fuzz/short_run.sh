#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the libFuzzer programs with clang and runs each for 8 s: short_run.sh SOURCE BUILD
# Only in whole runs: it is the longest test, and the inputs that it has found are replayed by every variant.
# Without clang or its libFuzzer it is skipped.
set -euo pipefail
source=$1 build=$2 seconds=8
if [ -z "${CUDAQ_TEST_WHOLE:-}" ]; then
  echo "skipped: only whole runs (scripts/test.sh --all) build and run the fuzzers"
  exit 77
fi
if ! command -v clang++ >/dev/null; then
  echo "skipped: clang++ is not installed (Debian: clang)"
  exit 77
fi
if ! printf 'extern "C" int LLVMFuzzerTestOneInput(const char *, unsigned long) { return 0; }' |
  clang++ -fsanitize=fuzzer,address -x c++ - -o /dev/null 2>/dev/null; then
  echo "skipped: clang has no libFuzzer here (Debian: libclang-rt-dev)"
  exit 77
fi
"$source/unittests/fuzz/build.sh" "$source" "$build" "${CUDAQ_JOBS:-2}"
start=$SECONDS
"$build/unittests/fuzz/fuzzers/run_long.sh" "$build/unittests/fuzz/fuzzers" "$seconds" 1 "$build/found" 2
echo "ran for $((SECONDS - start)) s"
