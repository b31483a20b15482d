#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The kernel's soft-RoCE and the roce provider in a guest: 400 requests each way of UC, in both shapes, all answers
# checked. soft-RoCE checks the ICRC of the answers. No RDMA adapter and no rights are needed; the guest is emulated.
#
#   soft_roce.sh SOURCE BUILD [GOLDEN]      GOLDEN: a file that is written from the packets of soft-RoCE
#
# $CUDAQ_SOFT_ROCE_KERNEL is a folder with an unpacked kernel package that has rdma_rxe, as of Debian's
# linux-image-amd64: `apt-get download PACKAGE && dpkg-deb -x PACKAGE*.deb FOLDER`. Also needed (Debian):
# qemu-system-x86 busybox-static cpio kmod iproute2 libibverbs-dev ibverbs-providers.
set -euo pipefail
source=$1 build=$2 golden=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
kernel=${CUDAQ_SOFT_ROCE_KERNEL:-}
if [[ -z $kernel ]]; then
  echo "skipped: CUDAQ_SOFT_ROCE_KERNEL does not name a folder with a kernel that has rdma_rxe"
  exit 77
fi
for program in qemu-system-x86_64 busybox cpio rdma gcc; do
  if ! PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null; then
    echo "skipped: $program is not installed"
    exit 77
  fi
done
provider_of_verbs=$(find /usr/lib -name 'librxe-rdmav*.so' | head -1)
if [[ -z $provider_of_verbs || ! -f /usr/include/infiniband/verbs.h ]]; then
  echo "skipped: libibverbs-dev and ibverbs-providers are not installed"
  exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
guest=$work/guest
mkdir -p "$guest"/{bin,tools,modules,server,proc,sys,dev,tmp,run/netns,var,etc/libibverbs.d}
ln -s ../run "$guest/var/run"
cp "$(command -v busybox)" "$guest/bin/"
for name in sh mount insmod cat sleep mknod ping rm head touch kill poweroff; do ln -s busybox "$guest/bin/$name"; done
gcc -O1 -I "$source/include" -o "$guest/tools/soft_roce_requester" "$here/soft_roce_requester.c" -libverbs
gcc -O1 -o "$guest/tools/soft_roce_capture" "$here/soft_roce_capture.c"
cp /sbin/ip "$(PATH=$PATH:/usr/sbin:/sbin command -v rdma)" "$guest/tools/"
cp "$build/unittests/transport/datagram/datagram-server-program" \
  "$build/lib/transport/roce/libcudaq-realtime-bridge-roce.so" "$build/lib/libcudaq-realtime.so.0" "$guest/server/"
cp /etc/libibverbs.d/rxe.driver "$guest/etc/libibverbs.d/"
mkdir -p "$guest$(dirname "$provider_of_verbs")"
cp "$provider_of_verbs" "$guest$provider_of_verbs"
for binary in "$guest"/tools/* "$guest"/server/* "$provider_of_verbs"; do # the libraries of each
  LD_LIBRARY_PATH=$build/lib ldd "$binary" | xargs -n 1 | grep '^/' | sort -u | while read -r library; do
    if [[ $library != "$build"* ]]; then
      mkdir -p "$guest$(dirname "$library")"
      cp -L "$library" "$guest$library"
    fi
  done
done
for module in crc32_generic udp_tunnel ip6_udp_tunnel configfs ib_core ib_uverbs rdma_rxe veth; do
  find "$kernel/lib/modules" -name "$module.ko" -exec cp {} "$guest/modules/" \;
done
install -m 755 "$here/guest_init.sh" "$guest/init"
(cd "$guest" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd.gz"
timeout 240 qemu-system-x86_64 -accel tcg -cpu max -m 1024 -smp 2 -nographic -no-reboot -nic none \
  -kernel "$kernel"/boot/vmlinuz-* -initrd "$work/initrd.gz" -append "console=ttyS0 quiet panic=-1" \
  </dev/null 2>&1 | tr -d '\r' >"$work/console" || true
grep -v '^PACKET ' "$work/console"
[[ -z $golden ]] || python3 "$here/soft_roce_golden.py" "$work/console" "$golden"
good=$(grep -c 'GOOD 400 rounds' "$work/console" || true)
if [[ $good != 2 ]]; then
  echo "$good of 2 exchanges were good"
  exit 1
fi
