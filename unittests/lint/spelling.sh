#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# codespell finds nothing in documents, comments and messages. Usage: spelling.sh <source root>
set -euo pipefail
if ! command -v codespell >/dev/null; then
  echo "skipped: codespell is not installed"
  exit 77
fi
cd "$1"
# dets: Stim's word for detection events. inflight: codespell converts InFlight, a state's name, to lower case. fro: as
# in "to and fro".
skip='./build,./.git,*.dem,*.b8,*.f32,*.safetensors,*.abi,*.meta,*.gz,./unittests/tools/decode/own/*.*.*,LICENSE'
codespell --skip "$skip,__pycache__" --ignore-words-list 'dets,inflight,fro' .
echo "nothing found"
