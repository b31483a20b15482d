#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the files of a build need of the C and the C++ runtime: oldest_runtime.sh NM FILE...
# Built on Debian 12 they load on a system with glibc 2.34 and the C++ runtime of GCC 11, such as RHEL 9. The test is
# only for that build: headers of a newer glibc bring newer symbols into the same sources.
set -euo pipefail
nm=$1
shift
# name of a version, the newest that may be needed
limits=$'GLIBC_ 2.34\nGLIBCXX_ 3.4.29\nCXXABI_ 1.3.13'
status=0
for file in "$@"; do
  needed=$("$nm" -D --undefined-only --with-symbol-versions -C "$file")
  while read -r name newest; do
    while read -r version; do
      if [ "$(printf '%s\n%s\n' "$version" "$newest" | sort -V | tail -1)" != "$newest" ]; then
        printf '%s needs more than %s%s:\n%s\n' "$file" "$name" "$newest" "$(grep "@${name}${version}\b" <<<"$needed")"
        status=1
      fi
    done < <(grep -oE "@${name}[0-9.]+" <<<"$needed" | sed "s/^@${name}//" | sort -u)
  done <<<"$limits"
done
echo "$# files"
exit "$status"
