#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installed programs and shared libraries have no debug information, and the libraries still export their symbols.
# Usage: stripped.sh <installed prefix>
set -euo pipefail
count=0
while read -r file; do
  readelf -h "$file" >/dev/null 2>&1 || continue
  if readelf -SW "$file" | grep -E '\.debug_info|\.symtab' >/dev/null; then
    echo "$file has debug information or symbols"
    exit 1
  fi
  count=$((count + 1))
  du -h "$file"
done < <(find "$1/bin" "$1"/lib* -type f \( -name '*.so*' -o -path '*/bin/*' \))
[ "$count" -gt 0 ]
nm -D --defined-only "$(find "$1" -name libcudaq-realtime.so)" | grep cudaq_dispatcher_start >/dev/null
du -sh "$1"
