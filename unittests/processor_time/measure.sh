#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a test and appends a line to a file: measure.sh FILE NAME COMMAND...
# The line is "processor_time SECONDS SECONDS NAME": those of user code and of the system, in the test and in all
# processes that it has waited for.
times=$1 name=$2
shift 2
TIMEFORMAT="processor_time %U %S $name"
{ time "$@" 2>&3 3>&-; } 3>&2 2>>"$times"
