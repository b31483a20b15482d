#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The static probes of the server's library: probes.sh LIBRARY COMPILER. Skipped where it was built without sys/sdt.h.
set -euo pipefail
library=$1
included=$(echo '#include <sys/sdt.h>' | "$2" -E -x c++ - 2>/dev/null) || true
header=$(grep -o -m 1 '"[^"]*/sys/sdt.h"' <<<"$included" | tr -d '"') || true
[ -n "$header" ] || {
  echo "SKIP: no sys/sdt.h (systemtap-sdt-dev): the library has no probes"
  exit 77
}
[ "$(stat -c %Z "$header")" -lt "$(stat -c %Y "$library")" ] || {
  echo "SKIP: the library is older than $header"
  exit 77
}
notes=$(readelf -n "$library" | grep -A 1 'Provider: cudaq_qec$')
for moment in arrived accepted queued taken decoded answered; do
  grep -q "Name: $moment\$" <<<"$notes" || {
    echo "readelf -n $library: no probe '$moment'"
    exit 1
  }
done
