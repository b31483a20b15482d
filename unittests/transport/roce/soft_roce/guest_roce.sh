#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest of scripts/test_roce.sh: the roce provider and a requester on soft-RoCE, 400 requests each way of UC, in
# both shapes, all answers checked. soft-RoCE checks the ICRC of the answers.
ip=/tools/ip
mknod /hold p

# exchange MTU SLOT_SIZE [options of the provider]
exchange() {
  mtu=$1 slot=$2
  shift 2
  rm -f /queue_pair /go
  /tools/soft_roce_requester "$mtu" "$slot" 400 10.9.0.2 >/requester.out 2>&1 &
  requester=$!
  while [ ! -s /queue_pair ]; do sleep 1; done
  $ip netns exec server /tools/soft_roce_capture >/captured."$mtu" &
  capture=$!
  sleep 100000 >/hold & # the server ends when this does
  hold=$!
  $ip netns exec server /server/datagram-server-program /server/libcudaq-realtime-bridge-roce.so --bind 10.9.0.2 \
    --remote-qp="$(cat /queue_pair)" --mtu="$mtu" --slot-size="$slot" --num-slots=4 "$@" </hold >/server.out 2>&1 &
  server=$!
  sleep 2
  touch /go
  wait $requester
  kill $hold
  wait $server
  kill $capture
  cat /requester.out /server.out
  grep -q 'GOOD 400 rounds' /requester.out || failed=1
}
failed=0
exchange 1024 4096
exchange 256 600 --unified
head -n 300 /captured.256
[ $failed = 1 ] || echo "PASSED roce"
