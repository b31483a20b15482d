#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The TensorRT engine compiles without warnings with the headers in $TENSORRT_INCLUDE, and its replacement without them.
# Usage: tensorrt_compiles.sh <source root> <compiler> <options for the CUDA headers>
set -euo pipefail
root=$1 compiler=$2
read -ra cuda <<<"$3"
check=("$compiler" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror "-I$root"
  "-I$root/include" "${cuda[@]}")
"${check[@]}" "$root/kernels/qec/tensorrt_absent.cpp"
if [ -z "${TENSORRT_INCLUDE:-}" ]; then
  echo "skipped: TENSORRT_INCLUDE does not name a folder with TensorRT's headers (NvInfer.h, NvOnnxParser.h)"
  exit 77
fi
"${check[@]}" -isystem "$TENSORRT_INCLUDE" "$root/kernels/qec/tensorrt_engine.cpp"
echo "compiled against $TENSORRT_INCLUDE"
