#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks in the PTX of the learned predecoder's kernels what their overlap and their speed need. Each kernel waits once
for the kernels before it, stores nothing earlier, and lets the next one start after that. Only the ready flag is
released. The products of the middle layers run on the tensor cores, with all sums in registers: by wgmma in code for
sm_90a, and those see the copies of all threads.
It plants faults in the PTX, which the check must find.

usage: network_accesses.py <PTX to write> <nvcc> <argument>...
"""
import re
import sys

import ptx_check

KERNELS = ["first", "head", *(f"middle{tiles}" for tiles in range(1, 5)), "read", "write"]
PRODUCTS = ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "ldmatrix.",
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", "fence.proxy.async", "wgmma.fence.sync.aligned",
            "wgmma.commit_group.sync.aligned", "wgmma.wait_group.sync.aligned 0;")
WAIT, START = "griddepcontrol.wait;", "griddepcontrol.launch_dependents;"
STORE = re.compile(r"^\s*(?:st(?!\.shared|\.param)|atom|red)\.[^\n]*", flags=re.M)
RELEASE = re.compile(r"\b(?:st|atom|red|fence|membar)\.\S*(?:release|acq_rel|sc)\S*")


def kernels(ptx):
    """Yields (name, body)."""
    for start in re.finditer(r"\.entry \w*\d\d(\w+)_kernel(?:ILj(\d)E)?\w*\(", ptx):
        text = ptx[start.end():]
        yield start.group(1) + (start.group(2) or ""), text[:re.search(r"^\}", text, flags=re.M).start()]


def check_kernel(name, body, has_wgmma):
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
    # Of a stage: 9 taps. With wgmma a product is of 64 rows and of 64 outputs of a warp group. Without, a warp has two
    # tiles of 16 rows for each of these, loads each once for its 4 products, and its outputs in 2 loads.
    if name.startswith("middle"):
        tiles = int(name[len("middle"):])
        found = [body.count(text) for text in PRODUCTS]
        expected = [0, 0, 9 * tiles, 1, 1, 1, 1] if has_wgmma else [72 * tiles, 18 * tiles + 18, 0, 0, 0, 0, 0]
        if found != expected:
            problems.append(f"{found} of {PRODUCTS}, expected {expected}")
        elif has_wgmma and not (body.index("fence.proxy.async") < body.index("wgmma.fence") < body.index(
                "wgmma.mma_async") and body.rindex("wgmma.mma_async") < body.index("wgmma.commit") < body.index(
                    "wgmma.wait_group.sync.aligned 0;")):
            problems.append("products begin before they see the copies, or are not awaited")
        if body.count("barrier.cluster.arrive.release.aligned") != 2:
            problems.append("the blocks of a cluster do not meet twice: before and after they read each other's sums")
    return problems


def check(ptx):
    found = dict(kernels(ptx))
    problems = [] if sorted(found) == KERNELS else [f"kernels {sorted(found)}, expected {KERNELS}"]
    for name, body in found.items():
        problems += [f"{name}_kernel: {problem}" for problem in check_kernel(name, body, ".target sm_90a" in ptx)]
    return problems


FAULTS = {
    "no wait": (WAIT, ""),
    "the next kernel starts early": (WAIT, START + "\n\t" + WAIT),
    "a store before the wait": (WAIT, "st.global.u32 [%rd1], %r1;\n\t" + WAIT),
    "ready not released": ("st.release.sys.b32", "st.relaxed.sys.b32"),
    "a fence": (START, START + "\n\tfence.acq_rel.gpu;"),
    "local memory": (START, START + "\n\tst.local.u32 [%rd1], %r1;"),
    "blocks do not meet": ("barrier.cluster.arrive.release.aligned", "barrier.cluster.arrive.relaxed.aligned"),
}
FAULTS_OF_WARPS = {"another product": ("mma.sync.aligned.m16n8k16", "mma.sync.aligned.m16n8k8")}
FAULTS_OF_WARP_GROUPS = {
    "another product": ("mma_async.sync.aligned.m64n64k16", "mma_async.sync.aligned.m64n8k16"),
    "copies are not shown": ("fence.proxy.async;", ""),
    "products are not awaited": ("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;"),
}


def faults_of(ptx):
    return FAULTS | (FAULTS_OF_WARP_GROUPS if "wgmma" in ptx else FAULTS_OF_WARPS)


if __name__ == "__main__":
    passed = f"{len(KERNELS)} kernels wait, multiply and release as they must"
    ptx_check.run(check, faults_of, passed, *sys.argv[1:])
