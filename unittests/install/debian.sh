#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages, looks at what is in them, and installs, uses and removes them in a root of their own.
# Usage: debian.sh <way> <build directory> <source directory> <scratch directory>
#   Build      cpack, and the contents of the packages
#   Lintian    what Debian's check of packages finds in them
#   FreshRoot  installation by dpkg into an empty root, which knows the packages of this machine; the demo; removal.
#              Needs root. Uses the packages of Build.
set -euo pipefail
way=$1 build=$(realpath "$2") source=$(realpath "$3") scratch=$(realpath -m "$4")
packages=$scratch/packages

skip() {
  echo "skipped: $1"
  exit 77
}

fail() {
  echo "$1" >&2
  exit 1
}

for program in dpkg-deb dpkg-shlibdeps file pkg-config; do
  command -v "$program" >/dev/null || skip "$program is not installed (Debian: dpkg-dev, file, pkg-config)"
done
version=$("$source/scripts/version.sh" debian)
names=("libcudaq-realtime${version%%.*}" libcudaq-realtime-dev libcudaq-realtime-tools)
bench=$(sed -n 's/^CUDAQ_REALTIME_BUILD_BENCHMARKS:BOOL=ON$/cudaq-realtime-bench/p' "$build/CMakeCache.txt")
if [ "$bench" ]; then names+=("$bench"); fi

file_of() { # name
  echo "$packages/$1_$version-1_$(dpkg --print-architecture).deb"
}

files_in() { # name: the files of a package, without folders
  dpkg-deb --fsys-tarfile "$(file_of "$1")" | tar -t | sed 's|^\.||' | grep -v '/$'
}

