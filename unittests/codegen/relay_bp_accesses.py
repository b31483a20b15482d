#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks in the PTX of the relay-bp kernels how their blocks share the words of relay_team. A release waits for the
stores before it, while other blocks wait for the word: only those of RELEASED are releases. Block 0 prepares a shot
with relaxed stores, after it has acquired `ended` and before it releases `shot`. There is no fence.
It plants faults in the PTX, which the check must find.

usage: relay_bp_accesses.py <PTX to write> <nvcc> <argument>...
"""
import re
import sys

import ptx_check

# relay_team: each word is on a line of its own.
WORDS = ("begun", "shot", "limit", "ended", "winner", "ready", "best", "so_far", "stopped")
LINE = 128
# In each kernel: block 0 and the others publish the end of a chain; `shot` is released for a shot and for the end.
RELEASED = {"st shot": 2, "st ready": 2, "atom begun": 1, "atom ended": 2, "atom stopped": 2}
PREPARED = ["limit", "winner", "ready", "stopped", "best", "so_far"]
MAILBOX = 2  # releases of the system's scope: the block runs, the answer is ready
ACCESS = re.compile(r"\b(ld|st|atom|red)\.([\w.]+)\s[^\[;\n]*\[(%\w+)(?:\+(\d+))?\]")
ORDERED = re.compile(r"\.(acquire|release|acq_rel|relaxed|sc)\b")
FENCE = re.compile(r"^\s*(?:fence|membar|(?:ld|st)\.volatile)\b[^\n]*", flags=re.M)


def kernels(ptx):
    """Yields (variant, body)."""
    for start in re.finditer(r"\.entry (\w*relay_bp_kernel\w*)\(", ptx):
        text = ptx[start.end():]
        variant = re.search(r"relay_variantE(\d)E", start.group(1)).group(1)
        yield variant, text[:re.search(r"^\}", text, flags=re.M).start()]


def word_of(body, register, offset):
    """The word of relay_team at this address, by the constant that was added last."""
    added = re.search(rf"add\.s64\s+{re.escape(register)},\s*%\w+,\s*(\d+);", body)
    at = int(offset or 0) + (int(added.group(1)) if added else 0)
    return WORDS[at // LINE] if at % LINE == 0 and at // LINE < len(WORDS) else f"an offset of {at}"


def check_kernel(body):
    problems, released, steps, mailbox = [], {}, [], 0
    for match in ACCESS.finditer(body):
        what, modifiers, register, offset = match.groups()
        order = ORDERED.search(f".{modifiers}")
        if order is None or what == "ld" and order.group(1) == "relaxed":
            continue
        word = word_of(body, register, offset)
        if order.group(1) == "release" and ".sys" in modifiers:
            mailbox += 1
        elif order.group(1) == "release":
            released[f"{what} {word}"] = released.get(f"{what} {word}", 0) + 1
            steps.append(f"release {word}")
        elif what == "st":
            steps.append(word)
        elif order.group(1) == "acquire":
            steps.append(f"acquire {word}")
        elif order.group(1) != "relaxed":
            problems.append(f"an unknown order: {match.group(0)}")
    if released != RELEASED:
        problems.append(f"released words {released}, expected {RELEASED}")
    if mailbox != MAILBOX:
        problems.append(f"{mailbox} releases of words of the host, expected {MAILBOX}")
    wanted = " ".join(["acquire ended", *PREPARED, "release shot"])
    if " ".join(steps).count(wanted) != 1:
        problems.append(f"a shot is not prepared by '{wanted}': {steps}")
    return problems


def check(ptx):
    found = dict(kernels(ptx))
    problems = [] if sorted(found) == list("012345") else [f"kernels of the variants {sorted(found)}, expected 0 to 5"]
    problems += [f"a fence or a volatile access: {match.group(0).strip()}" for match in FENCE.finditer(ptx)]
    for variant, body in found.items():
        problems += [f"variant {variant}: {problem}" for problem in check_kernel(body)]
    return problems


def faults_of(ptx):
    released = re.search(r"st\.release\.gpu\.b64 [^\n]*", ptx).group(0)
    prepared = re.search(r"st\.relaxed\.sys\.b32 [^\n]*", ptx).group(0)
    return {
        "a release more": (prepared, prepared.replace("relaxed.sys", "release.gpu")),
        "shot not released": (released, released.replace("release", "relaxed")),
        "a word that is not prepared": (prepared, ""),
        "ready not released": ("st.release.gpu.b32", "st.relaxed.gpu.b32"),
        "arrivals not released": ("atom.add.release", "atom.add.relaxed"),
        "ended not acquired": ("ld.acquire.gpu.b32", "ld.relaxed.gpu.b32"),
        "fence": (released, "fence.acq_rel.gpu;\n" + released),
    }


if __name__ == "__main__":
    ptx_check.run(check, faults_of, "6 kernels release only the words that publish others", *sys.argv[1:])
