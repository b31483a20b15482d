#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds variants and runs their tests in one ctest run:
#   scripts/test.sh [ctest option...]                               all variants, all tests
#   scripts/test.sh --variants "release tsan" [ctest option...]     these variants, all of their tests
#   scripts/test.sh --quick [room...] [ctest option...]             release only, only these rooms of unittests/
# --quick is for a change in progress. It builds only what the tests of these rooms need, in build/release. Without a
# room it takes all rooms except abi, codegen, fuzz, gpu, headers, install and model.
# Installs missing packages. A second run compiles only what has changed. CUDAQ_JOBS: parallel jobs (all cores).
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${CUDAQ_JOBS:-$(nproc)}
ctest_options=(--output-on-failure --no-label-summary --no-tests=error -j "$jobs")

configure() { # variant
  local options=()
  # A plug-in for a decoder of another project, to test the interface with it. One variant suffices.
  [ "$1" != release ] || options=(-DCUDAQ_WITH_CHROMOBIUS=AUTO)
  cmake --preset "$1" --log-level=WARNING "${options[@]}" >/dev/null
}

build() { # variant, targets
  cmake --build "build/$1" -j "$jobs" --target "${@:2}" -- --quiet
  echo "   built after $SECONDS s"
}

test_all() {
  scripts/bootstrap.sh test "${variants[@]}"
  local variant
  for variant in "${variants[@]}"; do
    echo "== $variant"
    configure "$variant"
    build "$variant" all
  done
  # One test tree with a folder for each variant. The variant's prefix makes the names of the tests unique.
  echo "subdirs(${variants[*]})" >build/CTestTestfile.cmake
  exec ctest --test-dir build "${ctest_options[@]}" "$@"
}

# Rooms that --quick takes only by name: they take long, need a GPU, or need the whole build.
by_name_only=" abi codegen fuzz gpu headers install model "

test_rooms() {
  local all=() rooms=() targets=() room
  mapfile -t all < <(cd unittests && dirname -- */CMakeLists.txt)
  while [ $# -gt 0 ] && [[ $1 != -* ]]; do
    if [[ " ${all[*]} " != *" $1 "* ]]; then
      echo "scripts/test.sh: unittests has no room '$1'; the rooms are: ${all[*]}" >&2
      exit 2
    fi
    rooms+=("$1")
    shift
  done
  if [ ${#rooms[@]} -eq 0 ]; then
    for room in "${all[@]}"; do
      [[ $by_name_only == *" $room "* ]] || rooms+=("$room")
    done
  fi
  # The header tests read the install tree. A test of the room install makes it.
  [[ " ${rooms[*]} " != *" headers "* || " ${rooms[*]} " == *" install "* ]] || rooms+=(install)

  scripts/bootstrap.sh test release
  echo "== release: ${rooms[*]}"
  configure release
  for room in "${rooms[@]}"; do
    if [ ! -e "build/release/unittests/$room/CTestTestfile.cmake" ]; then
      echo "scripts/test.sh: this build has no room '$room' (the room gpu needs nvcc)" >&2
      exit 2
    fi
    case $room in
      abi | install) targets+=(all) ;;
      *) targets+=("unittests/$room/all") ;;
    esac
  done
  build release "${targets[@]}"
  mkdir -p build/quick
  printf 'subdirs("%s")\n' "${rooms[@]/#/$PWD/build/release/unittests/}" >build/quick/CTestTestfile.cmake
  exec ctest --test-dir build/quick "${ctest_options[@]}" "$@"
}

variants=(release tsan asan aarch64)
case ${1:-} in
  --quick)
    test_rooms "${@:2}"
    ;;
  --variants)
    read -ra variants <<<"${2:?the names of variants}"
    test_all "${@:3}"
    ;;
  *)
    test_all "$@"
    ;;
esac
