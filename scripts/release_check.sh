#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks each step of docs/packages/releasing.md that a program can check, and says what a person still does:
#   scripts/release_check.sh [--fast] [--folder DIR] [--key FILE]
# --fast builds nothing: it reads the sources, the commit, the tag, and the wheels that DIR/wheels has. Without it the
# tests of what is frozen and of the packages run (scripts/test.sh --quick), the ABI is recorded again, and what is
# released is made in DIR/dist (build/release_check/dist): the archive of the sources, the Debian packages, their bill
# of materials, the wheels and their source archive, the sums.
# --key: a private SSH key; it signs the sums, and the signature is verified. Nothing is published, and no tag is made.
# Each line begins with ok, FAILED, open (a step that is not done yet), or skipped. Status: 0, 1 if a line FAILED, 2 for
# wrong use.
set -euo pipefail
cd "$(dirname "$0")/.."
fast=no folder=$PWD/build/release_check key=
while (($#)); do
  case $1 in
    --fast)
      fast=yes && shift
      ;;
    --folder | --key)
      [[ ${2:-} ]] || { echo "release_check.sh: $1 needs a value" >&2 && exit 2; }
      if [[ $1 == --key ]]; then key=$(realpath "$2"); else folder=$(realpath -m "$2"); fi
      shift 2
      ;;
    *)
      echo "release_check.sh: unknown option $1: --fast, --folder DIR, --key FILE" >&2
      exit 2
      ;;
  esac
done
[[ -z $key || -r $key ]] || { echo "release_check.sh: the key $key cannot be read" >&2 && exit 2; }
failures=0
log=$folder/log.txt
rm -rf "${folder:?}/dist"
mkdir -p "$folder/dist"
: >"$log"

line() { # result, text
  printf '%-8s%s\n' "$1" "$2"
  [[ $1 != FAILED ]] || failures=$((failures + 1))
}

# ok or FAILED, by the status of a command; the last lines that it printed if it fails.
check() { # text, command...
  local status
  printf '== %s: %s\n' "$1" "${*:2}" >>"$log"
  set +e # in a condition bash would go on after a command that failed
  (set -e && "${@:2}") >"$folder/last" 2>&1
  status=$?
  set -e
  if ((status == 0)); then
    line ok "$1"
  else
    line FAILED "$1: ${*:2}"
    tail -n 5 "$folder/last" | sed 's/^/        | /'
  fi
  cat "$folder/last" >>"$log"
}

version=$(scripts/version.sh) of_python=$(scripts/version.sh python)
name=cudaq-realtime-$version tag=v$version
in_git=no
! git rev-parse --verify --quiet HEAD >/dev/null 2>&1 || in_git=yes

versions_agree() {
  grep -x "version: $version" CITATION.cff && grep -x "  version: \"$of_python\"" cmake/conda/recipe.yaml
}

# Names with a version that a reader copies from a page: packages, sonames, wheels, find_package.
pages_name_this_version() {
  local major=${version%%.*} named other
  named=$(find README.md docs -name '*.md' ! -name changelog.md -exec grep -HnoE "libcudaq-realtime[0-9]+\
|libcudaq[a-z-]+\.so\.[0-9]+|cudaq_realtime-[0-9]+\.[0-9]+\.[0-9]+([a-z]+[0-9]+)?\
|find_package\(cudaq-realtime [0-9]+" {} + || true)
  other=$(grep -vE ":(libcudaq-realtime$major|libcudaq[a-z-]+\.so\.$major|cudaq_realtime-$of_python\
|find_package\(cudaq-realtime $major)$" <<<"$named" || true)
  [[ $named && -z $other ]] || { echo "${other:-no page has such a name}" && return 1; }
}

newest_node_is_of_this_version() {
  local map node
  for map in $(git ls-files '*.map' 2>/dev/null || find lib -name '*.map'); do
    node=$(sed -nE 's/^([A-Z_]+_[0-9]+\.[0-9]+) \{.*/\1/p' "$map" | tail -n 1)
    [[ -z $node ]] || printf '%s\n' "${node##*_}" "${version%.*}" | sort --version-sort --check || {
      echo "$map: $node is newer than $version"
      return 1
    }
  done
}

