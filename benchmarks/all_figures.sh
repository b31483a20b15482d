#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures all figures of the index of docs/performance.md that programs of a build folder measure, one group after
# another, and prints a table: floor, ours, ratio, targets.
#
#   benchmarks/all_figures.sh BUILD FOLDER [--quick] [--data SHOTS] [--models MODELS] [--limit SECONDS] [GROUP...]
#
#   BUILD     a build folder; it may have been moved
#   FOLDER    for the reports (GROUP.json), the outputs (GROUP.log) and the table (all_figures.md)
#   --quick   a few exchanges: shows that everything works, no measurement
#   --data    shots of the pipeline, made by tools/data/make_data.py --pipeline (default: tools/data: d7 and d13 only)
#   --models  bicycle_*.dem of docs/decoders/qldpc.md (default: tools/data/bp_osd: the 72 code only)
#   --limit   of each group (default: 300)
#   GROUP     latency shm udp route host-pipeline need no GPU; device graph pipeline buffers learned relay-bp shm-kernel
#             need one (default: all)
#
# A group whose program or GPU is missing is listed as skipped with the reason. Exit status: 0 nothing failed, 1
# something failed, 64 wrong usage.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
data=$root/tools/data models=$root/tools/data/bp_osd limit=300 quick=no groups=() folders=()
usage() {
  sed -n '3,20s/^# \{0,1\}//p' "$0" >&2
  exit 64
}
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=yes && shift ;;
    --data) data=$(cd "${2:?}" && pwd) && shift 2 ;;
    --models) models=$(cd "${2:?}" && pwd) && shift 2 ;;
    --limit) limit=${2:?} && shift 2 ;;
    -*) usage ;;
    *)
      if [ ${#folders[@]} -lt 2 ]; then folders+=("$1"); else groups+=("$1"); fi
      shift
      ;;
  esac
done
if [ ${#folders[@]} -lt 2 ] || [ ! -d "${folders[0]}" ]; then usage; fi
if [ ${#groups[@]} -eq 0 ]; then
  groups=(latency shm udp route host-pipeline device graph pipeline buffers learned relay-bp shm-kernel)
fi
build=$(cd "${folders[0]}" && pwd)
mkdir -p "${folders[1]}"
out=$(cd "${folders[1]}" && pwd)
libraries=$(find "$build/lib" "$build/kernels" -type d ! -path '*/CMakeFiles*' -printf '%p:')
export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:-}" CUDAQ_REALTIME_DATA=$root/tools/data

bench=$build/benchmarks/cudaq-realtime-bench
# Sets `command` and `gpu` (yes: it needs one) for a group. Exchanges are those of docs/performance.md, or fewer.
command_of() {
  local json=$out/$1.json
  gpu=no
  case $1 in
    latency) command=("$build/tools/cudaq-realtime" latency --exchanges 400000 --repeats 10) ;;
    shm) command=("$build/unittests/transport/shm/shm_latency" 20000 10) ;;
    udp) command=(env CUDAQ_UDP_EXCHANGES=20000 "CUDAQ_UDP_JSON=$json"
      "$build/unittests/transport/udp/udp_round_trip_test") ;;
    route) command=("$build/unittests/tools/route_figures" 1000 1 --json "$json") ;;
    host-pipeline) command=("$bench" pipeline --cases "decode-stage,host-predecoder" --data "$data") ;;
    device) gpu=yes command=("$bench" device --exchanges 50000 --repeats 5) ;;
    graph) gpu=yes command=("$bench" graph --exchanges 30000 --repeats 5) ;;
    pipeline) gpu=yes command=("$bench" pipeline --exchanges 30000 --data "$data" --cases
      "passthrough,kernel-70us,local,many-workers,staging,resident") ;;
    buffers) gpu=yes command=("$bench" pipeline --exchanges 24000 --data "$data" --cases
      "kernel-70us-buffers,staging-buffers,two-streams") ;;
    learned) gpu=yes command=("$bench" pipeline --exchanges 1000 --data "$root/tools/data" --cases
      "learned-shot,learned-pipeline") ;;
    relay-bp) gpu=yes command=("$bench" pipeline --cases relay-bp --exchanges 3000 --data "$models") ;;
    shm-kernel) gpu=yes command=("$build/unittests/gpu/transport/shm_kernel_latency" 20000 10) ;;
    *) usage ;;
  esac
  case $1 in
    latency | host-pipeline | device | graph | pipeline | buffers | learned | relay-bp)
      command+=(--json "$json")
      if [ $quick = yes ]; then command+=(--quick); fi
      ;;
    shm | shm-kernel) if [ $quick = yes ]; then command=("${command[0]}" 200 2); fi ;;
    udp) if [ $quick = yes ]; then command[1]=CUDAQ_UDP_EXCHANGES=300; fi ;;
    route) if [ $quick = yes ]; then command[1]=20; fi ;;
  esac
}

failed=0
for group in "${groups[@]}"; do command_of "$group"; done # wrong names, before anything runs
: >"$out/groups"
for group in "${groups[@]}"; do
  command_of "$group"
  program=${command[0]}
  if [ "$program" = env ]; then program=${command[3]}; fi
  rm -f "$out/$group.json"
  if [ ! -x "$program" ]; then
    echo "$group skipped: this build has no ${program#"$build"/}" >>"$out/groups"
  elif [ $gpu = yes ] && ! nvidia-smi -L >/dev/null 2>&1; then
    echo "$group skipped: no GPU: nvidia-smi finds none" >>"$out/groups"
  else
    status=0 begin=$SECONDS
    timeout -k 5 "$limit" "${command[@]}" >"$out/$group.log" 2>&1 </dev/null || status=$?
    if [ $status -eq 0 ]; then
      echo "$group measured in $((SECONDS - begin)) s: $(printf '%s ' "${command[@]##*/}")" >>"$out/groups"
    else
      echo "$group FAILED: exit status $status: $(tail -n 1 "$out/$group.log")" >>"$out/groups"
      failed=1
    fi
  fi
  tail -n 1 "$out/groups" >&2
done
python3 "$root/benchmarks/all_figures.py" "$out" "$root/docs/performance.md" | tee "$out/all_figures.md"
exit $failed
