#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The ABI of the library equals the committed one. Usage: compare.sh <source root> <library>
set -euo pipefail
if ! command -v abidiff >/dev/null; then
  echo "skipped: abidiff is not installed (Debian: abigail-tools)"
  exit 77
fi
baseline=$1/unittests/abi/libcudaq-realtime.abi
status=0
abidiff --suppressions "$1/unittests/abi/not_abi.ini" "$baseline" "$2" || status=$?
if [ "$status" != 0 ]; then
  echo "The ABI differs from $baseline (abidiff status $status; 4: changed, 8: incompatible)."
  echo "If the change is intended, record it: scripts/update-abi.sh (see docs/building.md)"
fi
exit "$status"
