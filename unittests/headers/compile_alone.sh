#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles each header in a separate file that includes only this header, twice. <include root> is the only include
# directory apart from the toolkit's.
# Usage: compile_alone.sh [--without FILE | --with FILE] <scratch directory> <compiler> <options> <include root>
#                         <header>...
# --without FILE: the compiler does not find FILE: the system folders that have it are not searched.
# --with FILE: each unit includes FILE too. One unit has it before the header, another one after it.
set -euo pipefail
hidden="" other=""
case $1 in
  --without) hidden=$2 && shift 2 ;;
  --with) other=$2 && shift 2 ;;
esac
scratch=$1 compiler=$2
read -ra options <<<"$3"
include=$4
shift 4
if ! command -v "$compiler" >/dev/null; then
  echo "skipped: $compiler is not installed"
  exit 77
fi
mkdir -p "$scratch"
if [ -n "$hidden" ]; then
  # shellcheck source=unittests/headers/hide_header.sh
  . "$(dirname "$0")/hide_header.sh"
  hide_header "$hidden" "$scratch" "$compiler" "${options[@]}"
  options+=("${hiding[@]}")
fi
failed=0
compile() { # the included files
  local unit
  unit=$scratch/$(basename -a "$@" | tr '.\n' '_.')unit
  # The declaration is needed for headers that contain only macros: C does not allow an empty unit.
  printf '#include "%s"\n' "$@" >"$unit"
  echo 'extern int cudaq_unit_is_not_empty;' >>"$unit"
  if ${CUDAQ_TEST_CCACHE:+"$CUDAQ_TEST_CCACHE"} "$compiler" "${options[@]}" -I "$include" "$unit" -o "$unit.out"; then
    echo "ok      $*"
  else
    echo "FAILED  $*: $compiler ${options[*]} -I $include $unit"
    failed=1
  fi
}
for header in "$@"; do
  if [ -n "$other" ]; then
    compile "$other" "$header"
    compile "$header" "$other"
  else
    compile "$header" "$header"
  fi
done
exit "$failed"
