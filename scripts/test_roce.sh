#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The providers roce and cpu_roce with the kernel's soft-RoCE, in a guest. No RDMA adapter and no rights are needed: the
# guest is emulated by QEMU, and takes one minute for roce, and several for cpu_roce.
#
#   test_roce.sh [roce|cpu_roce|all] [BUILD]      all, and the folder build/release of this tree
#
# $CUDAQ_SOFT_ROCE_KERNEL is the folder of a kernel that has rdma_rxe, as soft_roce_kernel.sh makes it; without it, that
# script's folder is used. Also needed (Debian): qemu-system-x86 busybox-static cpio kmod iproute2 libibverbs-dev
# ibverbs-providers. If something is missing, the last line says so, and the exit status is 77.
#
# $CUDAQ_ROCE_MESSAGES is the number of messages of the long runs of cpu_roce (250; 1000 in whole runs, which also kill
# and return more often), and $CUDAQ_ROCE_LIMIT the seconds that the guest may take. $CUDAQ_ROCE_GOLDEN is a file that
# is written from the packets of soft-RoCE (roce only).
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
part=${1:-all} build=$(cd "${2:-$source/build/release}" && pwd)
here=$source/unittests/transport/roce/soft_roce
PATH=$PATH:/usr/sbin:/sbin

skip() {
  echo "skipped: $1"
  exit 77
}
kernel=$("$source/scripts/soft_roce_kernel.sh" --folder)
[[ -e $kernel/boot ]] || skip "no kernel with soft-RoCE is in $kernel; scripts/soft_roce_kernel.sh fetches one"
for program in qemu-system-x86_64 busybox cpio rdma gcc; do
  command -v $program >/dev/null || skip "$program is not installed"
done
provider_of_verbs=$(find /usr/lib -name 'librxe-rdmav*.so' | head -1)
[[ -n $provider_of_verbs && -f /usr/include/infiniband/verbs.h ]] ||
  skip "libibverbs-dev and ibverbs-providers are not installed"
[[ $part == roce || -x $build/unittests/transport/cpu_roce/cpu-roce-caller ]] ||
  skip "the provider cpu_roce was not built: configure again, with libibverbs-dev"

messages=250 rounds=2
[[ -z ${CUDAQ_TEST_WHOLE:-} ]] || messages=1000 rounds=5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
guest=$work/guest
mkdir -p "$guest"/{bin,tools,modules,server,proc,sys,dev,tmp,run/netns,var,etc/libibverbs.d}
ln -s ../run "$guest/var/run"
cp "$(command -v busybox)" "$guest/bin/"
for name in sh mount insmod cat sleep mknod ping rm head touch kill poweroff sed grep mv tee usleep; do
  ln -s busybox "$guest/bin/$name"
done
cp /sbin/ip "$(command -v rdma)" "$guest/tools/"
soname=$(readlink "$build/lib/libcudaq-realtime.so")
cp "$build/unittests/transport/datagram/datagram-server-program" "$build/lib/$soname" "$guest/server/"
if [[ $part != cpu_roce ]]; then
  gcc -O1 -I "$source" -I "$source/include" -o "$guest/tools/soft_roce_requester" "$here/soft_roce_requester.c" \
    -libverbs
  gcc -O1 -o "$guest/tools/soft_roce_capture" "$here/soft_roce_capture.c"
  cp "$build/lib/transport/roce/libcudaq-realtime-bridge-roce.so" "$here/guest_roce.sh" "$guest/server/"
fi
if [[ $part != roce ]]; then
  cp "$build/unittests/transport/cpu_roce/cpu-roce-caller" "$guest/tools/"
  cp "$build/lib/transport/cpu_roce/libcudaq-realtime-bridge-cpu-roce.so" \
    "$source/unittests/transport/cpu_roce/guest_cpu_roce.sh" "$guest/server/"
  if [[ -x $build/tools/cudaq-realtime ]]; then
    cp "$build/tools/cudaq-realtime" "$source/unittests/transport/cpu_roce/guest_decoders.yaml" "$guest/server/"
  fi
fi
cp /etc/libibverbs.d/rxe.driver "$guest/etc/libibverbs.d/"
mkdir -p "$guest$(dirname "$provider_of_verbs")"
cp "$provider_of_verbs" "$guest$provider_of_verbs"
for binary in "$guest"/tools/* "$guest"/server/* "$provider_of_verbs"; do # the libraries of each
  { LD_LIBRARY_PATH=$build/lib ldd "$binary" 2>/dev/null || true; } | xargs -n 1 | { grep '^/' || true; } | sort -u |
    while read -r library; do
      if [[ $library == "$build"* ]]; then
        cp -L "$library" "$guest/server/"
      else
        mkdir -p "$guest$(dirname "$library")"
        cp -L "$library" "$guest$library"
      fi
    done
done
for module in crc32_generic udp_tunnel ip6_udp_tunnel configfs ib_core ib_uverbs rdma_rxe veth; do
  find "$kernel" -name "$module.ko" -exec cp {} "$guest/modules/" \;
done
install -m 755 "$here/guest_init.sh" "$guest/init"
(cd "$guest" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd.gz"
timeout "${CUDAQ_ROCE_LIMIT:-1150}" \
  qemu-system-x86_64 -accel tcg -cpu max -m 1024 -smp 2 -nographic -no-reboot -nic none \
  -kernel "$kernel"/boot/vmlinuz-* -initrd "$work/initrd.gz" \
  -append "console=ttyS0 quiet panic=-1 messages=${CUDAQ_ROCE_MESSAGES:-$messages} rounds=$rounds" \
  </dev/null 2>&1 | stdbuf -oL tr -d '\r' | tee "$work/console" | grep --line-buffered -v '^PACKET ' || true
[[ -z ${CUDAQ_ROCE_GOLDEN:-} ]] || python3 "$here/soft_roce_golden.py" "$work/console" "$CUDAQ_ROCE_GOLDEN"
for finished in roce cpu_roce; do
  [[ $part == "$finished" || $part == all ]] || continue
  if ! grep -q "^PASSED $finished" "$work/console"; then
    echo "$finished did not pass"
    exit 1
  fi
done
