#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the declarations of all C functions, and the ABI of libcudaq-realtime of the release build, as the baselines
# of the ABI tests: scripts/update-abi.sh [--changed]
# Without --changed it accepts only new functions. With --changed it records any change. Use that for a new field at the
# end of a struct with struct_size, and for names that were never released. All other changes need a new soname.
set -euo pipefail
cd "$(dirname "$0")/.."
baseline=unittests/abi/libcudaq-realtime.abi
library=build/release/lib/libcudaq-realtime.so

python3 unittests/abi/prototypes.py . --record "$@" ||
  { echo "Programs of the old header may break. If you accept that: scripts/update-abi.sh --changed" >&2 && exit 1; }
cmake --preset release --log-level=WARNING >/dev/null
build() {
  cmake --build build/release --target cudaq-realtime -j "${CUDAQ_JOBS:-$(nproc)}" -- --quiet
}

build
# abidw sorts by the folders in the debug information. What ccache has from another clone names that one's folder.
if [ "$(readelf --debug-dump=info "$library" | sed -n 's|.*DW_AT_comp_dir.*: ||p' | sort -u | wc -l)" != 1 ]; then
  ninja -C build/release -t clean cudaq-realtime >/dev/null
  CCACHE_RECACHE=1 build
fi
if [ -e "$baseline" ]; then
  report=$(abidiff --suppressions unittests/abi/not_abi.ini "$baseline" "$library" || true)
  echo "$report"
  # One summary line for functions, one for variables, one for symbols without debug information.
  breaks=$(grep summary <<<"$report" | grep -vE ' 0 Removed, (0 Changed|[0-9]+ Added)' || true)
  if [ "${1:-}" != --changed ] && [ -n "$breaks" ]; then
    echo "Programs linked with the old library may break. If you accept that: scripts/update-abi.sh --changed" >&2
    exit 1
  fi
fi
# The baseline must not depend on this machine: no paths, no source locations, no line numbers.
abidw --suppressions unittests/abi/not_abi.ini --exported-interfaces-only \
  --no-corpus-path --no-comp-dir-path --no-show-locs --type-id-style hash --out-file "$baseline" "$library"
sed -i -E "s|path='(\.\./)*($PWD/)?|path='|" "$baseline"
echo "written: $baseline"
