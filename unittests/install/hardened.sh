#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What readelf says of the hardening of each installed program and shared library. docs/security.md describes it.
# Usage: hardened.sh <installed prefix>
set -euo pipefail
count=0 checked=0 failed=0
missing() { # file, what it lacks
  echo "$1: no $2"
  failed=1
}
while read -r file; do
  readelf -h "$file" >/dev/null 2>&1 || continue
  count=$((count + 1))
  [[ $(readelf -hW "$file") == *"Type: "*DYN* ]] || missing "$file" "address that can be moved (PIE)"
  segments=$(readelf -lW "$file") dynamic=$(readelf -dW "$file")
  [[ $segments == *GNU_RELRO* && $dynamic == *BIND_NOW* ]] || missing "$file" "full RELRO (-z relro -z now)"
  grep 'GNU_STACK' <<<"$segments" | grep ' RW  ' >/dev/null || missing "$file" "stack without code"
  symbols=$(readelf --dyn-syms -W "$file")
  [[ $symbols == *__stack_chk_fail* ]] || missing "$file" "stack protector"
  [[ ! $symbols =~ __[a-z]+_chk@ ]] || checked=$((checked + 1))
done < <(find "$1/bin" "$1"/lib* -type f \( -name '*.so*' -o -path '*/bin/*' \))
echo "$count programs and libraries, of which $checked call checked functions of the C library"
# A file that calls no function with a buffer of known size has none.
[ "$checked" -ge $((count / 2)) ] || missing "$1" "FORTIFY_SOURCE"
[ "$count" -gt 0 ] && exit "$failed"
