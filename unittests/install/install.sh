#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build, also the benchmarks if it has them, and moves the result.
# Usage: install.sh <cmake> <build directory> <final prefix>
set -euo pipefail
rm -rf "$3" "$3.first"
"$1" --install "$2" --prefix "$3.first" >/dev/null
"$1" --install "$2" --prefix "$3.first" --component benchmarks >/dev/null
mv "$3.first" "$3"
find "$3" -type f -o -type l | sort | sed "s|^$3/||"
# No installed text file may contain the build directory or the first prefix.
if grep -rIlE --exclude-dir=doc -e "$2" -e "$3.first" "$3"; then
  echo "the files above contain the build directory or the first prefix"
  exit 1
fi
