#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy on lib and tools, or on the named files: scripts/tidy.sh [file...]. It takes minutes, and is not part
# of the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-tidy >/dev/null || { echo "scripts/tidy.sh: clang-tidy is not installed" >&2; exit 1; }
cmake --preset release --log-level=WARNING >/dev/null # compile_commands.json
if [ $# -eq 0 ]; then
  mapfile -t files < <(find lib tools -name '*.cpp' | sort)
  set -- "${files[@]}"
fi
printf '%s\0' "$@" | xargs -0 -n 1 -P "${CUDAQ_JOBS:-$(nproc)}" clang-tidy --quiet -p build/release
