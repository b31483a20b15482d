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
# in "to and fro". nempty: a function of Promela. caf: a word that ends in a byte that is not UTF-8. Newer versions of
# codespell know the last two as misspellings.
skip='./build,./.git,*.dem,*.b8,*.f32,*.safetensors,*.abi,*.meta,*.gz,./unittests/tools/decode/own/*.*.*,LICENSE'
codespell --skip "$skip,__pycache__" --ignore-words-list 'dets,inflight,fro,nempty,caf' .
echo "nothing found"
