#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/release_check.sh in its fast mode: release_check.sh SOURCE SCRATCH. It passes on the source tree; in a small
# copy with a commit, a signed tag and wheels of its own it finds each fault that is planted there.
set -euo pipefail
source=$1 scratch=$2
for tool in git ssh-keygen; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed" && exit 77; }
done
version=$("$source/scripts/version.sh") of_python=$("$source/scripts/version.sh" python)
rm -rf "$scratch"
mkdir -p "$scratch"
scratch=$(realpath "$scratch")

expect() { # status, texts that are in the output; it is run in the working directory
  local status=0 text
  scripts/release_check.sh --fast --folder "$scratch/out" --key "$scratch/key" >"$scratch/said" 2>&1 || status=$?
  for text in "${@:2}"; do
    grep -F "$text" "$scratch/said" >/dev/null || status="$status, without '$text'"
  done
  [[ $status == "$1" ]] || { cat "$scratch/said" && echo "status $status, expected $1" && exit 1; }
}

ssh-keygen -q -t ed25519 -N '' -C '' -f "$scratch/key"
cd "$source"
expect 0 "ok      version" "ok      the lists" "ok      the sums are signed"

export GIT_CONFIG_GLOBAL=$scratch/gitconfig
cat >"$GIT_CONFIG_GLOBAL" <<G
[user]
name = Release
email = release@localhost
signingKey = $scratch/key
[gpg]
format = ssh
[gpg "ssh"]
allowedSignersFile = $scratch/allowed
G
echo "release@localhost $(cut -d ' ' -f 1,2 "$scratch/key.pub")" >"$scratch/allowed"
mapfile -t needed < <(find include lib kernels unittests/abi -name '*.map' -o -name '*.inc' -o -path 'include/*.h')
mkdir "$scratch/copy"
cp --parents "${needed[@]}" CITATION.cff README.md cmake/{CudaqPackages.cmake,conda/recipe.yaml} docs/changelog.md \
  docs/guide/frozen.md docs/packages/{packages,python}.md scripts/{release_check,version}.sh \
  unittests/lint/{changelog,tree}.py "$scratch/copy"
cd "$scratch/copy"
git init --quiet
git add . && git commit --quiet --message "Release $version"
git tag --sign "v$version" --message "Release"
wheels=$scratch/out/wheels/dist
mkdir -p "$wheels"
wheel=cudaq_realtime-$of_python-cp312-abi3-manylinux_2_34_x86_64.whl
make_wheel() { (cd "$wheels" && rm -f ./* && echo wheel >"$1" && sha256sum "$1" >SHA256SUMS); }
make_wheel "$wheel"
expect 0 "ok      everything is committed" "ok      the tag v$version" "ok      the archive" "ok      names and sums"
(
  cd "$scratch/out/dist" && [[ -e $wheel && -e cudaq-realtime-$version.tar.gz ]]
  echo "release $(cat "$scratch/key.pub")" >../signers # as docs/packages/releasing.md says
  ssh-keygen -Y verify -f ../signers -I release -n file -s SHA256SUMS.sig <SHA256SUMS
  sha256sum --check --quiet SHA256SUMS
)

echo other >>"$wheels/$wheel"
expect 1 "FAILED  names and sums"
make_wheel "cudaq_realtime-$of_python-cp39-cp39-manylinux_2_35_x86_64.whl"
expect 1 "needs a glibc newer than 2.34"
make_wheel "$wheel"
sed -i 's/^version: .*/version: 99.0.0/' CITATION.cff
expect 1 "FAILED  version" "open    files are changed"
sed -i 's/libcudaq-realtime[0-9]/libcudaq-realtime99/' docs/packages/packages.md
sed -i 's/cudaq_realtime-[0-9]/cudaq_realtime-99/' docs/packages/python.md
expect 1 "FAILED  pages" "libcudaq-realtime99" "cudaq_realtime-99"
git commit --quiet --all --message "Another version"
expect 1 "is another commit"
git checkout --quiet "v$version"
rm lib/cudaq-realtime.map
expect 1 "FAILED  the lists that docs/guide/frozen.md names are there" "cudaq-realtime.map, which is not there"
git checkout --quiet .
sed -i 's/^CUDAQ_REALTIME_0.1 /CUDAQ_REALTIME_99.1 /' lib/cudaq-realtime.map
expect 1 "CUDAQ_REALTIME_99.1 is newer than $version"
git checkout --quiet .
expect 0 "open    the packages name no maintainer"
sed -i 's/<maintainers@localhost>/<owner@example.org>/' cmake/CudaqPackages.cmake
expect 0 "ok      the packages name a maintainer"
rm cmake/CudaqPackages.cmake
expect 1 "FAILED  cmake/CudaqPackages.cmake has no"
echo "each planted fault is found"
