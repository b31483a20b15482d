#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The picture in docs/predecoding.md is that of the logs: picture_of_logs.sh ROOT SCRATCH
# To draw it again: picture_of_logs.sh ROOT SCRATCH, and copy SCRATCH/training.svg.
set -euo pipefail
logs=$1/training/predecoder/logs
mkdir -p "$2"
"$1/training/predecoder/plot_log.py" "$2/training.svg" "seed 2: 4 layers, then 6=$logs/seed_2.jsonl" \
  "base: 7008 steps=$logs/base.jsonl" "64 channels=$logs/channels_64.jsonl" "9 x 9 only=$logs/one_shape.jsonl" \
  "labels as sampled=$logs/raw_labels.jsonl"
cmp "$2/training.svg" "$1/docs/decoders/training.svg"
"$1/training/predecoder/plot_log.py" "$2/none.svg" "no name of a log" 2>"$2/refused" && exit 1
grep -q 'NAME=FILE' "$2/refused"
