#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/second_tries.awk on runs of ctest: second_tries.sh PROJECT_DIR
set -euo pipefail
project=$1

# A run of five tests, of which the first ones fail at their first try and print this.
run_with() { # number of failing tests, what they print
  local k
  for k in 1 2 3 4 5; do
    if [ "$k" -le "$1" ]; then
      printf '%s/5 Test #%s: Room.Test%s/0 ....***Failed    0.00 sec\n%s\n' "$k" "$k" "$k" "$2"
      printf '    Test #%s: Room.Test%s/0 ....   Passed    0.00 sec\n' "$k" "$k"
    else
      printf '%s/5 Test #%s: Room.Test%s ....***Skipped   0.00 sec\n' "$k" "$k" "$k"
    fi
  done
  printf '\n100%% tests passed, 0 tests failed out of 5\n\nTotal Test time (real) =   1.00 sec\n'
}

expect() { # exit status, lines that it adds, number of failing tests, what they print
  local status=0 added
  run_with "$3" "$4" >given
  awk -v most=3 -f "$project/scripts/second_tries.awk" given >printed || status=$?
  diff given printed >changes || true
  added=$(sed -n 's/^> //p' changes | sort)
  if [ "$status" -ne "$1" ] || [ "$added" != "$2" ] || grep '^<' changes; then
    printf 'status %s, not %s; %s tests with "%s" add:\n%s\n' "$status" "$1" "$3" "$4" "$added"
    exit 1
  fi
}

cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
second="Passed at the second try only: Room.Test"
expect 0 "" 0 ""
expect 0 "${second}1/0" 1 "Expected equality of these values:"
expect 0 "${second}1/0
${second}2/0
${second}3/0" 3 "late"
expect 1 "4 tests passed at the second try only: more than 3, this run fails
${second}1/0
${second}2/0
${second}3/0
${second}4/0" 4 "late"
for report in "WARNING: ThreadSanitizer: data race (pid=1)" "==1==ERROR: AddressSanitizer: heap-use-after-free" \
  "==1==ERROR: LeakSanitizer: detected memory leaks" "lib/a.cpp:1:2: runtime error: signed integer overflow"; do
  expect 1 "${second}1/0, but a sanitizer reported: this run fails" 1 "$report"
done
