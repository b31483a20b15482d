#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The programs of a cross build under its emulator, on recorded shots: emulated_programs.sh WAY SOURCE PROGRAM [SERVER]
#   tools        PROGRAM is cudaq-realtime: each command that needs no other program; a server with its client
#   benchmarks   PROGRAM is cudaq-realtime-bench
#   contrib      PROGRAM is cudaq-realtime-fpga-player; cudaq-realtime, which is SERVER, answers it
# The tests of the rooms run the same commands on this machine: here, each has to do its work on another one.
set -euo pipefail
way=$1 data=$2/tools/data program=$3 server=${4:-$3}
scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$scratch"' EXIT

fail() {
  echo "FAILED: $1" >&2
  exit 1
}

run() { # what a line of the output must match, or ''; program, arguments
  echo "== ${*:3}"
  timeout -k 2 300 "${@:2}" >"$scratch/out" 2>&1 || { cat "$scratch/out" && fail "${*:3}"; }
  grep -E "$1" "$scratch/out" || { cat "$scratch/out" && fail "no line matches '$1': ${*:3}"; }
}

start() { # what its ready line begins with; program, arguments. It ends with this script
  timeout -k 2 600 "${@:2}" >"$scratch/$1" 2>&1 &
  for _ in {1..600}; do
    ! grep "^$1" "$scratch/$1" || return 0
    sleep 0.2
  done
  cat "$scratch/$1"
  fail "not ready: ${*:3}"
}

number() { # name, what a ready line begins with: the number after name= in it
  sed -n "s/^$2.* $1=\([0-9a-fx]*\).*/\1/p" "$scratch/$2"
}

serve() { # set of shots, transport, options of the provider
  echo "decoders: [{id: 0, type: pymatching, dem_file: \"$data/$1.dem\"}]" >"$scratch/decoders.yaml"
  start QEC_DECODING_SERVER_READY "$server" serve --config "$scratch/decoders.yaml" --transport "$2" -- "${@:3}"
}

run '^Usage: ' "$program" --help
case $way in
  tools)
    shots=$data/surface_z_d5_p0.005
    run '^HOST_CALL dispatch on CPU threads: yes' "$program" info
    run ' 0 wrong$' "$program" doctor --transport udp
    run '^decoded +1000 shots' "$program" decode --dem "$shots.dem" --in "$shots.dets.b8" --in_format b8 \
      --out "$scratch/predictions" --out_format b8
    cmp "$scratch/predictions" "$shots.pred.b8"
    run '^ok: every shot answered once' "$program" demo --config d3 --duration 0.3
    run '^ok' "$program" pipeline --config d7 --duration 0.3
    run 'throughput over floor' "$program" latency --quick
    serve surface_z_d3_p0.005 udp --port=0 --unified
    run '500 of 500 as expected' "$program" emulate --transport udp --port "$(number port QEC_DECODING_SERVER_READY)" \
      --config d3 --shots 500
    ;;
  benchmarks)
    run '^auto ' "$program" decoding --dem "$data/surface_z_d3_p0.005.dem" --shots 2000
    run '^windows ' "$program" stream --dem "$data/surface_loop_d3_p0.004.dem" --rounds 500
    run '^ +65536 ' "$program" idle --quick
    ;;
  contrib)
    serve surface_z_d3_p0.003 roce --port=0 --peer-port=0
    start CUDAQ_REALTIME_EMULATOR_READY "$program" emulate --transport roce --control-port 0
    run '; 100 as expected' "$program" playback --emulator --noise 0.003 --page-size 256 --num-pages 8 \
      --bridge-port "$(number port QEC_DECODING_SERVER_READY)" \
      --bridge-qp "$(number qp QEC_DECODING_SERVER_READY)" \
      --control-port "$(number control_port CUDAQ_REALTIME_EMULATOR_READY)"
    ;;
esac
