#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks in the PTX of the learned predecoder's kernels what their overlap and their speed need. Each kernel waits once
for the kernels before it, stores nothing earlier, and lets the next one start after that. Only the ready flag is
released. The products of the middle layers run on the tensor cores, with all sums in registers.
It plants faults in the PTX, which the check must find.

usage: network_accesses.py <PTX to write> <nvcc> <argument>...
"""
import re
import sys

import ptx_check

KERNELS = ["first", "head", *(f"middle{tiles}" for tiles in range(1, 7)), "read", "write"]
WAIT, START = "griddepcontrol.wait;", "griddepcontrol.launch_dependents;"
STORE = re.compile(r"^\s*(?:st(?!\.shared|\.param)|atom|red)\.[^\n]*", flags=re.M)
RELEASE = re.compile(r"\b(?:st|atom|red|fence|membar)\.\S*(?:release|acq_rel|sc)\S*")


def kernels(ptx):
    """Yields (name, body)."""
    for start in re.finditer(r"\.entry \w*\d\d(\w+)_kernel(?:ILj(\d)E)?\w*\(", ptx):
        text = ptx[start.end():]
        yield start.group(1) + (start.group(2) or ""), text[:re.search(r"^\}", text, flags=re.M).start()]


def check_kernel(name, body):
    problems = []
    if body.count(WAIT) != 1 or body.count(START) != 1 or body.index(START) < body.index(WAIT):
        problems.append("it does not wait once, and then let the next kernel start")
    elif early := STORE.search(body[:body.index(WAIT)]):
        problems.append(f"it stores before it has waited: {early.group(0).strip()}")
    released = [match.group(0) for match in RELEASE.finditer(body)]
    if released != (["st.release.sys.b32"] if name == "write" else []):
        problems.append(f"it releases {released}")
    if ".local" in body:
        problems.append("it uses local memory")
    # Of a stage: 9 taps, 4 tiles of outputs. A warp loads a tile of cells once for all 4, and the outputs in 2 loads.
    if name.startswith("middle"):
        tiles = int(name[len("middle"):])
        found = (body.count("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"), body.count("ldmatrix."))
        if found != (36 * tiles, 9 * tiles + 18):
            problems.append(f"{found} products and loads of tiles, expected {(36 * tiles, 9 * tiles + 18)}")
        if body.count("barrier.cluster.arrive.release.aligned") != 2:
            problems.append("the blocks of a cluster do not meet twice: before and after they read each other's sums")
    return problems


def check(ptx):
    found = dict(kernels(ptx))
    problems = [] if sorted(found) == KERNELS else [f"kernels {sorted(found)}, expected {KERNELS}"]
    for name, body in found.items():
        problems += [f"{name}_kernel: {problem}" for problem in check_kernel(name, body)]
    return problems


FAULTS = {
    "no wait": (WAIT, ""),
    "the next kernel starts early": (WAIT, START + "\n\t" + WAIT),
    "a store before the wait": (WAIT, "st.global.u32 [%rd1], %r1;\n\t" + WAIT),
    "ready not released": ("st.release.sys.b32", "st.relaxed.sys.b32"),
    "a fence": (START, START + "\n\tfence.acq_rel.gpu;"),
    "local memory": (START, START + "\n\tst.local.u32 [%rd1], %r1;"),
    "another product": ("mma.sync.aligned.m16n8k16", "mma.sync.aligned.m16n8k8"),
    "blocks do not meet": ("barrier.cluster.arrive.release.aligned", "barrier.cluster.arrive.relaxed.aligned"),
}


if __name__ == "__main__":
    passed = f"{len(KERNELS)} kernels wait, multiply and release as they must"
    ptx_check.run(check, lambda ptx: FAULTS, passed, *sys.argv[1:])
