#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches a Debian kernel that has soft-RoCE (rdma_rxe), for the guest of test_roce.sh. Nothing is installed: the image
# and the few modules that the guest needs are unpacked into a folder of the user, once. The package has some 70 MB.
#
#   soft_roce_kernel.sh [--folder]      --folder: prints the folder, and fetches nothing
set -euo pipefail
folder=${CUDAQ_SOFT_ROCE_KERNEL:-${XDG_CACHE_HOME:-$HOME/.cache}/cudaq-realtime/soft-roce-kernel}
if [[ ${1:-} == --folder ]]; then
  echo "$folder"
  exit
fi
if [[ -e $folder/boot ]]; then
  echo "soft_roce_kernel: $folder is there already"
  exit
fi
# linux-image-amd64 depends on the kernel's package, whose name has the version. Ubuntu has other packages.
package=$( (apt-cache depends linux-image-amd64 2>/dev/null || true) |
  sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -1)
if [[ -z $package ]]; then
  echo "soft_roce_kernel: apt-get knows no package linux-image-amd64" >&2
  exit 1
fi
mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
(cd "$work" && apt-get download -qq "$package" 2>/dev/null)
mkdir "$work/kernel"
dpkg-deb --fsys-tarfile "$work"/linux-image-*.deb |
  tar -x -C "$work/kernel" --wildcards './boot/vmlinuz-*' '*/crc32_generic.ko*' '*/udp_tunnel.ko*' \
    '*/ip6_udp_tunnel.ko*' '*/configfs.ko*' '*/ib_core.ko*' '*/ib_uverbs.ko*' '*/rdma_rxe.ko*' '*/veth.ko*'
find "$work/kernel" -name '*.ko.xz' -exec unxz {} + # from Debian 13 on
mv "$work/kernel" "$folder"
echo "soft_roce_kernel: $package is in $folder"
