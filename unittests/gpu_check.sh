#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs everything that needs a GPU, on a machine that needs only a build folder. It builds nothing, and does not need
# ctest. It prints a table at the end.
#
#   gpu_check.sh BUILD [--parts PART,...] [--budget SECONDS] [-j N] [--filter REGEX] [--share K/N] [--device D]
#     [--logs DIR]
#
#   BUILD      the build folder; programs are BUILD/unittests/gpu/*/*_test, BUILD/benchmarks/cudaq-realtime-bench, and
#              the examples for a GPU, which BUILD/docs/examples/gpu_examples lists
#   --parts    of tests, requests, sanitizers, bench, curves, soak, in this order (default: tests,sanitizers,bench)
#              tests: all tests, and the examples (status 0: passed; 77, no GPU was found: failed); requests: those
#              of the kernels again, on rings with requests in device memory (shared rings refuse them); sanitizers:
#              some small tests under compute-sanitizer; bench: every case of the benchmarks, quickly; curves: how
#              cost grows; soak: the load tests with CUDAQ_SOAK_MESSAGES messages each (10^6)
#   --budget   time for all parts; a test that does not fit is listed as not run (default: 720)
#   -j         number of GPU tests at a time, except tests that must run alone (default: 2; kernels that wait for
#              requests share a GPU by time slices, so more tests at a time end later)
#   --filter   only tests whose name (program:Suite.Test) matches this extended regular expression
#   --share    only every N-th test, from the K-th: for machines with several GPUs, each with its share
#   --device   the CUDA device that the tests use (default: 0)
#   --logs     empty or new folder for the outputs (default: a folder under TMPDIR)
#
# Every test is a separate process with its own time limit. A missing GPU and a fault of a sanitizer are failures. Exit
# status: 0 everything was run and nothing failed, 1 something failed, 2 something was not run.
set -euo pipefail

# Small tests, one for each kind of kernel: a sanitizer makes a kernel tens of times slower.
sanitized=(
  'kernel_test:Kinds/FifoOrder.FindsRequestsAfterEmptySlots/Fifo32'
  'kernel_test:Kinds/KernelErrors.AnswersLengthsBeyondTheSlot/Fifo32'
  'kernel_test:Kinds/KernelErrors.AnswersResultsBeyondTheSlot/Any4x64'
  'kernel_test:Kinds/KernelErrors.MixesErrorsAndGoodRequests/Unified'
  'kernel_test:Flavours/KernelRoundTrip.KeepsItsPromisesToHandlers/Fifo128_Mapped'
  'kernel_test:Flavours/KernelRoundTrip.HandlersMaySynchroniseTheirThreads/Cooperative1x128_Mapped'
  'kernel_test:Flavours/KernelRoundTrip.HandlersMaySynchroniseTheirThreads/Cooperative4x64_Mapped'
  'kernel_test:Flavours/KernelRoundTrip.PassesOnTheHandlersStatus/Any4x64_Device'
  'kernel_test:Flavours/KernelHostile.GetsNothingPastTheChecksAndGoodRequestsAreServedAfterIt/Regular'
  'kernel_test:Flavours/KernelHostile.GetsNothingPastTheChecksAndGoodRequestsAreServedAfterIt/CooperativeGrid'
)
tools=(memcheck racecheck initcheck)
# The tests whose length CUDAQ_SOAK_MESSAGES sets.
soaked=' ([^ ]*/)?(DeviceGraphLatency|HostGraphs|KernelLoad|KernelSharedRing|SideBySide)\.|DeviceRxMemory\.Soak'
soaked+='|GraphsAndDeviceCalls'

# The tests that the part `requests` repeats.
on_other_rings='/(kernel|device_graph)_test '

usage() {
  sed -n '3,22s/^# \{0,1\}//p' "$0" >&2
  exit 64
}

now() { date +%s; }
left() { echo $((CUDAQ_CHECK_END - $(now))); }
# Prints one value of the file PROGRAM.gputest: property PROGRAM NAME DEFAULT
property() {
  local value=
  if [ -f "$1.gputest" ]; then value=$(sed -n "s/^$2=//p" "$1.gputest"); fi
  echo "${value:-$3}"
}

