#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the decoders of this project with the packages that a user would take instead, on the same shots, and writes
# compare_all.md (tables), compare_all.json and compare_all.svg:
#   benchmarks/compare_all.sh [FOLDER] [option of compare_all.py...]      FOLDER: build/compare by default
# Installs the public packages and this project's Python package into FOLDER/venv (a few minutes at the first time). The
# tables of docs/comparison.md are its output. Needs python3 with venv, CMake, GCC and network.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$root/build/compare
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
  folder=$(realpath -m "$1")
  shift
fi
"$root/scripts/bootstrap.sh" build
mkdir -p "$folder"
[ -x "$folder/venv/bin/python" ] || python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "$root" stim==1.16.0 pymatching==2.4.0 ldpc==2.4.1 relay_bp==0.2.1 \
  numpy==2.4.6 scipy matplotlib
# One thread for each library, as for ours.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 RAYON_NUM_THREADS=1
cd "$folder"
exec "$folder/venv/bin/python" "$root/benchmarks/compare_all.py" "$@"