build_packages() {
  rm -rf "$scratch"
  mkdir -p "$scratch"
  (cd "$build" && cpack -G DEB -B "$packages" >"$scratch/cpack.log" 2>&1) ||
    { cat "$scratch/cpack.log" && exit 1; }
  rm -rf "$packages/_CPack_Packages"
  [ "$(find "$packages" -name '*.deb' | wc -l)" = ${#names[@]} ] || fail "not ${names[*]}: $(ls "$packages")"
}

check_contents() {
  local name depends page
  for name in "${names[@]}"; do
    echo "== $name: $(du -h "$(file_of "$name")" | cut -f1) packed," \
      "$(dpkg-deb -f "$(file_of "$name")" Installed-Size) kB installed"
    dpkg-deb -f "$(file_of "$name")" Package Version Depends Maintainer Section
    [ "$(dpkg-deb -f "$(file_of "$name")" Version)" = "$version-1" ] || fail "$name: wrong version"
    files_in "$name" | grep -v '^/usr/' && fail "$name: the files above are outside /usr"
  done
  # Each file is in one package; together they are what `cmake --install` installs, with the benchmarks, without the
  # provider ucx. Debian's documents are added, man pages are compressed.
  for name in "${names[@]}"; do
    for document in copyright changelog.gz changelog.Debian.gz; do
      files_in "$name" | grep -x "/usr/share/doc/$name/$document" >/dev/null || fail "$name: no $document"
    done
    files_in "$name"
  done | grep -vE '/doc/(lib[^/]*|[^/]*-bench)/(copyright|changelog.*)$|/lintian/|/cudaq-realtime-gpu\.1\.gz$' |
    sed -E 's|(/man[13]/.*)\.gz$|\1|' | sort >"$scratch/packed"
  uniq -d "$scratch/packed" | grep . && fail "the files above are in several packages"
  cmake --install "$build" --prefix "$scratch/installed" >/dev/null
  [ ! "$bench" ] || cmake --install "$build" --component benchmarks --prefix "$scratch/installed" >/dev/null
  (cd "$scratch/installed" && find . -type f -o -type l) | grep -v -e -bridge-ucx |
    sed 's|^\.|/usr|' | sort >"$scratch/expected"
  diff "$scratch/expected" "$scratch/packed" || fail "cmake --install and the packages differ"
  # What belongs where.
  files_in "${names[0]}" | grep -E '\.(h|cuh|a|pc|cmake|so)$|/bin/' |
    grep -vE -e '-bridge-|libcudaq-qec-(model|relay-bp)-gpu.so|/decoders/' && fail "${names[0]} has files of the others"
  files_in "${names[1]}" | grep -E '/bin/|\.so\.' && fail "${names[1]} has files of the others"
  files_in "${names[2]}" | grep -vE '^/usr/(bin|share)/' && fail "${names[2]} has files of the others"
  if [ "$bench" ]; then
    files_in "$bench" | grep -x "/usr/bin/$bench" >/dev/null || fail "$bench has no program"
    files_in "$bench" | grep -vE "^/usr/(bin|share/(man/man1|doc|lintian/overrides))/$bench" &&
      fail "$bench has files of the others"
    # A page for the program and for each of its subcommands.
    "$build/benchmarks/$bench" help | sed -nE "s/^  ([a-z]+)  .*/\1/p" >"$scratch/subcommands"
    [ -s "$scratch/subcommands" ] || fail "$bench help lists no subcommand"
    while read -r page; do
      files_in "$bench" | grep "/man1/$bench-$page.1.gz$" >/dev/null || fail "no man page of $bench $page"
    done <"$scratch/subcommands"
  fi
  if files_in "${names[2]}" | grep '/cudaq-realtime-serve.service$' >/dev/null; then
    dpkg-deb --fsys-tarfile "$(file_of "${names[2]}")" |
      tar -xO ./usr/share/cudaq-realtime/systemd/cudaq-realtime-serve.service |
      grep '^ExecStart=cudaq-realtime serve' >/dev/null || fail "the unit file names a folder of another package"
  fi
  files_in "${names[0]}" | grep "/THIRD_PARTY_NOTICES.txt" >/dev/null || fail "no third-party notices"
  for name in "${names[@]:1}"; do
    depends=$(dpkg-deb -f "$(file_of "$name")" Depends)
    [[ $depends == *"${names[0]} (= $version-1)"* ]] || fail "$name depends on: $depends"
  done
  for name in libcudaq-realtime $(files_in "${names[0]}" | sed -nE 's|.*/(lib.*)\.so\.[0-9]+$|\1|p'); do
    dpkg-deb --ctrl-tarfile "$(file_of "${names[0]}")" | tar -xO ./shlibs |
      grep "^$name ${version%%.*} " >/dev/null || fail "shlibs lacks $name"
  done
  dpkg-deb -f "$(file_of "${names[0]}")" Depends | grep 'libc6 (>= ' >/dev/null || fail "the runtime needs no libraries"
}

# Debian's own check of packages. Accepted: what only a package in Debian's archive can have.
#   bogus-mail-host...             the maintainer is who builds the packages: CUDAQ_PACKAGE_CONTACT
#   initial-upload-closes-no-bugs  there is no bug of Debian to close
# Exceptions of one package, with their reasons: cmake/debian.
in_lintian() {
  command -v lintian >/dev/null || skip "lintian is not installed (Debian: lintian)"
  lintian --version
  lintian --allow-root --no-cfg --fail-on error,warning --tag-display-limit 0 \
    --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog,initial-upload-closes-no-bugs "$packages"/*.deb
}

# A root whose dpkg knows those packages of this machine that the new ones depend on, so it checks the dependencies. It
# has only what the packages' scripts need: a shell and ldconfig.
make_root() { # folder
  mkdir -p "$1"/{tmp,bin,etc,usr/sbin,var/lib/dpkg/info,var/lib/dpkg/updates,var/lib/dpkg/triggers}
  cp -L /bin/sh "$1/bin/sh"
  cp -L /sbin/ldconfig "$1/usr/sbin/ldconfig"
  add_system_libraries "$1" "$1/bin/sh"
  local name
  for name in "${names[@]}"; do
    dpkg-deb -f "$(file_of "$name")" Depends | tr ',' '\n' | sed 's/^ *\([^ ]*\).*/\1/'
  done | sort -u | grep -v cudaq | while read -r name; do
    dpkg-query -s "$name" && echo
    # dpkg wants to know the files of each installed package. The name of the list may have the architecture.
    touch "$1/var/lib/dpkg/info/$name.list" "$1/var/lib/dpkg/info/$name:$(dpkg --print-architecture).list"
  done >"$1/var/lib/dpkg/status"
}

# Copies the system's shared libraries that a program or library of the root needs, and their loader.
add_system_libraries() { # folder, file...
  local root=$1 library
  shift
  LD_LIBRARY_PATH=$root/usr/lib ldd "$@" | sed -nE 's/.*(=> |^\s+)(\/[^ ]+) \(0x.*/\2/p' | sort -u |
    grep -v "^$root" | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
}

in_fresh_root() {
  [ "$(id -u)" = 0 ] || skip "this is not root"
  local root=$scratch/root name
  rm -rf "$root"
  make_root "$root"
  # The programs without the runtime are not configured: the dependency is right.
  for name in "${names[@]:2}"; do
    if dpkg --root="$root" --install "$(file_of "$name")" >"$scratch/refused" 2>&1; then
      fail "dpkg configured $name without the runtime"
    fi
  done
  dpkg --root="$root" --install "$packages"/*.deb
  add_system_libraries "$root" "$root"/usr/bin/cudaq-realtime ${bench:+"$root/usr/bin/$bench"} "$root"/usr/lib/*.so

  echo "== the programs, in the root"
  chroot "$root" /usr/bin/cudaq-realtime --version
  chroot "$root" /usr/bin/cudaq-realtime info >/dev/null
  # Without /proc a program does not know its own folder, from which it would find the shots.
  local data=/usr/share/cudaq-realtime/data
  if [ -e "$root$data" ]; then
    chroot "$root" /usr/bin/cudaq-realtime demo --data "$data" --config d3 --shots 1000 --rate 0
  fi
  if [ "$bench" ]; then
    chroot "$root" "/usr/bin/$bench" --version
    if [ -e "$root$data" ]; then
      chroot "$root" "/usr/bin/$bench" decoding --dem "$data/surface_z_d3_p0.003.dem" --shots 1000
    fi
  fi

  echo "== the first tutorial, with the headers and libraries of the root"
  local flags
  eval "flags=($(PKG_CONFIG_PATH=$root/usr/lib/pkgconfig pkg-config --cflags --libs cudaq-realtime))"
  cc "$root/usr/share/doc/cudaq-realtime/docs/examples/host_call.c" -o "$root/tmp/host_call" "${flags[@]}"
  chroot "$root" /tmp/host_call

  echo "== removal"
  dpkg --root="$root" --purge "${names[@]}"
  if find "$root/usr" -path '*cudaq*' | grep .; then
    fail "the files above were left"
  fi
  if dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Package} ${Status}\n' | grep cudaq; then
    fail "dpkg still knows the packages above"
  fi
  rm -rf "$root"
}

case $way in
  Build)
    build_packages
    check_contents
    ;;
  Lintian)
    [ -d "$packages" ] || skip "there are no packages: the test of way Build was skipped"
    in_lintian
    ;;
  FreshRoot)
    [ -d "$packages" ] || skip "there are no packages: the test of way Build was skipped"
    in_fresh_root
    ;;
  *)
    fail "debian.sh: unknown way $way"
    ;;
esac
