#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The code is formatted as .clang-format requires. Usage: format.sh <source root>. scripts/format.sh formats it.
set -euo pipefail
# The project uses version 14. Other versions format differently, so the check skips itself for them.
if ! command -v clang-format >/dev/null || ! clang-format --version | grep 'version 14\.' >/dev/null; then
  echo "skipped: clang-format 14 is not installed"
  exit 77
fi
cd "$1"
# What passed before with this .clang-format is not looked at again.
passed=${XDG_CACHE_HOME:-${HOME:-}/.cache}/cudaq-realtime/formatted-$(sha256sum .clang-format | cut -c 1-12)
{ mkdir -p "$(dirname "$passed")" && touch "$passed"; } 2>/dev/null || passed=$(mktemp) # no home that can be written
mapfile -t files < <(find include lib kernels tools benchmarks contrib python unittests docs \
  -name '*.h' -o -name '*.cuh' -o -name '*.c' -o -name '*.cpp' -o -name '*.cu' 2>/dev/null | sort)
sums=$(sha256sum "${files[@]}")
mapfile -t changed < <(grep -vxFf "$passed" <<<"$sums" | cut -c 67-)
if [ ${#changed[@]} -gt 0 ] && ! clang-format --dry-run --Werror "${changed[@]}"; then
  echo "run scripts/format.sh"
  exit 1
fi
echo "$sums" >"$passed.$$" && mv "$passed.$$" "$passed"
echo "${#files[@]} files: formatted, ${#changed[@]} of them looked at"
