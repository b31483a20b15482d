#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks in x86-64 assembly that a host turn reads each word of a request's header once, with one 8-byte load. A
peer may overwrite the slot between two loads, so a second one could undo the checks.

usage: header_fetch.py [--mutant NAME] <root of the sources> <assembly file to write> <compiler> <argument>...
--mutant introduces an error into a copy of a header; the check must find it.
"""
import os
import re
import sys

from compiled import compiled

FRAME, TURN = "include/cudaq/realtime/detail/ring/frame.h", "lib/ring/turn.h"
MUTANTS = {  # name: (header, text in it, its replacement)
    "header_copied": (FRAME, "Header header;\n  static_assert(sizeof(words) == sizeof(header));\n"
                             "  std::memcpy(&header, words, sizeof(header));",
                      "Header header;\n  (void)words;\n"
                      "  std::memcpy(&header, __builtin_assume_aligned(slot, 8), sizeof(header));"),
    "header_read_twice": (TURN, "judge_slot(ring, i, flag, r, index, rules)",
                          "judge_slot(ring, i, flag, read_header<request>(ring.rx_slot(i)), index, rules)"),
}
EXPECTED = [(0, "movq"), (8, "movq"), (16, "movq")]
SLOT = r"(?:(\d+)\+)?\bprobe_slot\b"


def accesses(body):
    """The accesses to the slot, as (offset, instruction). Registers that hold its address are tracked."""
    found, holds = [], {}
    for line in body.split("\n"):
        match = re.match(r"\s+([a-z]\w*)\s+(.*)$", line)
        if not match:
            continue
        operation, operands = match.groups()
        target = re.search(r"%(\w+)$", operands)
        address = re.match(rf"\$?{SLOT}(?:\(%rip\))?, %(\w+)$", operands)
        if address and (operation.startswith("lea") or operands.startswith("$")):
            holds[address.group(2)] = int(address.group(1) or 0)
            continue
        moved = re.match(r"%(\w+), %(\w+)$", operands)
        if operation == "movq" and moved and moved.group(1) in holds:
            holds[moved.group(2)] = holds[moved.group(1)]
            continue
        by_name = re.search(rf"(?<![$\d]){SLOT}(?:\(|,|$)", operands)
        by_register = next((m for m in re.finditer(r"(-?\d*)\(%(\w+)", operands) if m.group(2) in holds), None)
        if operation.startswith("lea"):
            pass
        elif by_name:
            found.append((int(by_name.group(1) or 0), operation))
        elif by_register:
            found.append((holds[by_register.group(2)] + int(by_register.group(1) or 0), operation))
        if target:
            holds.pop(target.group(1), None)
    return sorted(found)


def main(arguments):
    mutant = None
    if arguments[0] == "--mutant":
        mutant, arguments = arguments[1], arguments[2:]
    root, output, compiler, *options = arguments
    broken = []
    if mutant:
        header, text, replacement = MUTANTS[mutant]
        with open(os.path.join(root, header)) as file:
            source = file.read()
        if text not in source:
            sys.exit(f"{header} does not contain the text that {mutant} replaces")
        folder = f"{output}.sources"
        os.makedirs(os.path.dirname(f"{folder}/{header}"), exist_ok=True)
        with open(f"{folder}/{header}", "w") as file:
            file.write(source.replace(text, replacement))
        broken = ["-I", folder, "-I", f"{folder}/include"]
    assembly = compiled(compiler, *broken, *options, output=output)
    body = assembly[re.search(r"^probe_turn:", assembly, flags=re.M).end():]
    found = accesses(body[:body.index(".cfi_endproc")])
    problem = "" if found == EXPECTED else f"loads of the request: {found}, expected {EXPECTED}"
    if mutant:
        print(problem or f"the check does not find the mutant {mutant}")
        sys.exit(not problem)
    print(problem or "a host turn loads each word of a request once")
    sys.exit(bool(problem))


main(sys.argv[1:])
