#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the libFuzzer programs of a folder, and prints a table:
#   run_long.sh FOLDER SECONDS JOBS [OUT] [TARGETS]
#
#   FOLDER   the programs <name>_fuzz, with corpus/<name> and <name>.dict (unittests/fuzz/build.sh makes it)
#   SECONDS  for each target
#   JOBS     processes for each target; they share what they find
#   OUT      new folder for what is found (FOLDER/found)
#   TARGETS  targets that run at the same time (1)
#
# Two core-hours for each target on 16 cores: run_long.sh FOLDER 450 16
# OUT/<name>/corpus: inputs that add coverage to those of FOLDER. OUT/<name>/crash-*, timeout-*, oom-*: inputs that
# break a property or end the program, hang (10 s), or need too much memory. Exit status: 0 no such input; 1 there is
# one; 2 wrong usage.
set -euo pipefail
if [ $# -lt 3 ] || [ $# -gt 5 ]; then
  sed -n '3,15s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
folder=$(cd "$1" && pwd) seconds=$2 jobs=$3 out=${4:-$1/found} at_once=${5:-1}
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
export UBSAN_OPTIONS=print_stacktrace=1

# One target, in a process of its own. The last step is its line of the table.
one() {
  local name=$1 here=$out/$1 dictionary=() job failed=0
  mkdir -p "$here/work" "$here/corpus" "$here/logs"
  cp "$folder/corpus/$name"/* "$here/work/"
  local given
  given=$(find "$here/work" -type f | wc -l)
  [ ! -f "$folder/$name.dict" ] || dictionary=("-dict=$folder/$name.dict")
  TIMEFORMAT='%U %S'
  for job in $(seq "$jobs"); do
    { time "$folder/${name}_fuzz" "$here/work" "${dictionary[@]}" -max_total_time="$seconds" -timeout=10 \
      -rss_limit_mb=2048 -reload=1 -print_final_stats=1 -artifact_prefix="$here/" >"$here/logs/$job" 2>&1; } \
      2>"$here/logs/$job.time" &
  done
  wait
  for job in $(seq "$jobs"); do
    grep -q '^stat::number_of_executed_units' "$here/logs/$job" || failed=1
  done
  # The merge keeps what adds coverage to the inputs that are there already.
  cp "$folder/corpus/$name"/* "$here/corpus/"
  "$folder/${name}_fuzz" -merge=1 "$here/corpus" "$here/work" >"$here/logs/merge" 2>&1 || failed=1
  find "$here/corpus" -name '*.input' -delete
  local executions coverage spent new crashes
  executions=$(cat "$here"/logs/[0-9]* | sed -n 's/^stat::number_of_executed_units: *//p' |
    awk '{n += $1} END {print n + 0}')
  coverage=$(cat "$here"/logs/* | sed -n 's/^#.*DONE *cov: \([0-9]*\).*/\1/p' | sort -n | tail -1)
  spent=$(cat "$here"/logs/*.time | awk '{n += $1 + $2} END {printf "%d", n}')
  new=$(($(find "$here/work" -type f | wc -l) - given))
  crashes=$(find "$here" -maxdepth 1 -type f -regex '.*/\(crash\|timeout\|oom\|leak\)-.*' | wc -l)
  [ "$failed" = 0 ] || [ "$crashes" != 0 ] || crashes='?' # it ended without an input: see the logs
  printf '%-16s %12s %9s %11s %10s %8s\n' "$name" "$executions" "${coverage:-?}" "$spent" "$new" "$crashes" \
    >"$here/line"
  if [ "$crashes" != 0 ]; then
    grep -h -A12 -E '^(==|does not hold|SUMMARY)' "$here"/logs/* | head -60 >"$here/reason" || true
  fi
}

names=()
for program in "$folder"/*_fuzz; do
  name=${program##*/}
  names+=("${name%_fuzz}")
done
running=0
for name in "${names[@]}"; do
  one "$name" &
  running=$((running + 1))
  if [ "$running" -ge "$at_once" ]; then
    wait -n
    running=$((running - 1))
  fi
done
wait

printf '%-16s %12s %9s %11s %10s %8s\n' target executions coverage core-seconds 'new inputs' crashes
status=0
for name in "${names[@]}"; do
  cat "$out/$name/line"
  if [ "$(awk '{print $NF}' "$out/$name/line")" != 0 ]; then
    status=1
  fi
done
for name in "${names[@]}"; do
  if [ -s "$out/$name/reason" ]; then
    printf '\n%s\n' "$name"
    cat "$out/$name/reason"
    for input in "$out/$name"/*-*; do
      printf '%s:\n' "$input"
      head -c 600 "$input" | base64
    done
  fi
done
exit $status
