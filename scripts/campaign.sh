#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The long form of checks whose short form is in scripts/test.sh. It needs no GPU; for one see unittests/gpu_check.sh.
#   scripts/campaign.sh [--budget SECONDS] [STAGE...]     all stages, or these; SECONDS for each stage (600)
#
#   tests    all variants, all tests, whole sweeps: scripts/test.sh --all  short form: scripts/test.sh
#   models   protocol models of more slots, requests and workers           short form: Model.*
#   soak     the load tests with 10^5 messages for each kind of ring       short form: *Load*
#            shared memory between processes: 10^7 messages, 100 kills   short form: ShmTraffic.*, ShmCrash.*
#            100 kills of each party of udp and roce, and of nodes        short form: *Killed*, RouteOver.Nodes*
#   fuzz     each parser, guided by coverage (needs clang)                 short form: Fuzz.*
#   includes a build in which each source must include what it uses        short form: Headers.*, for the public ones
#   tidy     clang-tidy on lib and tools                                   no short form
#
# A stage that does not end within its budget is stopped and has failed. Two stages have other limits: fuzz gets the
# budget for each parser, one after another on all cores; tests ends with its last test. The outputs are in
# build/campaign. The last lines are a table. Exit status: 0 nothing failed, 1 something failed, 2 wrong usage.
set -euo pipefail
cd "$(dirname "$0")/.."
all=(tests models soak fuzz includes tidy)
jobs=${CUDAQ_JOBS:-$(nproc)}
budget=600 stages=()
while [ $# -gt 0 ]; do
  case $1 in
    --budget)
      budget=${2:-}
      shift $(($# > 1 ? 2 : 1))
      ;;
    -h | --help)
      sed -n '3,17s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *)
      if [[ " ${all[*]} " != *" $1 "* ]]; then
        echo "scripts/campaign.sh: there is no stage '$1'; the stages are: ${all[*]}" >&2
        exit 2
      fi
      stages+=("$1")
      shift
      ;;
  esac
done
[ ${#stages[@]} -gt 0 ] || stages=("${all[@]}")
case $budget in '' | 0* | *[!0-9]*)
  echo "scripts/campaign.sh: --budget: '$budget' is not a number of seconds" >&2
  exit 2
  ;;
esac

logs=$PWD/build/campaign
mkdir -p "$logs"

# The programs of a stage, before its time begins: build PRESET FOLDER TARGET OPTION...
build() {
  cmake --preset "$1" -B "$2" --log-level=WARNING "${@:4}" >/dev/null &&
    cmake --build "$2" -j "$jobs" --target "$3" -- --quiet
}

prepare() {
  case $1 in
    models) cmake --preset release -B "$logs/models" -DCUDAQ_TEST_ROOMS=model -DCUDAQ_TEST_CAMPAIGN=ON \
      --log-level=WARNING >/dev/null ;;
    soak)
      build release build/release unittests/host_dispatcher/all &&
        build release build/release unittests/shared_ring/all &&
        build release build/release unittests/transport/shm/all &&
        build release build/release unittests/transport/udp/all &&
        build release build/release unittests/transport/roce/all &&
        build release build/release unittests/tools/all
      ;;
    fuzz) unittests/fuzz/build.sh . "$logs/libfuzzer" "$jobs" ;;
    tests | includes | tidy) ;;
  esac
}

run() {
  local tests=build/release/unittests
  case $1 in
    tests) CUDAQ_JOBS=$jobs scripts/test.sh --all ;;
    models)
      CUDAQ_TEST_WHOLE=1 timeout "$budget" ctest --test-dir "$logs/models" -L campaign --no-tests=error \
        --output-on-failure -j "$jobs"
      ;;
    # The route test is built only where UCX is.
    soak) CUDAQ_SOAK_MESSAGES=100000 CUDAQ_TEST_SHM_MESSAGES=10000000 CUDAQ_TEST_SHM_KILLS=100 \
      CUDAQ_UDP_KILLS=100 CUDAQ_ROUTE_KILLS=100 timeout "$budget" bash -c \
      "$tests/loop/loop_test --gtest_filter='Host*/LoopLoad.*' &&
       $tests/transport/shm/shm_test --gtest_filter='ShmTraffic.*:ShmCrash.*' &&
       $tests/transport/provider/provider_processes_test --gtest_filter='*Killed*' &&
       { [ ! -x $tests/tools/tools_route_test ] && echo 'skipped: the nodes of route, without UCX' ||
         $tests/tools/tools_route_test --gtest_filter='*RouteOver.Nodes*'; }" ;;
    fuzz) unittests/fuzz/run_long.sh "$logs/libfuzzer/unittests/fuzz/fuzzers" "$budget" "$jobs" "$logs/found" ;;
    includes) timeout "$budget" bash -c "$(declare -f build); jobs=$jobs; build release '$logs/includes' all \
      -DCUDAQ_PRECOMPILED_HEADERS=OFF -DCUDAQ_REALTIME_ENABLE_CUDA=OFF" ;;
    tidy) timeout "$budget" scripts/tidy.sh ;;
  esac
}

table=()
failed=0
for stage in "${stages[@]}"; do
  echo "== $stage"
  start=$SECONDS
  if { prepare "$stage" && run "$stage"; } >"$logs/$stage.log" 2>&1; then
    result=passed
  else
    result=FAILED failed=1
    tail -n 30 "$logs/$stage.log"
  fi
  table+=("$(printf '%-8s %-7s %5d s   %s' "$stage" $result $((SECONDS - start)) "build/campaign/$stage.log")")
done
printf '\n'
printf '%s\n' "${table[@]}"
exit $failed
