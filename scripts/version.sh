#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the version of version.h as scripts and documents write it: scripts/version.sh [python|debian]
#   1.0.0    1.0.0-rc1, for Python 1.0.0rc1, for Debian and RPM 1.0.0~rc1, which is before 1.0.0
set -euo pipefail
header=$(dirname "$0")/../include/cudaq/realtime/version.h
numbers=$(sed -n 's/^#define CUDAQ_REALTIME_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' "$header" | paste -sd.)
before=$(sed -n 's/^#define CUDAQ_REALTIME_VERSION_PRERELEASE "\(.*\)"$/\1/p' "$header")
case ${1:-} in
  python) dash= ;;
  debian) dash='~' ;;
  '') dash=- ;;
  *) echo "version.sh: $1 is unknown: python, debian" >&2 && exit 2 ;;
esac
echo "$numbers${before:+$dash$before}"