frozen_lists_are_there() {
  grep -oE '[a-z/_-]+\.(map|inc|h)\b' docs/guide/frozen.md | while read -r list; do
    [[ $(find include lib kernels unittests/abi -name "$(basename "$list")") ]] || {
      echo "docs/guide/frozen.md names $list, which is not there"
      return 1
    }
  done
}

sources() { # git's options; neither the machine's settings of git nor its umask matter
  git "$@" -c core.autocrlf=false -c tar.umask=0022 archive --prefix="$name/" "$(git rev-parse HEAD)"
}

# The archive depends on nothing but the commit: it has each committed file, and a clone on a machine with other
# settings gives the same bytes.
archive_is_reproducible() {
  local clone=$folder/clone archive=$folder/dist/$name.tar.gz
  rm -rf "$clone"
  git clone --quiet --bare --shared . "$clone"
  sources >"$folder/sources.tar"
  printf '[core]\nautocrlf = true\n[tar]\numask = 0077\n' >"$folder/other.gitconfig"
  TZ=Asia/Tokyo GIT_CONFIG_GLOBAL=$folder/other.gitconfig sources -C "$clone" | cmp - "$folder/sources.tar"
  tar --list --file "$folder/sources.tar" | grep -v '/$' | sed "s|^$name/||" | sort >"$folder/in_archive"
  git -c core.quotePath=off ls-tree -r --name-only HEAD | sort | diff - "$folder/in_archive"
  gzip --no-name <"$folder/sources.tar" >"$archive"
  rm -rf "$clone" "$folder/sources.tar" "$folder/in_archive"
}

wheels_have_their_names() {
  local wheel
  for wheel in "$folder"/wheels/dist/*.whl; do
    if ! [[ ${wheel##*/} =~ ^cudaq_realtime-$of_python-cp3[0-9]+-(cp3[0-9]+|abi3)-.*manylinux_2_([0-9]+)_ ]] ||
      ((BASH_REMATCH[2] > 34)); then
      echo "${wheel##*/} is of another version, or needs a glibc newer than 2.34"
      return 1
    fi
  done
  (cd "$folder/wheels/dist" && sha256sum --check --quiet SHA256SUMS)
}

signature_verifies() {
  local sums=$folder/dist/SHA256SUMS
  rm -f "$sums.sig"
  ssh-keygen -Y sign -f "$key" -n file "$sums"
  printf 'release %s\n' "$(ssh-keygen -y -f "$key")" >"$folder/signers"
  ssh-keygen -Y verify -f "$folder/signers" -I release -n file -s "$sums.sig" <"$sums"
}

tag_is_signed_and_of_this_commit() {
  [[ $(git rev-parse "$tag^{commit}") == $(git rev-parse HEAD) ]] || { echo "$tag is another commit" && return 1; }
  git verify-tag "$tag"
}

# With the options of the preset, so that ccache has the objects of the tests; without plug-ins of other projects.
debian_packages() {
  cmake --preset release -B build/packages -DCUDAQ_REALTIME_BUILD_TESTS=OFF -DCUDAQ_REALTIME_BUILD_BENCHMARKS=ON
  cmake --build build/packages --parallel "${CUDAQ_JOBS:-$(nproc)}"
  rm -rf "$folder/packages"
  (cd build/packages && cpack -G DEB -B "$folder/packages")
  cp "$folder"/packages/*.deb "$folder/dist/"
}

# What `python -m build --sdist` does, with the tools that scripts/wheels.sh has fetched.
source_archive_of_wheels() {
  local tools
  tools=$(compgen -G "$folder/wheels/make-*/bin/python" | head -n 1)
  "$tools" -c 'import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])' "$folder/dist"
}

bill_of_materials() {
  local prefix=$folder/prefix bill=$folder/dist/$name.spdx.json
  rm -rf "$prefix"
  cmake --install build/packages --prefix "$prefix"
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) scripts/sbom.py "$prefix" "$bill"
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) scripts/sbom.py "$prefix" | cmp - "$bill"
}

