#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each library exports only symbols of this project: own_symbols.sh NM LIBRARY...
# A symbol of the C++ runtime or of another library in it would be bound across: a program with a runtime of its own
# (a toolset that links it statically) would use the library's half of it.
set -euo pipefail
nm=$1
shift
status=0
for library in "$@"; do
  foreign=$("$nm" -D --defined-only -C "$library" | cut -d' ' -f2- |
    grep -vE '^[A-Za-z] ((typeinfo( name)?|vtable|VTT) for )?(cudaq(::|_)|CUDAQ_)' || true)
  if [ -n "$foreign" ]; then
    printf '%s exports what is not of this project:\n%s\n' "$library" "$foreign"
    status=1
  fi
done
echo "$# libraries"
exit "$status"
