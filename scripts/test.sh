#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds variants and runs their tests in one ctest run:
#   scripts/test.sh [ctest option...]                               release: all tests; the other variants: the rooms
#                                                                   of their presets, with samples of long sweeps.
#                                                                   Without options a test of flaky_tests.txt that
#                                                                   fails has a second try
#   scripts/test.sh --all [ctest option...]                         all variants, all tests, whole sweeps
#   scripts/test.sh --variants "release tsan" [ctest option...]     the same for these variants
#   scripts/test.sh --quick [room...] [ctest option...]             release only, only these rooms of unittests/
# --all and --variants also fail if a test takes too much processor time: see unittests/long_tests.txt.
# --quick is for a change in progress. It builds only what the tests of these rooms need, in build/release. Without a
# room it takes all rooms except abi, codegen, fuzz, gpu, headers, install and model.
# Installs missing packages. A second run compiles only what has changed. CUDAQ_JOBS: parallel jobs (all cores).
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${CUDAQ_JOBS:-$(nproc)}
ctest_options=(--output-on-failure --no-label-summary --no-tests=error -j "$jobs")

configure() { # variant
  local options=() tools=ON
  case $1 in
    release) # a plug-in for a decoder of another project, to test the interface with it; one variant suffices
      options=(-DCUDAQ_WITH_CHROMOBIUS=AUTO)
      ;;
    aarch64) # its programs need libraries for arm64, which bootstrap.sh fetches if it can
      [ -e "$(scripts/arm64_libraries.sh --folder)" ] || tools=OFF
      options=("-DCUDAQ_REALTIME_BUILD_TOOLS=$tools")
      ;;
  esac
  cmake --preset "$1" --log-level=WARNING "${options[@]}" >/dev/null
}

build() { # variant, targets
  cmake --build "build/$1" -j "$jobs" --target "${@:2}" -- --quiet
  echo "   built after $SECONDS s"
}

# The rooms of a variant's default run, from its preset. No output: all of them, and the examples of the documents.
default_rooms() { # variant
  sed -n 's/^CUDAQ_TEST_DEFAULT_ROOMS:[A-Z]*=\(..*\)/\1/p' "build/$1/CMakeCache.txt" | tr ';' '\n'
}

# Makes one test tree of folders below build/. The variant's prefix makes the names of the tests unique.
test_variants() { # default or all, ctest options
  local extent=$1 variant rooms targets folders=()
  shift
  [ "$extent" != all ] || export CUDAQ_TEST_WHOLE=1
  scripts/bootstrap.sh test "${variants[@]}"
  for variant in "${variants[@]}"; do
    configure "$variant"
    rooms=() targets=(all)
    if [ "$extent" = default ]; then
      mapfile -t rooms < <(default_rooms "$variant")
    fi
    echo "== $variant: ${rooms[*]:-everything}"
    if [ ${#rooms[@]} -eq 0 ]; then
      folders+=("$variant")
    else
      mapfile -t targets < <(printf 'unittests/%s/all\n' "${rooms[@]}")
      folders+=("${rooms[@]/#/$variant/unittests/}")
    fi
    build "$variant" "${targets[@]}"
  done
  local tests times=$PWD/build/processor_times
  tests=$(printf 'subdirs("%s")\n' "${folders[@]}")
  if [ "$extent" = all ]; then
    : >"$times"
    tests="set(CUDAQ_PROCESSOR_TIMES \"$times\")
include(\"$PWD/unittests/processor_time/measured_tests.cmake\")
$tests
cudaq_check_processor_times()"
  fi
  echo "$tests" >build/CTestTestfile.cmake
  if [ "$extent" = all ] || [ $# -gt 0 ]; then
    exec ctest --test-dir build "${ctest_options[@]}" "$@"
  fi
  exec scripts/second_tries.py unittests/flaky_tests.txt ctest --test-dir build "${ctest_options[@]}"
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
    test_variants all "${@:3}"
    ;;
  --all)
    test_variants all "${@:2}"
    ;;
  *)
    test_variants default "$@"
    ;;
esac
