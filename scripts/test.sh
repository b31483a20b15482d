#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds every variant and runs every test in one ctest run: scripts/test.sh [--variants "release tsan"] [ctest option...]
# Installs what is missing. A second run builds nothing that has not changed. CUDAQ_JOBS: parallel jobs (all cores).
set -euo pipefail
cd "$(dirname "$0")/.."

variants="release tsan asan aarch64"
if [ "${1:-}" = --variants ]; then
  variants=$2
  shift 2
fi
read -ra list <<<"$variants"
jobs=${CUDAQ_JOBS:-$(nproc)}

scripts/bootstrap.sh test "${list[@]}"
for variant in "${list[@]}"; do
  echo "== $variant"
  cmake --preset "$variant" --log-level=WARNING >/dev/null
  cmake --build "build/$variant" -j "$jobs" -- --quiet
  echo "   built after $SECONDS s"
done

# The variants become the folders of one test tree, whose tests differ by the prefix of the variant.
echo "subdirs(${list[*]})" >build/CTestTestfile.cmake
exec ctest --test-dir build --output-on-failure --no-label-summary --no-tests=error -j "$jobs" "$@"
