#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest of scripts/test_roce.sh: the cpu_roce provider and its callers on soft-RoCE, which have an address each
# of the same device.
ip=/tools/ip
own=10.9.0.11 server=10.9.0.12
$ip addr add $own/24 dev veth0
$ip addr add $server/24 dev veth0
sleep 1
mknod /hold_cpu p
failed=0

fail() {
  echo "FAILED: $1"
  failed=1
}

# value KEY FILE: of the first word KEY=... in the file
value() {
  sed -n "s/.*[ ]$1=\([^ ]*\).*/\1/p" "$2" | head -n 1
}

# start [options of the provider]: the server, until `finish`
start() {
  : >/server.out
  sleep 100000 >/hold_cpu & # the server ends when this does
  hold=$!
  CUDAQ_TEST_SLEEP=1 /server/datagram-server-program /server/libcudaq-realtime-bridge-cpu-roce.so --device=rxe0 \
    --local-ip=$server "$@" </hold_cpu >/server.out 2>&1 &
  served=$!
  tries=0
  until grep -q READY /server.out || [ $tries = 200 ]; do
    usleep 100000
    tries=$((tries + 1))
  done
  cat /server.out
  grep -q READY /server.out || exit
}

# finish KEY=VALUE...: ends the server, and checks its last line
finish() {
  kill $hold
  wait $served || fail "the server's exit status"
  sed -n 's/^PROCESSED/& /p' /server.out
  for expected in "$@"; do
    [ "$(value "${expected%%=*}" /server.out)" = "${expected#*=}" ] || fail "the server does not report $expected"
  done
}

# call TYPE SLOT FRAME PLAN [words]: a caller
call() {
  type=$1 slot=$2 frame=$3 plan=$4
  shift 4
  /tools/cpu-roce-caller server=$server own=$own type="$type" slots=8 slot_size="$slot" frame_size="$frame" \
    plan="$plan" "$@" 2>&1 | tee /caller.out
  [ "$plan" = vanish ] || grep -q "GOOD cpu_roce $plan" /caller.out || fail "plan $plan"
}

# rendezvous TYPE SLOT FRAME MTU MESSAGES [options of the provider]
rendezvous() {
  type=$1 slot=$2 frame=$3 mtu=$4 messages=$5
  shift 5
  echo "== rendezvous, $type, slots of $slot, frames of $frame, MTU $mtu $*"
  start --qp-type="$type" --slot-size="$slot" --frame-size="$frame" --mtu="$mtu" "$@"
  call "$type" "$slot" "$frame" all port="$(value port /server.out)" mtu="$mtu" messages="$messages"
  finish count="$(($(value requests /caller.out) + 2))" different="$messages" twice=0 short=1 long=1 truncated=1 \
    busy=1 overwritten=1 unanswered=2 orphaned=0 lost=0 immediate=0 peers=1
}

# bridge [options of the provider]: the caller plays a sensor bridge
bridge() {
  echo "== hsb_fpga $*"
  rm -f /queue_pair /go
  call uc 256 256 all messages="$messages" mtu=1024 &
  caller=$!
  while [ ! -s /queue_pair ]; do sleep 1; done
  start --qp_config=hsb_fpga --peer-ip=$own --remote-qp="$(cat /queue_pair)" --mtu=1024 "$@"
  echo "$(value qp /server.out) $(value rkey /server.out)" >/going
  mv /going /go
  wait $caller
  grep -q 'GOOD cpu_roce all' /caller.out || fail "the sensor bridge"
  finish different="$messages" twice=0 busy=1 overwritten=1 unanswered=2 lost=0 immediate=0
}

# Peers that vanish, return, and strangers, on one server.
returning() {
  type=$1
  shift
  echo "== returning peers, $type $*"
  start --qp-type="$type" "$@"
  port=$(value port /server.out)
  call "$type" 256 256 short port="$port" strangers=1
  round=0
  while [ $round != "$rounds" ]; do
    call "$type" 256 256 vanish port="$port"
    call "$type" 256 256 short port="$port"
    round=$((round + 1))
  done
  finish peers=$((1 + 2 * rounds)) different=0
}

# Servers that are killed with requests open, and start again on their port for a new caller.
killed() {
  type=$1
  shift
  echo "== killed servers, $type $*"
  start --qp-type="$type" "$@"
  port=$(value port /server.out)
  round=0
  while [ $round != "$rounds" ]; do
    : >/open.out
    /tools/cpu-roce-caller server=$server own=$own type="$type" slots=8 slot_size=256 frame_size=256 plan=killed \
      port="$port" >/open.out 2>&1 &
    caller=$!
    tries=0
    until grep -q OPEN /open.out || [ $tries = 600 ]; do
      usleep 100000
      tries=$((tries + 1))
    done
    grep -q OPEN /open.out || fail "no requests were open"
    kill -9 $served
    wait $served && fail "the server was not killed"
    kill $hold
    wait $caller || fail "the caller of the killed server: $(cat /open.out)"
    grep -q 'GOOD cpu_roce killed' /open.out || fail "plan killed"
    start --qp-type="$type" --port="$port" "$@"
    [ "$(value port /server.out)" = "$port" ] || fail "the port of the server that starts again"
    call "$type" 256 256 short port="$port"
    round=$((round + 1))
  done
  finish count="$(value requests /caller.out)" twice=0 peers=1
}

# The program, as a decoding server.
serve() {
  echo "== serve"
  /server/cudaq-realtime serve --config /server/guest_decoders.yaml --transport cpu_roce --wait block -- \
    --device=rxe0 --local-ip=$server >/server.out 2>&1 &
  served=$!
  tries=0
  until grep -q READY /server.out || [ $tries = 300 ]; do
    usleep 100000
    tries=$((tries + 1))
  done
  call uc 256 256 serve port="$(value port /server.out)"
  kill $served
  wait $served || fail "the exit status of serve"
  cat /server.out
  grep -q "CUDAQ_REALTIME_SERVER_PROCESSED count=2" /server.out || fail "the count of serve"
}

messages=${messages:-10000} rounds=${rounds:-5}
[ ! -x /server/cudaq-realtime ] || serve
rendezvous uc 256 256 4096 "$messages"
rendezvous rc 256 256 4096 "$messages" --unified
rendezvous uc 4096 2048 1024 300 --unified
rendezvous rc 4096 4096 512 300
bridge
bridge --unified
returning uc
returning rc --unified
killed uc
killed rc --unified
[ $failed = 1 ] || echo "PASSED cpu_roce"
