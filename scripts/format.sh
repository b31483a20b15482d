#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats the code by .clang-format: scripts/format.sh [file...] (without a file: all code)
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v clang-format >/dev/null || ! clang-format --version | grep 'version 14\.' >/dev/null; then
  echo "scripts/format.sh: clang-format 14 is needed (Debian 12: clang-format); other versions format differently" >&2
  exit 1
fi
if [ $# -eq 0 ]; then
  mapfile -t files < <(find include lib kernels tools benchmarks contrib python unittests docs \
    -name '*.h' -o -name '*.cuh' -o -name '*.c' -o -name '*.cpp' -o -name '*.cu' | sort)
  set -- "${files[@]}"
fi
clang-format -i "$@"
