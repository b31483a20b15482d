#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the RPM packages and compares them with the Debian packages: the same names, files, modes and links. As
# root also installs them into an empty root, lets rpm verify them there, and removes them.
# Usage: rpm.sh <build directory> <scratch directory> <scratch directory of debian.sh>
set -euo pipefail
build=$(realpath "$1") scratch=$(realpath -m "$2") debian=$3/packages

skip() {
  echo "skipped: $1"
  exit 77
}

fail() {
  echo "$1" >&2
  exit 1
}

command -v rpmbuild >/dev/null || skip "rpmbuild is not installed (Debian: rpm)"
[ -d "$debian" ] || skip "there are no Debian packages: the test that builds them was skipped"
rm -rf "$scratch"
mkdir -p "$scratch"
# The folder of rpmbuild's own settings is empty, so those of a user do not count.
(cd "$build" && HOME=$scratch cpack -G RPM -B "$scratch/packages" >"$scratch/cpack.log" 2>&1) ||
  { cat "$scratch/cpack.log" && exit 1; }
rm -rf "$scratch/packages/_CPack_Packages"
query() { # package, format
  rpm --dbpath "$scratch/db" -qp --qf "$2" "$1"
}

count=0
for rpm in "$scratch"/packages/*.rpm; do
  count=$((count + 1))
  name=$(query "$rpm" '%{NAME}')
  version=$(query "$rpm" '%{VERSION}-%{RELEASE}')
  deb=$debian/${name}_${version}_$(dpkg --print-architecture).deb
  [ -e "$deb" ] || fail "no Debian package is called ${deb##*/}"
  rpm --dbpath "$scratch/db" --checksig --nosignature "$rpm" || fail "$rpm is damaged"
  query "$rpm" '%{SUMMARY}\n' | grep -xF "$(dpkg-deb -f "$deb" Description | head -n 1)" ||
    fail "the summaries of $name differ"
  [ "$(query "$rpm" '%{LICENSE} %{VENDOR}')" = "Apache-2.0 CUDA-Q Realtime" ] || fail "$name: licence or vendor"
  # Files and links, with modes and targets. Debian packages name their folders, too.
  query "$rpm" '[%{FILEMODES:perms} %{FILENAMES} %{FILELINKTOS}\n]' | grep -v ^d | sed 's/ *$//' | sort \
    >"$scratch/$name.rpm"
  dpkg-deb --fsys-tarfile "$deb" | tar -tv | grep -v -e ^d -e '/changelog.Debian.gz$' -e /lintian/ |
    sed -E 's|^(\S+)( +\S+){4} \./|\1 /|; s| -> | |' | sort >"$scratch/$name.deb"
  [ -s "$scratch/$name.deb" ] || fail "$deb has no files"
  diff "$scratch/$name.deb" "$scratch/$name.rpm" || fail "$name: the files of the Debian package (<) and of RPM (>)"
  query "$rpm" '[%{FILEMODES:perms} %{FILENAMES}\n]' | grep ^d | grep -v cudaq &&
    fail "$name owns the folders above, which belong to other packages"
  # The same shared libraries are needed, though dpkg names their packages and rpm their sonames.
  rpm --dbpath "$scratch/db" -qp --requires "$rpm" >"$scratch/$name.requires"
  case $name in
    *-dev | *-tools | *-bench) grep -E "^libcudaq-realtime[0-9]+ = $version$" "$scratch/$name.requires" ||
      fail "$name does not require the libraries of its version" ;;
    *) grep '^libc\.so\.6' "$scratch/$name.requires" >/dev/null || fail "$name requires no libraries" ;;
  esac
  echo "$name $version: $(wc -l <"$scratch/$name.rpm") files, as in the Debian package"
done
[ "$count" = "$(find "$debian" -name '*.deb' | wc -l)" ] || fail "a package is missing: $(ls "$scratch/packages")"

[ "$(id -u)" = 0 ] || skip "the packages are right; this is not root, so they were not installed"
in_root() {
  rpm --root "$scratch/root" --dbpath /db "$@"
}
mkdir "$scratch/root"
# Without the packages of the system and their shell: no dependencies of them, no script.
in_root --install --nodeps --noscripts "$scratch"/packages/*.rpm
in_root --verify --all --nodeps || fail "rpm finds that the installed files above are not those of the packages"
mapfile -t names < <(in_root --query --all --qf '%{NAME}\n')
in_root --erase --nodeps --noscripts "${names[@]}"
if find "$scratch/root/usr" -path '*cudaq*' | grep .; then
  fail "the files above were left"
fi
