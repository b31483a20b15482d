#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# benchmarks/release_report.py, in seconds: tables, pictures, reasons of what is missing. The models of its streams are
# taken by a stream decoder. release_report_test.sh SOURCE BUILD
set -euo pipefail
script=$1/benchmarks/release_report.py bench=$2/benchmarks/cudaq-realtime-bench
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

has() {
  if ! grep -E "$1" "$folder/release.md" >/dev/null; then
    echo "the report has no line '$1':"
    cat "$folder/release.md" "$folder"/*.log
    exit 1
  fi
}

# A build without a parser of YAML, or without PyMatching, has no server for it.
printf 'decoders: [{id: 0, type: pymatching, dem_file: "%s"}]\n' "$1/tools/data/surface_z_d3_p0.003.dem" \
  >"$folder/decoder.yaml"
if ! "$2/tools/cudaq-realtime" serve --check "$folder/decoder.yaml" >/dev/null 2>&1; then
  echo "SKIPPED: this build has no server with PyMatching"
  exit 77
fi

status=0
python3 "$script" "$2" "$folder" --budget 8 --slack 200 --rate 200 --part distributions || status=$?
[ $status -le 1 ] || { echo "exit status $status"; exit 1; }
has '^\| processor \| .+, [0-9]+ cores'
has '^\| shm \| off \| 0\.2 k/s \| [0-9]+ \| [0-9]+ \| [0-9]+ \| [0-9.]+ [mu]s \|'
has '^\| udp \| off \|'
has '^!\[Latency percentiles: shots-shm\]\(shots-shm\.svg\)$'
has '^BUILD/tools/cudaq-realtime emulate --transport shm '
grep -q '^<svg xmlns="http://www.w3.org/2000/svg" .*</svg>$' <(tr -d '\n' <"$folder/shots-shm.svg"; echo)

for model in $(python3 "$1/benchmarks/stream/loop_models.py" "$folder"); do
  "$bench" stream --dem "$model" --decoder pymatching --rounds 300 --cycle-us 0 --json "$folder/tail.json" >/dev/null
  grep -q '"broken": *0' "$folder/tail.json"
done

# A build folder without programs.
mkdir -p "$folder/empty/lib" "$folder/empty/kernels"
status=0
python3 "$script" "$folder/empty" "$folder" --budget 10 --part soak 2>/dev/null || status=$?
[ $status -eq 1 ] || { echo "exit status $status without programs"; exit 1; }
has '^- .*No such file or directory'

status=0
python3 "$script" "$2" "$folder" --part no-such-part 2>/dev/null || status=$?
[ $status -eq 2 ] || { echo "exit status $status for a part that does not exist"; exit 1; }
