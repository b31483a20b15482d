#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs shellcheck on the project's shell scripts; it must find nothing. No pipe may end in grep -q: grep ends early, the
# writer gets SIGPIPE, and with pipefail a match sometimes counts as a failure. Usage: shell.sh <source root>
set -euo pipefail
if ! command -v shellcheck >/dev/null; then
  echo "skipped: shellcheck is not installed"
  exit 77
fi
cd "$1"
mapfile -t scripts < <(find . -path ./build -prune -o -path ./.git -prune -o -name '*.sh' -print | sort)
shellcheck "${scripts[@]}" .ci/run
if grep -nE '[^|]\| *grep -[a-zA-Z]*q' "${scripts[@]}"; then
  echo "a pipe ends in grep -q; write grep ... >/dev/null"
  exit 1
fi
echo "${#scripts[@]} scripts and .ci/run: nothing found"
