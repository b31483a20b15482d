#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# linked_hooks.sh NVCC ARCHITECTURE FILE...: device-links the files. The program has the hooks of gpu-roce, which are
# strong symbols, and not those of the archive, which are weak and refuse to attach.
set -euo pipefail
nvcc=$1 architecture=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$nvcc" -dlink -cubin "-arch=sm_$architecture" -o "$folder/program.cubin" "$@"
symbols=$(readelf --symbols --wide "$folder/program.cubin" | awk '$4 == "FUNC" && $5 == "GLOBAL" { print $8 }')
for hook in cudaq_dev_transport_attach cudaq_dev_rx_poll cudaq_dev_tx_publish; do
  if ! grep -qx "$hook" <<<"$symbols"; then
    echo "$hook is not the one of gpu-roce"
    exit 1
  fi
done
echo "the three hooks are those of gpu-roce"
