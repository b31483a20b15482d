#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What contrib has for hardware that no test machine has still compiles, without warnings:
#   compiles.sh gpu_roce|tensorrt <source root> <compiler> <options for the CUDA headers> [<nvcc>]
# gpu_roce: against its doubles. tensorrt: with the headers in $TENSORRT_INCLUDE.
set -euo pipefail
part=$1 root=$2 compiler=$3 nvcc=${5:-}
read -ra cuda <<<"$4"
includes=("-I$root" "-I$root/include")
ccache=(${CUDAQ_TEST_CCACHE:+"$CUDAQ_TEST_CCACHE"})
check=("${ccache[@]}" "$compiler" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
  "${includes[@]}" "${cuda[@]}")
if [ "$part" = gpu_roce ]; then
  double="$root/unittests/contrib/gpu_roce/double"
  printf '#include "%s"\n' "$root"/contrib/gpu_roce/*.cpp "$double"/*.cpp >gpu_roce_unit.cpp
  "${check[@]}" -isystem "$double" gpu_roce_unit.cpp -o gpu_roce_unit.o
  [ -z "$nvcc" ] || "${ccache[@]}" "$nvcc" -std=c++20 -rdc=true -c -ptx -o gpu_roce_unit.ptx "${includes[@]}" \
    "${cuda[@]}" -isystem "$double" "$root/contrib/gpu_roce/gpu_roce_hooks.cu"
  exit
fi
"${check[@]}" "$root/kernels/qec/tensorrt_absent.cpp" "$root/contrib/tensorrt/engine_files.cpp"
if [ -z "${TENSORRT_INCLUDE:-}" ]; then
  echo "skipped: TENSORRT_INCLUDE does not name a folder with TensorRT's headers (NvInfer.h, NvOnnxParser.h)"
  exit 77
fi
"${check[@]}" -isystem "$TENSORRT_INCLUDE" "$root"/contrib/tensorrt/*.cpp
echo "compiled against $TENSORRT_INCLUDE"