# Prints the place and the text of the first failed check of a log.
first_failure() {
  sed -n '/: Failure$/{s|.*/||;s|: Failure$||;N;s|\n| |;N;s|\n *| |p;q}' "$1" | cut -c1-200
}

# Runs one test: gpu_check.sh --one RESULT_FILE LOG PROGRAM TEST [COMMAND...].
# Writes "passed|failed|skipped|notrun NAME TEXT" to RESULT_FILE.
run_one() {
  local result=$1 log=$2 program=$3 test=$4 name limit status=0 text verdict
  shift 4
  name="$(basename "$program"):$test"
  limit=$(($(property "$program" timeout 60) * ${CUDAQ_CHECK_PATIENCE:-1}))
  if [ $# -gt 0 ]; then limit=$((2 * limit)); fi
  if [ "$(left)" -lt "$limit" ]; then limit=$(left); fi
  if [ "$limit" -lt 5 ]; then
    echo "notrun $name no time left" >"$result"
    return
  fi
  CUDAQ_REQUIRE_GPU=${CUDAQ_REQUIRE_GPU:-1} timeout -k 2 "$((limit - 2))" "$@" "$program" --gtest_filter="$test" \
    --gtest_color=no </dev/null >"$log" 2>&1 || status=$?
  if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
    verdict=failed text="did not end within $((limit - 2)) s"
  elif [ "$status" -ne 0 ]; then
    verdict=failed text="exit status $status: $(first_failure "$log")"
  elif grep -q '^\[  SKIPPED \]' "$log"; then
    verdict=skipped text=$(grep -m1 -A1 'Skipped' "$log" | tail -n 1 || true)
  elif ! grep -q '^\[  PASSED  \] 1 test' "$log"; then
    verdict=failed text="the program does not have this test"
  else
    verdict=passed text=
  fi
  echo "$verdict $name $text" >"$result"
}

# Runs one example: gpu_check.sh --example RESULT_FILE LOG PROGRAM. Writes the same as run_one. An example that is
# skipped has found no GPU, which is a failure here.
run_example() {
  local result=$1 log=$2 program=$3 limit=60 status=0 text verdict
  local name=${program##*/}
  if [ "$(left)" -lt "$limit" ]; then limit=$(left); fi
  if [ "$limit" -lt 5 ]; then
    echo "notrun $name no time left" >"$result"
    return
  fi
  CUDAQ_REQUIRE_GPU=${CUDAQ_REQUIRE_GPU:-1} timeout -k 2 "$((limit - 2))" "$program" </dev/null >"$log" 2>&1 ||
    status=$?
  text="exit status $status: $(tail -n 1 "$log" | cut -c1-200)"
  case $status in
  0) verdict=passed text= ;;
  124 | 137) verdict=failed text="did not end within $((limit - 2)) s" ;;
  77) if [ "${CUDAQ_REQUIRE_GPU:-1}" = 0 ]; then verdict=skipped; else verdict=failed; fi ;;
  *) verdict=failed ;;
  esac
  echo "$verdict $name $text" >"$result"
}

case ${1:-} in
--one) shift; run_one "$@"; exit 0 ;;
--example) shift; run_example "$@"; exit 0 ;;
esac

build='' parts=tests,sanitizers,bench budget=720 jobs=2 filter=. share=1/1 logs=
while [ $# -gt 0 ]; do
  case $1 in
  --parts) parts=${2:?} && shift 2 ;;
  --budget) budget=${2:?} && shift 2 ;;
  -j) jobs=${2:?} && shift 2 ;;
  --filter) filter=${2:?} && shift 2 ;;
  --share) share=${2:?} && shift 2 ;;
  --device) export CUDAQ_TEST_DEVICE=${2:?} && shift 2 ;;
  --logs) logs=${2:?} && shift 2 ;;
  -*) usage ;;
  *) build=$1 && shift ;;
  esac
done
if [ ! -d "$build" ]; then usage; fi
case $budget in '' | *[!0-9]*) usage ;; esac
if ! [[ $share =~ ^[1-9][0-9]*/[1-9][0-9]*$ ]] || [ "${share%/*}" -gt "${share#*/}" ]; then usage; fi
for part in ${parts//,/ }; do
  case $part in tests | requests | sanitizers | bench | curves | soak) ;; *) usage ;; esac
