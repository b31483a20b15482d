#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of the guest that scripts/test_roce.sh starts: makes a device of soft-RoCE, and runs the parts that
# the guest has.
export PATH=/bin LD_LIBRARY_PATH=/server:/usr/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu
ip=/tools/ip # a name with a slash: the shell has a command of the same name, which is not enough here
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
for module in crc32_generic udp_tunnel ip6_udp_tunnel configfs ib_core ib_uverbs rdma_rxe veth; do
  [ ! -f /modules/$module.ko ] || insmod /modules/$module.ko
done
$ip link set lo up
# soft-RoCE has port 4791 of the first network namespace. The server of roce is in another one, at the other end of a
# pair of virtual interfaces.
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
for part in /server/guest_*.sh; do
  sh "$part"
done
poweroff -f
