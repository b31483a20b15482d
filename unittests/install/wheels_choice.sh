#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/wheels.sh chooses its Pythons as its head says: wheels_choice.sh SOURCE SCRATCH. Programs that answer as
# Pythons of several versions do stand for them: nothing is built.
set -euo pipefail
source=$1 scratch=$2
rm -rf "$scratch"
mkdir -p "$scratch"

pretend() { # name, what it prints about itself; nothing: it is none of those that fit
  printf '#!/bin/sh\ncat >/dev/null\n%s\n' "${2:+echo $2}" >"$scratch/$1"
  [[ $2 ]] || echo 'exit 1' >>"$scratch/$1"
  chmod +x "$scratch/$1"
}

expect() { # status, output, arguments...
  local status=0 output
  output=$("$source/scripts/wheels.sh" "${@:3}" 2>&1) || status=$?
  output=${output//$scratch\//}
  if [[ $status != "$1" || $output != "$2" ]]; then
    echo "wheels.sh ${*:3}: status $status, expected $1; it said:"
    echo "$output"
    exit 1
  fi
}

pretend old "" && pretend nine 3.9 && pretend eleven 3.11 && pretend again 3.11
pretend twelve 3.12 && pretend fourteen 3.14
list=(--folder "$scratch/out" --native --list)
expect 0 "Python 3.9, nine: builds a wheel
Python 3.11, eleven: builds a wheel
Python 3.12, twelve: builds a wheel
Python 3.14, fourteen: tries the wheel of 3.12" "${list[@]}" \
  "$scratch"/{old,fourteen,eleven,again,twelve,nine}
expect 0 "Python 3.14, fourteen: builds a wheel" "${list[@]}" "$scratch/fourteen"
expect 2 "wheels.sh: no CPython from 3.9 on with its headers and venv: old" "${list[@]}" "$scratch/old"
expect 2 "wheels.sh: unknown option --all: --folder DIR, --native, --roots, --list" --all
mkdir "$scratch/few"
for tool in bash dirname nproc; do
  ln -s "$(command -v "$tool")" "$scratch/few/"
done
PATH=$scratch/few expect 2 "wheels.sh: --roots needs apt-get" --roots
# With the cross compiler each is also made for Arm, where nothing but --roots can try it.
if [[ $(uname -m) == x86_64 ]]; then
  pretend aarch64-linux-gnu-g++ none
  PATH=$scratch:$PATH expect 0 "Python 3.11, eleven: builds a wheel
Python 3.12, twelve: builds a wheel
Python 3.14, fourteen: tries the wheel of 3.12
Python 3.11, eleven: builds a wheel for aarch64
Python 3.12, twelve: builds a wheel for aarch64" --list "$scratch"/{eleven,twelve,fourteen}
fi
echo "each Python is used once; the oldest from 3.12 on builds for the later ones"
