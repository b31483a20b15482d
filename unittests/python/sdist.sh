#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The source archive of the Python package: sdist.sh Files|BareMachine <source directory> <scratch directory>
# Files: the build is configured in the unpacked archive, and sdist_files.py looks for each file that it reads there.
# BareMachine: pip builds a wheel from the archive outside the source tree, with an empty cache. auditwheel makes it one
# for other machines, which is installed in a new environment, where the tests of the package that are in the archive
# run. Only if CUDAQ_TEST_WHOLE is set: it takes minutes.
set -euo pipefail
what=$1 source=$2 scratch=$3
# shellcheck source=unittests/python/packages.sh
source "$(dirname "$0")/packages.sh"
[[ $what == Files || -n ${CUDAQ_TEST_WHOLE:-} ]] || skip "only whole runs (scripts/test.sh --all) build the archive"
find_packages

rm -rf "$scratch"
mkdir -p "$scratch/unpacked"
# What `python -m build --sdist` calls.
hook='import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])'
(cd "$source" && "$python" -c "$hook" "$scratch/dist")
version=$("$source/scripts/version.sh" python)
archive=$scratch/dist/cudaq_realtime-$version.tar.gz
tar -xzf "$archive" -C "$scratch/unpacked" --strip-components=1 "cudaq_realtime-$version"
du -h "$archive"

if [[ $what == Files ]]; then
  # `pip install ./python` builds the same project, and needs the same packages for it.
  requires() { sed -n '/^requires = /,/]$/p' "$1/pyproject.toml"; }
  diff <(requires "$source") <(requires "$source/python")
  hook='import sys; from from_root import prepare_metadata_for_build_wheel as hook; hook(sys.argv[1])'
  (cd "$source/python" && PYTHONPATH=. "$python" -c "$hook" "$scratch/metadata")
  grep "^Version: $version$" "$scratch/metadata/cudaq_realtime-$version.dist-info/METADATA"
  cmake -S "$scratch/unpacked/python" -B "$scratch/build" -G Ninja --no-warn-unused-cli \
    "-DSKBUILD_PROJECT_VERSION=$version" "-DPython_EXECUTABLE=$(command -v "$python")" \
    -DCMAKE_BUILD_TYPE=Release >"$scratch/configure.log"
  grep 'Code of other projects' "$scratch/build/realtime/THIRD_PARTY_NOTICES.txt"
  for inputs in all build.ninja; do
    ninja -C "$scratch/build" -t inputs "$inputs"
  done >"$scratch/inputs"
  exec "$python" "$source/unittests/python/sdist_files.py" "$source" "$scratch/unpacked" "$scratch/build" \
    "$scratch/inputs"
fi

outside=$(mktemp -d)
trap 'rm -rf "$outside"' EXIT
cd "$outside"
python3 -m venv new
mv "$scratch/unpacked/"{unittests,include,benchmarks} . # the tests compile a plug-in, and load a benchmark
pip() { # command, arguments
  timeout 1500 new/bin/pip "$1" --quiet --disable-pip-version-check --no-cache-dir "${@:2}"
}
XDG_CACHE_HOME=$outside/cache pip wheel --no-deps --wheel-dir built "$archive"
make_portable built/*.whl portable
du -h "$wheel"
pip install "${wheel}[test]"
new/bin/python -c 'import cudaq_realtime; print(cudaq_realtime.decoder_names())' | tee names
grep "'pymatching'" names # its sources were downloaded for this build
ls new/lib/python3*/site-packages/cudaq_realtime/licences
PATH=$outside/new/bin:$PATH timeout 300 new/bin/python -m pytest -q -p no:cacheprovider unittests/python
