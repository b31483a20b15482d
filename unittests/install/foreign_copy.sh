#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `cmake --install` refuses to replace a file of another project, writes nothing then, and replaces its own files. The
# component of this test has no files: only the check runs.
# Usage: foreign_copy.sh <cmake> <build directory> <installed prefix> <scratch directory> <lib, as the prefix has it>
set -euo pipefail
cmake=$1 build=$2 installed=$3 scratch=$4 lib=$5
rm -rf "$scratch"
headers=include/cudaq/realtime/daemon/dispatcher
soname=$(readlink "$installed/$lib/libcudaq-realtime.so")
qec=()
[ ! -e "$installed/include/cudaq/qec/realtime/pipeline.h" ] || qec=(include/cudaq/qec/realtime/pipeline.h)
check() { # prefix
  "$cmake" --install "$build" --prefix "$1" --component no-files >"$scratch.log" 2>&1
}

check "$installed" || { cat "$scratch.log" && echo "the library's own copy was refused" && exit 1; }
for file in $headers/cudaq_realtime.h "$lib/libcudaq-realtime.so" "$lib/$soname" \
  "$lib/libcudaq-realtime-dispatch.a" "$lib/cmake/cudaq-realtime/cudaq-realtime-config.cmake" "${qec[@]}"; do
  prefix=$scratch/$(basename "$file")
  mkdir -p "$(dirname "$prefix/$file")"
  echo "a file of another project" >"$prefix/$file"
  if "$cmake" --install "$build" --prefix "$prefix" >"$scratch.log" 2>&1; then
    echo "$file of another project was replaced"
    exit 1
  fi
  tr -s ' \n' ' ' <"$scratch.log" | grep -o "[^ ]*/$file exists and is not of this project.*Nothing was installed."
  [ "$(find "$prefix" -type f)" = "$prefix/$file" ]
  DESTDIR=$scratch/staged check "$prefix" # the file is not at the destination
  CUDAQ_REALTIME_OVERWRITE_FOREIGN=1 check "$prefix"
done
