#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks in assembly that a producer's stores to write-combining memory are fenced: frames before the flag, the flag
before what follows. No other test without a GPU sees these fences, because ordinary memory needs none of them.

usage: posted_stores.py [--mutant NAME] x86_64|aarch64 <root of the sources> <assembly file to write> <compiler>
       <argument>...
--mutant introduces an error into a copy of a source; the check must find it.
"""
import os
import re
import shutil
import sys

from compiled import compiled

HELPERS, HANDLE = "lib/api/rings/slot_helpers.cpp", "lib/ring/producer_core.h"
SLOT_MEMORY = "include/cudaq/realtime/detail/base/slot_memory.h"
SIGNAL = "view_of(*rb).signal(slot_idx);\n"
FENCE = "fence_posted_stores();"
HELPER, COMMIT, LINE = "cudaq_host_ringbuffer_signal_slot", "probe_commit", "probe_store_line"
MUTANTS = {  # name: (source, text in it, its replacement, the function in which the check must find it)
    "helper_without_fence_before_the_flag": (HELPERS, f"  {FENCE}\n  {SIGNAL}", f"  {SIGNAL}", HELPER),
    "helper_without_fence_after_the_flag": (HELPERS, f"  {SIGNAL}  {FENCE}\n", f"  {SIGNAL}", HELPER),
    "handle_without_fence_before_the_flag": (
        HANDLE, f"{FENCE} // another thread may signal them as soon as they are marked", ";", COMMIT),
    "handle_without_fence_after_the_flag": (
        HANDLE, f"{FENCE} // the flag leaves now, and before the next one", ";", COMMIT),
    "line_through_the_caches": (SLOT_MEMORY, "_mm_stream_si128(", "_mm_store_si128(", LINE),
}
# The instructions that count, by machine. A letter for each: F fence, S store of a shared word, A the addition by which
# one thread becomes the one that signals, L store past the caches.
EVENTS = {
    "x86_64": [("F", r"sfence\b"), ("A", r"lock\s+x?add"), ("L", r"v?movnt\w*\s"),
               ("S", r"(movq\s+%\w+|addq\s+\$1), (?!.*%rsp)[^,%]*\(")],
    "aarch64": [("F", r"dmb\s+(oshst|osh|sy)\b"), ("A", r"bl\s+__aarch64_ldadd|ldaddal\b|stlxr\b"), ("S", r"stlr\b")],
}
# What the letters of each function must look like.
EXPECTED = {
    HELPER: (r"FSF", "a fence, the store of the flag, a fence"),
    COMMIT: (r"FS+A.*SF.*", "a fence, the mark, the addition; the store of the flag, a fence"),
    LINE: (r"L+", "stores past the caches"),
}


def letters(machine, body):
    found = ""
    for line in body.split("\n"):
        for letter, instruction in EVENTS[machine]:
            if re.match(rf"\s+{instruction}", line):
                found += letter
    return found


def problems_in(machine, assembly):
    problems = []
    for function, (wanted, in_words) in EXPECTED.items():
        if function == LINE and machine != "x86_64":
            continue  # ordinary stores: aarch64 has no others that combine
        start = re.search(rf"^{function}:", assembly, flags=re.M)
        body = assembly[start.end():] if start else ""
        body = body[:body.find(".cfi_endproc")]
        found = letters(machine, body)
        if not re.fullmatch(wanted, found):
            problems.append(f"{function}: expected {in_words} (/{wanted}/), found '{found}' in:\n{body}")
    return problems


def copy_with_error(mutant, root, folder):
    """A folder that has the source of this mutant where the root has the right one."""
    path, text, replacement, _ = MUTANTS[mutant]
    with open(os.path.join(root, path)) as file:
        source = file.read()
    if text not in source:
        sys.exit(f"{path} does not contain the text that {mutant} replaces")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
    with open(f"{folder}/{path}", "w") as file:
        file.write(source.replace(text, replacement))
    return ["-I", folder, "-I", f"{folder}/include"]


def main(arguments):
    mutant = None
    if arguments[0] == "--mutant":
        mutant, arguments = arguments[1], arguments[2:]
    machine, root, output, compiler, *options = arguments
    broken = copy_with_error(mutant, root, f"{output}.sources") if mutant else []
    problems = problems_in(machine, compiled(compiler, *broken, *options, output=output))
    if mutant:
        print("\n".join(problems) or f"the check does not find the mutant {mutant}")
        sys.exit(not problems or any(not p.startswith(f"{MUTANTS[mutant][3]}:") for p in problems))
    print("\n".join(problems) or f"{machine}: the stores of producers are fenced")
    sys.exit(bool(problems))


main(sys.argv[1:])
