#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# benchmarks/all_figures.sh, quickly: the table, reasons of skips, wrong usage. all_figures_test.sh SOURCE BUILD
set -euo pipefail
script=$1/benchmarks/all_figures.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

has() {
  if ! grep -E "$1" "$folder/all_figures.md" >/dev/null; then
    echo "the table has no line '$1':"
    cat "$folder/all_figures.md"
    exit 1
  fi
}

"$script" "$2" "$folder" --quick latency
has '^\| P9 \| host_call_closed_32 over two_flags_32 \| [0-9.]+ [nu]s \| [0-9.]+ [nu]s \| [0-9.]+ \| 1.50 \| 1.15 \|$'
has '^\| P10 .* [0-9.]+ [kM]/s \| [0-9.]+ [kM]/s \| [0-9.]+ \| 0.50 \| 0.80 \|$'
has '^- latency: measured in [0-9]+ s: cudaq-realtime latency '

# A build folder without programs.
mkdir -p "$folder/empty/lib" "$folder/empty/kernels"
"$script" "$folder/empty" "$folder" device
has '^- device: skipped: this build has no benchmarks/cudaq-realtime-bench$'

# A program that fails is a failure.
mkdir -p "$folder/empty/tools"
printf '#!/bin/sh\necho broken\nexit 3\n' >"$folder/empty/tools/cudaq-realtime"
chmod +x "$folder/empty/tools/cudaq-realtime"
status=0
"$script" "$folder/empty" "$folder" latency || status=$?
[ $status -eq 1 ] || { echo "exit status $status for a program that fails"; exit 1; }
has '^- latency: FAILED: exit status 3: broken$'

status=0
"$script" "$2" "$folder" no-such-group 2>/dev/null || status=$?
[ $status -eq 64 ] || { echo "exit status $status for a group that does not exist"; exit 1; }
