#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the probe to assembly and checks the code of an acquire load and of a release store.

usage: check.py x86_64|aarch64|sm_90 <assembly file to write> <compiler> <argument>...
"""
import re
import sys

from compiled import compiled

# Per machine: what each function must contain, and what none of these functions may contain.
EXPECT = {
    "x86_64": {"probe_load_acquire": r"\bmovq?\s+\(%rdi\)", "probe_store_release": r"\bmovq?\s+%rsi, \(%rdi\)"},
    "aarch64": {"probe_load_acquire": r"\bldap?r\b", "probe_store_release": r"\bstlr\b"},
    "sm_90": {"probe_load_acquire": r"\bld\.acquire\.sys\.\w*64", "probe_store_release": r"\bst\.release\.sys\.\w*64",
              "probe_turn_kernel": r"\bld\.acquire\.sys\.(?s:.*)\bst\.release\.sys\."},
}
FORBID = {
    "x86_64": r"\b(?:lock|xchg\w*|mfence|call)\b",
    "aarch64": r"\b(?:dmb|dsb|bl|ldxr|ldaxr)\b",
    "sm_90": r"\b(?:fence|membar|atom|call)\b[.\w]*",
}

machine, output, compiler, *arguments = sys.argv[1:]
assembly = re.sub(r"//[^\n]*", "", compiled(compiler, *arguments, output=output))

problems = []
for function, wanted in EXPECT[machine].items():
    start = re.search(rf"^[^\n]*\b{function}\b[^\n]*(?::|\()\s*$", assembly, flags=re.M)
    body = assembly[start.end():] if start else ""
    end = re.search(r"^\}|\.cfi_endproc|\.size\b", body, flags=re.M)
    body = body[:end.start()] if end else body
    if not re.search(wanted, body):
        problems.append(f"{function}: /{wanted}/ not found in:\n{body}")
    for line in body.split("\n"):
        if re.search(FORBID[machine], line):
            problems.append(f"{function}: an access to a flag must be a single load or store: {line.strip()}")
print("\n".join(problems) or f"{machine}: acquire and release are single instructions")
sys.exit(bool(problems))