done
build=$(cd "$build" && pwd)
self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
# Five seconds are left for the table and for processes that must be killed.
export CUDAQ_CHECK_END=$(($(now) + budget - 5))
# The build folder may have been moved.
folders=$(find "$build/lib" "$build/kernels" -type d ! -path '*/CMakeFiles*' -printf '%p:')
export LD_LIBRARY_PATH="$folders${LD_LIBRARY_PATH:-}"
logs=${logs:-$(mktemp -d "${TMPDIR:-/tmp}/gpu_check.XXXXXX")}
mkdir -p "$logs"
if [ -n "$(ls -A "$logs")" ]; then # results of an earlier run would be counted
  echo "--logs $logs: the folder is not empty" >&2
  exit 64
fi
logs=$(cd "$logs" && pwd)
begin=$(now)

wants() { case ",$parts," in *",$1,"*) return 0 ;; *) return 1 ;; esac }

# Prints "PROGRAM TEST" for every test of a program.
list_tests() {
  "$1" --gtest_list_tests | sed 's/ *#.*//' | while IFS= read -r line; do
    case $line in
    '  '*) echo "$1 $suite${line#  }" ;;
    *.) suite=$line ;;
    esac
  done
}

# Reads "PROGRAM TEST" lines and runs them, $2 at a time, with results in the folder $1. Further arguments are a command
# that runs the program.
run_all() {
  local folder=$1 at_once=$2 n=0
  shift 2
  mkdir -p "$folder"
  while read -r program test; do
    n=$((n + 1))
    printf '%s\0' "$(printf '%s/%04d.result' "$folder" $n)" "$(printf '%s/%04d.log' "$folder" $n)" \
      "$program" "$test" "$@"
  done | xargs -0 -r -n "$((4 + $#))" -P "$at_once" "$self" --one
}

# Prints the lines of this share.
of_share() { awk -v k="${share%/*}" -v n="${share#*/}" 'NR % n == k % n'; }

