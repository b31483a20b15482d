#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of the guest that soft_roce.sh starts. soft-RoCE has port 4791 of the first network namespace; the
# server is in another one, at the other end of a pair of virtual interfaces.
export PATH=/bin LD_LIBRARY_PATH=/server:/usr/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu
ip=/tools/ip # a name with a slash: the shell has a command of the same name, which is not enough here
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
for module in crc32_generic udp_tunnel ip6_udp_tunnel configfs ib_core ib_uverbs rdma_rxe veth; do
  [ ! -f /modules/$module.ko ] || insmod /modules/$module.ko
done
$ip link set lo up
$ip netns add server
$ip link add veth0 type veth peer name veth1 netns server
$ip addr add 10.9.0.1/24 dev veth0
$ip link set veth0 mtu 9000 up
$ip netns exec server $ip link set lo up
$ip netns exec server $ip addr add 10.9.0.2/24 dev veth1
$ip netns exec server $ip link set veth1 mtu 9000 up
sleep 1
ping -c 1 10.9.0.2 >/dev/null
/tools/rdma link add rxe0 type rxe netdev veth0
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
}
exchange 1024 4096
exchange 256 600 --unified
head -n 300 /captured.256
poweroff -f