abi_is_recorded() {
  scripts/update-abi.sh && git diff --exit-code --stat -- unittests/abi
}

echo "release $version (include/cudaq/realtime/version.h)"
check "version in CITATION.cff and in the recipe of conda (step 3)" versions_agree
check "pages name the packages and libraries of this version (step 3)" pages_name_this_version
check "form of the changelog (step 4)" python3 unittests/lint/changelog.py .
if grep -E "^## \[${version//./\\.}\] - " docs/changelog.md >/dev/null; then
  line ok "the changelog has the section [$version] (step 4)"
else
  line open "the changelog has no section [$version] yet (step 4)"
fi
if ! contact=$(grep -Es '^set\(CUDAQ_PACKAGE_CONTACT "[^"]+ <[^">]+>" CACHE' cmake/CudaqPackages.cmake); then
  line FAILED "cmake/CudaqPackages.cmake has no \"Name <mail>\" as the default of CUDAQ_PACKAGE_CONTACT"
elif [[ $contact == *maintainers@localhost* ]]; then
  line open "the packages name no maintainer: the default of CUDAQ_PACKAGE_CONTACT in cmake/CudaqPackages.cmake (the\
 page's table)"
else
  line ok "the packages name a maintainer"
fi
check "no map has a version node newer than $version (step 5)" newest_node_is_of_this_version
check "the lists that docs/guide/frozen.md names are there" frozen_lists_are_there
if [[ $in_git == no ]]; then
  line skipped "archive, tag, state of the tree: this is no git repository"
else
  if [[ -z $(git status --porcelain) ]]; then
    line ok "everything is committed (step 6)"
  else
    line open "files are changed and not committed: what follows is of the last commit (step 6)"
  fi
  if ! git rev-parse --verify --quiet "refs/tags/$tag" >/dev/null; then
    line open "there is no tag $tag (step 7)"
  else
    check "the tag $tag is signed and of this commit (step 7)" tag_is_signed_and_of_this_commit
  fi
  check "the archive of all sources has the same bytes from a clone (step 8)" archive_is_reproducible
fi
if [[ $fast == yes ]]; then
  line skipped "tests of what is frozen and of packages, ABI, packages, bill of materials: --fast builds nothing"
else
  check "tests of the interface, headers, packages and texts" scripts/test.sh --quick abi headers install lint
  check "the recorded ABI is that of the build (step 5)" abi_is_recorded
  check "the Debian packages (step 8)" debian_packages
  check "the bill of materials, twice the same bytes (step 8)" bill_of_materials
  check "wheels are built, and each is tried (step 8)" scripts/wheels.sh --roots --folder "$folder/wheels"
  check "the source archive of the wheels (step 8)" source_archive_of_wheels
fi
if compgen -G "$folder/wheels/dist/*.whl" >/dev/null; then
  check "names and sums of the wheels (step 8)" wheels_have_their_names
  cp "$folder"/wheels/dist/*.whl "$folder/dist/"
else
  line open "no wheels in $folder/wheels/dist (step 8): scripts/wheels.sh --folder $folder/wheels"
fi
(cd "$folder/dist" && rm -f SHA256SUMS SHA256SUMS.sig && find . -type f ! -name 'SHA256SUMS*' -printf '%P\0' |
  sort --zero-terminated | xargs --null --no-run-if-empty sha256sum >"$folder/sums" && mv "$folder/sums" SHA256SUMS)
if [[ -z $key ]]; then
  line open "the sums are not signed: --key FILE (step 8)"
else
  check "the sums are signed, and the signature verifies (step 8)" signature_verifies
fi
cat <<'P'

A person still (docs/packages/releasing.md has each step):
  1  has scripts/test.sh --all pass in an empty clone, and the room gpu on a machine with a GPU
  2  repeats the measurements of docs/performance.md
  5  reads each new name of the maps: it is kept for years
  9  tries the packages on a machine that has nothing of this project
  10 publishes: owners, the name, accounts and keys of the page's last table
P
((failures == 0)) || { echo "$failures lines FAILED; all output is in $log" && exit 1; }
