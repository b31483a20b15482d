#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches what the aarch64 variant links and includes of Debian's packages for arm64: fmt, yaml-cpp, libibverbs, and
# the headers of CLI11, nlohmann-json and Vulkan. Nothing is installed, and the system does not get a second
# architecture: apt-get reads lists of its own, and the packages (6 MB) are unpacked into a folder of the user, once.
#
#   arm64_libraries.sh [--folder]       --folder: prints the folder, and fetches nothing
set -euo pipefail
folder=${XDG_CACHE_HOME:-${HOME:?}/.cache}/cudaq-realtime/arm64-libraries
if [[ ${1:-} == --folder ]]; then
  echo "$folder"
  exit
fi
if [[ -e $folder ]]; then
  echo "arm64_libraries: $folder is there already"
  exit
fi
mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work"/{lists/partial,archives/partial,root}
arm64=(-qq -o "Dir::State::lists=$work/lists" -o Dir::State::status=/dev/null -o "Dir::Cache=$work"
  -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=)
apt-get "${arm64[@]}" update
packages=(libfmt-dev libyaml-cpp-dev libibverbs-dev libcli11-dev nlohmann-json3-dev libvulkan-dev)
# The libraries themselves, whose names have the version; the cross compiler has its own C and C++ libraries.
mapfile -t libraries < <(apt-cache "${arm64[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts \
  --no-breaks --no-replaces --no-enhances "${packages[@]}" |
  sed -n 's/^ *Depends: \(lib\(fmt\|yaml-cpp\|ibverbs\|nl-\)[^ ]*\)$/\1/p' | sort -u)
(cd "$work" && apt-get "${arm64[@]}" download "${packages[@]}" "${libraries[@]}")
for package in "$work"/*.deb; do
  dpkg-deb --extract "$package" "$work/root"
done
mv "$work/root" "$folder"
echo "arm64_libraries: ${packages[*]} for arm64 are in $folder"
