#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles each header in a separate file that includes only this header, twice. <include root> is the only include
# directory apart from the toolkit's.
# Usage: compile_alone.sh <scratch directory> <compiler> <options> <include root> <header>...
set -euo pipefail
scratch=$1 compiler=$2
read -ra options <<<"$3"
include=$4
shift 4
if ! command -v "$compiler" >/dev/null; then
  echo "skipped: $compiler is not installed"
  exit 77
fi
mkdir -p "$scratch"
failed=0
for header in "$@"; do
  unit=$scratch/$(basename "$header" | tr . _).unit
  # The declaration is needed for headers that contain only macros: C does not allow an empty unit.
  printf '#include "%s"\n#include "%s"\nextern int cudaq_unit_is_not_empty;\n' "$header" "$header" >"$unit"
  if "$compiler" "${options[@]}" -I "$include" "$unit" -o "$unit.out"; then
    echo "ok      $header"
  else
    echo "FAILED  $header: $compiler ${options[*]} -I $include $unit"
    failed=1
  fi
done
exit "$failed"
