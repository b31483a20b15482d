#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The inputs of a fuzz target are in one archive, <target>.tar.gz in the folder of this script. TARGET may have a folder
# before it, as qec/record_file:
#   corpus.sh add TARGET FILE...       adds inputs, which get the suffix .input; one of the same name is replaced
#   corpus.sh unpack TARGET FOLDER     into a new folder
#   corpus.sh pack TARGET FOLDER       writes the archive, from all files *.input of the folder
# The same inputs give the same archive. `tar -tvf` lists it. The build unpacks all archives, by unpack.cmake.
set -euo pipefail
export LC_ALL=C # the order of *.input
if [ $# -lt 3 ]; then
  sed -n '3,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
action=$1 archive=$(cd "$(dirname "$0")" && pwd)/$2.tar.gz folder=$3
shift 2

unpack() { # FOLDER
  mkdir "$1"
  tar -xzf "$archive" -C "$1"
}

pack() { # FOLDER
  (cd "$1" && tar -cf - --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 -- *.input) |
    gzip -9n >"$archive.new"
  mv "$archive.new" "$archive"
}

case $action in
  unpack) unpack "$folder" ;;
  pack) pack "$folder" ;;
  add)
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    folder=$scratch/inputs
    if [ -f "$archive" ]; then unpack "$folder"; else mkdir "$folder"; fi
    for file in "$@"; do
      name=${file##*/}
      cp "$file" "$folder/${name%.input}.input"
    done
    pack "$folder"
    ;;
  *)
    echo "corpus.sh: '$action' is not add, unpack or pack" >&2
    exit 2
    ;;
esac
