#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The declarations of the C functions of all libraries, and of the pointers to functions in structs, equal the
committed ones, prototypes.abi: prototypes.py SOURCE [--record [--changed]]. abidiff compares one library only, and
needs its debug information. Offsets of structs and enumerators are those of the layout test. --record writes the file;
without --changed it accepts only new functions."""
import pathlib
import sys

import public_headers

source = pathlib.Path(sys.argv[1])
path = source / "unittests/abi/prototypes.abi"
now = public_headers.prototypes(source / "include")
before = dict(line.split(": ", 1) for line in path.read_text().splitlines()) if path.exists() else {}
problems = [f"{name} was: {text}\n{' ' * len(name)} now: {now.get(name, 'not declared')}"
            for name, text in before.items() if now.get(name) != text]
if "--record" not in sys.argv:
    problems += [f"{name} is not recorded: scripts/update-abi.sh" for name in sorted(set(now) - set(before))]
elif not problems or "--changed" in sys.argv:
    path.write_text("".join(f"{name}: {text}\n" for name, text in sorted(now.items())))
    problems = []
if len(now) < 100:
    problems.append(f"only {len(now)} functions found")
print("\n".join(problems) or f"{len(now)} declarations, as recorded")
sys.exit(bool(problems))
