#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the ABI of the release build as the baseline that the tests compare with: scripts/update-abi.sh [--changed]
# By itself it accepts new functions only. With --changed it records anything: meant for a field behind the last one of
# a struct with struct_size, and for what was never released. Whatever else changes needs a new soname.
set -euo pipefail
cd "$(dirname "$0")/.."
baseline=unittests/abi/libcudaq-realtime.abi
library=build/release/lib/libcudaq-realtime.so

cmake --preset release --log-level=WARNING >/dev/null
cmake --build build/release --target cudaq-realtime -j "${CUDAQ_JOBS:-$(nproc)}" -- --quiet
if [ -e "$baseline" ]; then
  report=$(abidiff --suppressions unittests/abi/not_abi.ini "$baseline" "$library" || true)
  echo "$report"
  # One summary line for functions, one for variables, one for symbols without debug information.
  if [ "${1:-}" != --changed ] && grep summary <<<"$report" | grep -qvE ' 0 Removed, (0 Changed|[0-9]+ Added)'; then
    echo "Programs that were linked before may break. If that is meant, run: scripts/update-abi.sh --changed" >&2
    exit 1
  fi
fi
# Nothing of this machine: no paths, no source locations, no line numbers.
abidw --suppressions unittests/abi/not_abi.ini --exported-interfaces-only \
  --no-corpus-path --no-comp-dir-path --no-show-locs --type-id-style hash --out-file "$baseline" "$library"
sed -i "s|path='$PWD/|path='|" "$baseline"
echo "written: $baseline"
