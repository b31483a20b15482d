#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that was compiled with a foreign header, in which a name has other arguments, does not link; compiled with
# our headers it does. No library defines the name.
# Usage: withdrawn_names.sh <scratch directory> <C compiler> <include folder> <CUDA include folder> <name> <library>...
set -euo pipefail
scratch=$1 compiler=$2 include=$3 cuda=$4 name=$5
shift 5
rm -rf "$scratch"
mkdir -p "$scratch"

for library in "$@"; do
  case $library in
    *.a) defined=$(nm --defined-only "$library" 2>/dev/null) ;;
    *) defined=$(nm -D --defined-only "$library") ;;
  esac
  if grep -qwE "[TtWw] $name" <<<"$defined"; then
    echo "$library defines $name"
    exit 1
  fi
done
shared=()
for library in "$@"; do
  [[ $library == *.so* ]] && shared+=("$library" "-Wl,-rpath,$(dirname "$library")")
done

# The type does not matter: the linker sees only the name.
printf 'extern int %s(void *);\nint main(void) { return %s(0); }\n' "$name" "$name" >"$scratch/foreign.c"
"$compiler" -std=c11 -c "$scratch/foreign.c" -o "$scratch/foreign.o"
if "$compiler" "$scratch/foreign.o" "${shared[@]}" -o "$scratch/foreign" 2>"$scratch/foreign.log"; then
  echo "an object that was compiled with a foreign header of $name was linked"
  exit 1
fi
grep -m1 "undefined reference to .$name'" "$scratch/foreign.log"

for form in "" -DCUDAQ_REALTIME_UPSTREAM_INTERFACE; do
  {
    echo '#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"'
    echo "void (*pointer)(void) = (void (*)(void))$name;"
    echo "int main(void) { return pointer == 0; }"
  } >"$scratch/own.c"
  if [[ $name == cudaq_launch_unified_dispatch_device && -z $form ]]; then # it has one form only
    if "$compiler" -std=c11 "-I$include" "-isystem$cuda" -c "$scratch/own.c" -o "$scratch/own.o" 2>/dev/null; then
      echo "$name has no form in the specification, but a program that uses it compiles"
      exit 1
    fi
    continue
  fi
  "$compiler" -std=c11 -Wall -Werror $form "-I$include" "-isystem$cuda" -c "$scratch/own.c" \
    -o "$scratch/own.o"
  if [[ $name == cudaq_launch_unified_dispatch_device ]]; then # in the archive, which only nvcc can link
    nm -u "$scratch/own.o" | grep -w "${name}_upstream"
    nm --defined-only "${@: -1}" 2>/dev/null | grep -w "T ${name}_upstream"
    continue
  fi
  "$compiler" "$scratch/own.o" "${shared[@]}" -o "$scratch/own"
  "$scratch/own"
  nm -u "$scratch/own.o" | grep "${name}_$([ -z "$form" ] && echo spec || echo upstream)"
done
