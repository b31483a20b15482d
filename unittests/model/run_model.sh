#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Verifies one configuration of a Promela model with spin and compares the verdict with the expected one.
#
#   run_model.sh --model FILE --out DIR --expect pass|fail [options] [-- -DMACRO...]
#
#   --because TEXT   with fail: the source line of the violated assertion (or spin's message, such as "invalid end
#                    state") must contain TEXT. If TEXT names an assertion, the search ignores invalid end states, so
#                    that it reaches the assertion.
#   --sample M=V     unless CUDAQ_TEST_WHOLE is set, the macro M of the model has at most the value V: a smaller search
#   --live           also search for executions that never end (the models have no progress labels, so every cycle
#                    counts)
#   --depth N        longest path (default 100000 steps); if a path is longer, the run fails
#   --mem MIB        memory limit (default 1500); reaching it is an error
#   --timeout S      limit for the search in seconds (default 120)
#   --spin PATH, --cc PATH
#
# Exit status: 0 as expected, 1 not as expected or not verified, 2 wrong usage, 77 skipped (spin or the compiler is
# missing). The script writes only into DIR.

model="" out="" expect="" because="" sample="" live="" depth=100000 mem=1500 limit=120 spin=spin cc=cc

usage() { echo "run_model.sh: $1 (see the head of the script)" >&2; exit 2; }
skip() { echo "SKIP: $1"; exit 77; }
fail() {
  echo "FAIL: $1" >&2
  echo "  model: $model  flags: $flags  files: $out" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
    --live) live=1; shift; continue ;;
    --) shift; break ;;
  esac
  [ $# -ge 2 ] || usage "$1 lacks its value"
  case $1 in
    --model) model=$2 ;; --out) out=$2 ;; --expect) expect=$2 ;; --because) because=$2 ;; --depth) depth=$2 ;;
    --sample) sample=$2 ;; --mem) mem=$2 ;; --timeout) limit=$2 ;; --spin) spin=$2 ;; --cc) cc=$2 ;;
    *) usage "unknown option $1" ;;
  esac
  shift 2
done
if [ -n "$sample" ] && [ -z "${CUDAQ_TEST_WHOLE-}" ]; then
  name=${sample%%=*}
  for flag in "$@"; do
    shift
    case $flag in
      -D"$name"=*) [ "${flag#*=}" -ge "${sample#*=}" ] || sample=$flag ;;
      *) set -- "$@" "$flag" ;;
    esac
  done
  set -- "$@" "-D${sample#-D}"
fi
flags="$*"
case $expect in pass | fail) ;; *) usage "--expect must be pass or fail, not '$expect'" ;; esac
[ -r "$model" ] || usage "cannot read the model '$model'"
[ -n "$out" ] || usage "--out is missing"

command -v "$spin" >/dev/null 2>&1 ||
  skip "spin was not found ('$spin'); Debian and Ubuntu: apt-get install spin, then configure again"
command -v "$cc" >/dev/null 2>&1 || skip "no C compiler for spin's verifier ('$cc')"

for flag in "$@"; do # a misspelt switch would verify another configuration without an error
  name=${flag#-D}
  grep -q -w -e "${name%%=*}" "$model" || usage "the model knows no switch '$flag'"
done

case $model in /*) ;; *) model=$PWD/$model ;; esac
mkdir -p "$out" || fail "cannot make the output directory"
cd "$out" || fail "cannot enter the output directory"
rm -f pan pan.* ./*.trail ./*.log

"$spin" -P"$cc -E -x c" "$@" -a "$model" >spin.log 2>&1 || { cat spin.log >&2; fail "spin rejects the model"; }
if grep -q -i 'error' spin.log; then cat spin.log >&2; fail "spin rejects the model"; fi

# The search for cycles and the search for bad states need different verifiers.
if [ -n "$live" ]; then kind=-DNP pan_options=-l; else kind=-DSAFETY pan_options=""; fi
case $because in '' | 'invalid end state' | 'non-progress cycle') ;; *) pan_options="$pan_options -E" ;; esac
if [ "$expect" = pass ]; then level=-O1; else level=-O0; fi # for a mutant, the compilation takes longer than the search
{ ${CUDAQ_TEST_CCACHE:+"$CUDAQ_TEST_CCACHE"} "$cc" $level -w $kind -DCOLLAPSE -DMEMLIM="$mem" -c pan.c &&
  "$cc" -o pan pan.o; } >cc.log 2>&1 ||
  { cat cc.log >&2; fail "the verifier does not compile"; }

# shellcheck disable=SC2086  # the options are separate words
timeout "$limit" ./pan -m"$depth" $pan_options >pan.log 2>&1
status=$?
[ $status -ne 124 ] || fail "the search took longer than $limit s"
incomplete='max search depth too small|search depth was exceeded|out of memory|reached -DMEMLIM|VECTORSZ|aborting'
problem=$(grep -i -E "$incomplete" pan.log | head -n 1)
[ -z "$problem" ] || fail "the search is incomplete: $problem"
errors=$(sed -n 's/.*errors: \([0-9][0-9]*\).*/\1/p' pan.log | head -n 1)
states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log | head -n 1)
if [ -z "$errors" ] || [ -z "$states" ]; then
  tail -n 20 pan.log >&2
  fail "the verifier gave no verdict (exit status $status)"
fi
verdict=$(grep -E '^pan:1: (assertion violated|invalid end state|non-progress cycle)' pan.log | head -n 1)

# Replays the counterexample and prints the source line of the violated assertion. The line names the violated rule.
violated_line() {
  trail=$(basename "$model").trail
  [ -f "$trail" ] || return
  "$spin" -P"$cc -E -x c" "$@" -t -p -k "$trail" "$model" >trail.log 2>&1
  line=$(sed -n 's/^spin: .*:\([0-9][0-9]*\), Error: assertion violated.*/\1/p' trail.log | head -n 1)
  [ -n "$line" ] && sed -n "${line}s/^ *//p" "$model"
}

if [ "$expect" = pass ]; then
  if [ "$errors" -ne 0 ]; then
    echo "  $verdict" >&2
    echo "  $(violated_line "$@")" >&2
    fail "the model is violated; the counterexample is in trail.log"
  fi
  if ! grep -q 'errors: 0' pan.log || grep -q 'Search not completed' pan.log; then fail "the search is incomplete"; fi
  echo "PASS: $states states, no violation. $flags"
  exit 0
fi

[ "$errors" -gt 0 ] || fail "the mutant survives: $states states without a violation"
[ -n "$verdict" ] || { tail -n 20 pan.log >&2; fail "an error other than a violated property"; }
line=$(violated_line "$@")
case "$verdict $line" in
  *"$because"*) ;;
  *) fail "violated as expected, but not by '$because': $verdict $line" ;;
esac
echo "PASS: fails as it must: $verdict"
[ -z "$line" ] || echo "  $line"
exit 0
