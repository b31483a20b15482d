#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The library does not depend on a CUDA library. Usage: needed.sh <library> <expected soname>
set -euo pipefail
dynamic=$(LC_ALL=C readelf -d "$1")
grep -E 'NEEDED|SONAME' <<<"$dynamic"
if grep NEEDED <<<"$dynamic" | grep -iE 'cuda|nvidia|cudart'; then
  echo "the library would not load on a machine without the CUDA driver or runtime"
  exit 1
fi
if ! grep SONAME <<<"$dynamic" | grep -F "[$2]" >/dev/null; then
  echo "the soname is not $2"
  exit 1
fi
if grep -qE 'TEXTREL|EXECSTACK' <<<"$dynamic"; then
  echo "the library has text relocations or an executable stack"
  exit 1
fi
