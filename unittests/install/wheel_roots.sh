#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Wheels do their work in bare roots of Debian 12 and 13, with their Python and nothing else of this project or of PyPI
# but numpy: wheel_roots.sh WHEELS SCRATCH PROCESSOR...     WHEELS: a folder of scripts/wheels.sh; x86_64, aarch64
# A root is made of Debian's packages, which are unpacked, not configured; proot shows it to the programs, those of
# another processor by qemu-user. Nothing is mounted, registered or installed, and no privileges are needed. Debian 12
# tries the wheel of 3.11, Debian 13 (3.13) the one of the stable ABI. SCRATCH keeps roots and numpy for the next time.
set -euo pipefail
wheels=$(realpath "$1") scratch=$(realpath -m "$2")
source=$(cd "$(dirname "$0")/../.." && pwd)

unpack() { # suite, architecture of Debian, folder
  local work=$3.work package link
  local packages=(python3 python3-venv libstdc++6 dash coreutils)
  rm -rf "$work"
  mkdir -p "$work"/{lists/partial,archives/partial,root}
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $1 main" \
    >"$work/sources"
  local apt=(-qq -o "Dir::State::lists=$work/lists" -o Dir::State::status=/dev/null -o "Dir::Cache=$work"
    -o "Dir::Etc::SourceList=$work/sources" -o Dir::Etc::SourceParts=/dev/null -o "APT::Architecture=$2"
    -o "APT::Architectures=$2" -o APT::Install-Recommends=false -o APT::Sandbox::User=)
  apt-get "${apt[@]}" update
  mapfile -t packages < <(apt-get "${apt[@]}" install --simulate "${packages[@]}" | sed -n 's/^Inst \([^ ]*\) .*/\1/p')
  (cd "$work" && apt-get "${apt[@]}" download "${packages[@]}")
  for package in "$work"/*.deb; do
    dpkg-deb --extract "$package" "$work/root"
  done
  for link in bin lib lib64 sbin; do # which a package of Debian 13 expects, and no package has
    [[ -e $work/root/$link || ! -e $work/root/usr/$link ]] || ln -s "usr/$link" "$work/root/$link"
  done
  mkdir -p "$work"/root/{tmp,wheels,numpy,source}
  mv "$work/root" "$3"
  rm -rf "$work"
}

try() { # processor, suite, version of its Python, wheel
  local root=$scratch/$2-$1 numpy=$scratch/numpy-$3-$1 architecture=amd64 emulator=() pip
  if [[ $1 != "$(uname -m)" ]]; then # with a quick signature of pointers: with Arm's, Debian 13 takes 5 times as long
    emulator=(-q "qemu-$1 -cpu max,pauth-impdef=on")
  fi
  [[ $1 == x86_64 ]] || architecture=arm64
  [[ -d $root ]] || unpack "$2" "$architecture" "$root"
  if ! compgen -G "$numpy/*.whl" >/dev/null; then
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version "$3" \
      --platform "manylinux2014_$1" --platform "manylinux_2_28_$1" --dest "$numpy" numpy
  fi
  in_root() { # what is typed on such a system. Names of hosts are of no use there.
    env -i PATH=/try/bin:/usr/bin:/bin HOME=/tmp "$(command -v proot)" -r "$root" "${emulator[@]}" -b /proc -b /dev \
      -b /etc/ssl -b "$wheels:/wheels" -b "$numpy:/numpy" -b "$source/unittests/install:/source" -w /tmp "$@"
  }
  rm -rf "$root/try"
  in_root python3 -m venv --without-pip /try # Debian's own pip does, because to unpack it takes minutes under qemu
  pip=$(cd "$root" && compgen -G "usr/share/python-wheels/pip-*.whl")
  TIMEFORMAT="pip installed wheel and numpy in %R s (user %U s, system %S s)"
  time in_root env "PYTHONPATH=/$pip" python -m pip install --quiet --disable-pip-version-check --no-index \
    --find-links /numpy "/wheels/$4"
  in_root python /source/wheel_trial.py "$1"
  echo "$4: tried on $2, $1${emulator[0]:+ under qemu}"
}

mkdir -p "$scratch"
version=$("$source/scripts/version.sh" python)
for processor in "${@:3}"; do
  for trial in "bookworm 3.11 cp311-cp311" "trixie 3.13 cp312-abi3"; do
    read -r suite python tag <<<"$trial"
    wheel=$(cd "$wheels" && compgen -G "cudaq_realtime-$version-$tag-*_$processor.whl") || {
      echo "wheel_roots.sh: no wheel $tag for $processor in $wheels" >&2
      exit 1
    }
    try "$processor" "$suite" "$python" "$wheel"
  done
done
