#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The static probes of the server's library: probes.sh LIBRARY FOLDER. The folder has sys/sdt.h, as the build found it.
set -euo pipefail
library=$1
[[ $2 != *-NOTFOUND ]] || {
  echo "SKIP: no sys/sdt.h (systemtap-sdt-dev) when the build was configured: the library has no probes"
  exit 77
}
notes=$(readelf -n "$library" | grep -A 1 'Provider: cudaq_qec$') || true
for moment in arrived accepted queued taken decoded answered; do
  grep -q "Name: $moment\$" <<<"$notes" || {
    echo "readelf -n $library: no probe '$moment'"
    exit 1
  }
done