# Writes the tests of all programs to the files "parallel" and "serial".
list_all() {
  local program
  : >"$logs/parallel"
  : >"$logs/serial"
  for program in "$build"/unittests/gpu/*/*_test; do
    if [ ! -x "$program" ]; then continue; fi
    if [ "$(property "$program" serial FALSE)" = TRUE ]; then
      list_tests "$program" >>"$logs/serial"
    else
      list_tests "$program" >>"$logs/parallel"
    fi
  done
}

run_tests() {
  for list in parallel serial; do
    { awk '{ n = split($1, part, "/"); print part[n] ":" $2, $1, $2 }' "$logs/$list" |
      grep -E "^[^ ]*($filter)" || true; } |
      cut -d' ' -f2- | of_share >"$logs/$list.chosen"
  done
  run_all "$logs/tests.parallel" "$jobs" <"$logs/parallel.chosen"
  run_all "$logs/tests.serial" 1 <"$logs/serial.chosen"
}

# Runs the examples, one at a time: some of them use the whole GPU.
run_examples() {
  local list="$build/docs/examples/gpu_examples" folder="$logs/examples" name n=0
  mkdir -p "$folder"
  if [ ! -f "$list" ]; then
    echo "notrun examples $list does not exist" >"$folder/0000.result"
    return
  fi
  { grep -E "$filter" "$list" || true; } | of_share >"$folder/chosen"
  while read -r name; do
    n=$((n + 1))
    "$self" --example "$(printf '%s/%04d.result' "$folder" $n)" "$(printf '%s/%04d.log' "$folder" $n)" \
      "$build/docs/examples/$name"
  done <"$folder/chosen"
}

run_sanitizers() {
  local checker tool
  checker=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
  for tool in "${tools[@]}"; do
    mkdir -p "$logs/sanitizer.$tool"
    if [ -z "$checker" ]; then
      echo "notrun $tool compute-sanitizer is not installed" >"$logs/sanitizer.$tool/0000.result"
      continue
    fi
    for test in "${sanitized[@]}"; do
      echo "$build/unittests/gpu/loop/${test%%:*} ${test#*:}"
    done | run_all "$logs/sanitizer.$tool" 1 "$checker" --tool "$tool" --error-exitcode 86 --print-limit 5
  done
}

# Runs the benchmarks with these options, with equal shares of the time that is left: run_bench FOLDER OPTIONS...
run_bench() {
  local folder=$1 status limit options name starts=yes
  shift
  mkdir -p "$folder"
  "$build/benchmarks/cudaq-realtime-bench" --version >"$folder/version.log" 2>&1 || starts=no
  limit=$(($(left) / $#))
  for options in "$@"; do
    name=${options%% *} status=0
    if [ "$starts" = no ]; then
      echo "notrun bench.$name cannot start the program: $(head -n 1 "$folder/version.log")"
    elif [ "$limit" -lt 10 ]; then
      echo "notrun bench.$name no time left"
    else
      # shellcheck disable=SC2086  # the options are separate words
      timeout -k 2 "$limit" "$build/benchmarks/cudaq-realtime-bench" $options \
        >"$folder/$name.log" 2>&1 </dev/null || status=$?
      cat "$folder/$name.log" >&2
      if [ "$status" -eq 0 ]; then echo "passed bench.$name"; else echo "failed bench.$name exit status $status"; fi
    fi >"$folder/$name.result"
  done
}

# Prints one line of the table, and adds its results to the file "all": row TITLE FOLDER...
row() {
  local title=$1 word counts=
  shift
  { find "$@" -name '*.result' -exec cat {} + 2>/dev/null || true; } | sort -k1,2 >"$logs/row"
  for word in passed failed skipped notrun; do
    counts+=$(printf ' %8d' "$(grep -c "^$word " "$logs/row" || true)")
  done
  printf '%-22s%s\n' "$title" "$counts"
  cat "$logs/row" >>"$logs/all"
}

if wants tests || wants requests || wants soak; then list_all; fi
if wants tests; then
  run_tests
  run_examples
fi
if wants requests; then
  export CUDAQ_TEST_REQUESTS=device
  { grep --no-filename -E "$on_other_rings" "$logs/parallel" || true; } | of_share | run_all "$logs/requests" "$jobs"
  unset CUDAQ_TEST_REQUESTS
fi
if wants sanitizers; then run_sanitizers; fi
if wants bench; then run_bench "$logs/bench" 'device --quick' 'graph --quick' 'pipeline --quick'; fi
if wants curves; then
  run_bench "$logs/curves" 'device --curves --exchanges 20000 --repeats 5' \
    'graph --curves --exchanges 20000 --repeats 5'
fi
if wants soak; then
  export CUDAQ_SOAK_MESSAGES=${CUDAQ_SOAK_MESSAGES:-1000000} CUDAQ_CHECK_PATIENCE=10
  { grep --no-filename -E "$soaked" "$logs/parallel" "$logs/serial" || true; } | of_share | run_all "$logs/soak" 1
fi

: >"$logs/all"
table=$(
  printf '%-22s %8s %8s %8s %8s\n' '' passed failed skipped 'not run'
  if wants tests; then
    row tests "$logs/tests.parallel" "$logs/tests.serial"
    row examples "$logs/examples"
  fi
  if wants requests; then row requests "$logs/requests"; fi
  for tool in "${tools[@]}"; do
    if wants sanitizers; then row "$tool" "$logs/sanitizer.$tool"; fi
  done
  for part in bench curves soak; do
    if wants "$part"; then row "$part" "$logs/$part"; fi
  done
)
echo
grep '^failed ' "$logs/all" | head -n 40 || true
grep '^skipped ' "$logs/all" | sed 's/^\([^ ]*\) \([^ ]*\) /\1 \2: /' | head -n 20 || true
if [ "$(grep -c '^notrun ' "$logs/all")" -gt 0 ]; then grep '^notrun ' "$logs/all" | head -n 10; fi
printf '\n%s\n%s s, outputs in %s\n' "$table" "$(($(now) - begin))" "$logs"
if grep -q '^failed ' "$logs/all"; then exit 1; fi
if grep -q '^notrun ' "$logs/all" || [ ! -s "$logs/all" ]; then exit 2; fi
