#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel with the installed libraries, installs it outside the source tree, and runs its tests, its pages
# and the notebooks there. Usage: wheel.sh <source directory> <installed prefix> <scratch directory> [lowest]
# lowest: the lowest Python, and the lowest version of each package, that pyproject.toml declares.
set -euo pipefail
source=$1 prefix=$2 scratch=$3 versions=${4:-}
# shellcheck source=unittests/python/packages.sh
source "$(dirname "$0")/packages.sh"

if [[ $versions == lowest ]]; then
  [[ -n ${CUDAQ_TEST_WHOLE:-} ]] || skip "only whole runs (scripts/test.sh --all) take the lowest versions"
  number=$(sed -n 's/^requires-python = ">=\(.*\)"$/\1/p' "$source/pyproject.toml")
  mapfile -t packages < <(grep -oE '"[a-z-]+>=[0-9.]+"' "$source/pyproject.toml" | tr -d '"' | sed 's/>=/==/')
  for python in "python$number" "$HOME/.pyenv/versions/$number".*/bin/python none; do
    ! "$python" -c 'import ensurepip, venv' 2>/dev/null || break
  done
  [[ $python != none ]] || skip "Python $number, the lowest version, is not installed"
  cache+=-lowest
  [[ -x $cache/bin/python ]] || "$python" -m venv "$cache"
  python=$cache/bin/python
  timeout 300 "$python" -m pip install --quiet --disable-pip-version-check "${packages[@]}" >"$cache/pip.log" 2>&1 ||
    skip "pip did not install ${packages[*]}: $(tail -n 1 "$cache/pip.log")"
else
  find_packages
fi

programs=()
if [[ -x $prefix/bin/cudaq-realtime && -e $prefix/lib/libcudaq-realtime-bridge-udp.so ]]; then # not in lib64
  programs=(--config-settings cmake.define.CUDAQ_WHEEL_PROGRAMS=ON)
fi
rm -rf "$scratch"
mkdir -p "$scratch"
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation "$source" \
  --wheel-dir "$scratch/dist" --config-settings "build-dir=$scratch/build" "${programs[@]}" \
  --config-settings "cmake.define.CUDAQ_REALTIME_PREFIX=$prefix"
wheel=$(find "$scratch/dist" -name 'cudaq_realtime-*.whl')
version=$("$source/scripts/version.sh" python)
[[ $(basename "$wheel") == cudaq_realtime-"$version"-* ]] || {
  echo "the wheel is $wheel, the version $version"
  exit 1
}
if [[ $versions != lowest ]]; then
  # The program of this prefix may need libraries of the system; that of scripts/wheels.sh contains them.
  make_portable "$wheel" "$scratch/portable" --exclude 'libfmt.so.*' --exclude 'libyaml-cpp.so.*'
fi
du -h "$wheel"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$scratch/site" "$wheel"

for licence in LICENSE THIRD_PARTY_NOTICES.txt nanobind.txt; do
  grep -iE 'licen|redistribution' "$scratch/site/cudaq_realtime/licences/$licence" >/dev/null || {
    echo "the wheel has no $licence"
    exit 1
  }
done

# The libraries of the wheel are found beside the module, and nowhere else first.
find "$scratch/site/cudaq_realtime" -name '*.so*' -o -name cudaq-realtime -type f | while read -r file; do
  # shellcheck disable=SC2016
  if readelf -d "$file" | grep -E 'RPATH|RUNPATH' | grep -v 'path: \[$ORIGIN'; then
    echo "$file looks for libraries in the folders above"
    exit 1
  fi
done

cd "$scratch"
export PYTHONPATH=$scratch/site PYTHONDONTWRITEBYTECODE=1
export PATH=$scratch/site/bin:$PATH # with the server of the client's tests
unset LD_LIBRARY_PATH
if ((${#programs[@]})); then
  cudaq-realtime demo --config d3 --shots 200 >demo.txt # its shots and libraries are in the folder of the package
fi
timeout 300 "$python" -m pytest -q -p no:cacheprovider "$source/unittests/python"
[[ $versions != lowest ]] || exit 0
timeout 120 "$python" -m mypy --strict --ignore-missing-imports --allow-subclassing-any --exclude /share/ \
  --cache-dir "$scratch/mypy" -p cudaq_realtime
pages=("$source"/docs/{packages/python.md,notebooks/*.ipynb}
  "$source"/docs/tutorials/{heralded_erasure,leakage,own_experiment,own_stream,soft_readout}.md)
if readelf -d "$prefix/bin/cudaq-realtime" 2>/dev/null | grep 'yaml-cpp' >/dev/null; then # it reads configurations
  pages+=("$source/docs/packages/python_client.md")
fi
for page in "${pages[@]}"; do
  timeout 120 "$python" "$source/unittests/python/run_page.py" "$page"
done
