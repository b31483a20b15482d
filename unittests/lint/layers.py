#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders are layers: a room includes only the rooms below it (docs/design.md)."""
import re

import tree

DETAIL = "include/cudaq/realtime/detail"
# A room is the longest of these beginnings of a file's path. "include" stands for the public headers outside detail/.
BELOW = {
    f"{DETAIL}/base": {"include"},
    f"{DETAIL}/ring": {f"{DETAIL}/base", "include"},
    f"{DETAIL}/kernel_abi": {f"{DETAIL}/ring", f"{DETAIL}/base", "include"},
    f"{DETAIL}/loop": {f"{DETAIL}/kernel_abi", f"{DETAIL}/ring", f"{DETAIL}/base", "include"},
    "include": set(),
    # Device code that is compiled into the program: templates over detail/.
    "include/*.cuh": {DETAIL, "include"},
    "lib/base": {f"{DETAIL}/base", "include"},
    "lib/ring": {f"{DETAIL}/ring", f"{DETAIL}/base", "include"},
    "lib/kernel_abi": {f"{DETAIL}/kernel_abi", f"{DETAIL}/ring", f"{DETAIL}/base", "include"},
    "lib/shared_ring": {"lib/ring", "lib/base", f"{DETAIL}/ring", f"{DETAIL}/base", "include"},
    "lib/host_dispatcher": {"lib/shared_ring", "lib/ring", "lib/base", f"{DETAIL}/ring", f"{DETAIL}/base", "include"},
    "lib/api": {"lib/host_dispatcher", "lib/shared_ring", "lib/ring", "lib/kernel_abi", "lib/base",
                f"{DETAIL}/kernel_abi", f"{DETAIL}/ring", f"{DETAIL}/base", "include"},
    "lib/qec/decoding": {"include"},
    "lib/qec/stages": {"lib/qec/decoding", "include"},
    "lib/qec/pipeline": {"lib/base", f"{DETAIL}/base", "include"},
    "lib/qec/services": {"lib/qec/decoding", f"{DETAIL}/base", "include"},
    "kernels/graphs": {"lib/kernel_abi", DETAIL, "include"},
    "kernels/archive": {"kernels/graphs", "lib/kernel_abi", DETAIL, "include/*.cuh", "include"},
    # The pipeline's inference engines, and the workers made of them.
    "kernels/qec": {"lib/qec", "lib/base", f"{DETAIL}/base", "include"},
    "tools": {"lib/qec", "kernels/qec", "include/*.cuh", "include"},
    "docs/examples": {"lib/qec", "include/*.cuh", "include"},
    "unittests/install": {"include", "include/*.cuh"},  # sees the installed headers only
    "unittests": {""},
}


def room(path):
    text = str(path)
    if text.startswith("include/") and path.suffix == ".cuh" and not text.startswith(DETAIL):
        return "include/*.cuh"
    return max((r for r in BELOW if text.startswith(r + "/")), key=len, default=None)


def may_include(here, there):
    return here == there or any(there == r or there.startswith(r + "/") if r else True
                                for r in BELOW[here] if r != "include") or (there == "include" and "include" in BELOW[here])


project = set(tree.files())


def resolve(path, name):
    """The project's file that an #include names, or None for one from outside."""
    for base in (path.parent, *map(tree.pathlib.PurePosixPath, ("include", "."))):
        candidate = tree.pathlib.PurePosixPath(tree.os.path.normpath(base / name))
        if candidate in project:
            return candidate
    return None


problems = []
looked_at = 0
included = set()
for path in tree.code():
    here = room(path)
    if here is None:
        problems.append(f"{path}: a room without a rule; name what it may include in unittests/lint/layers.py")
        continue
    for number, line in enumerate(tree.without_comments(path).split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
        target = resolve(path, match.group(1)) if match else None
        if not target:
            continue
        looked_at += 1
        if target != path:
            included.add(target)
        there = room(target)
        if there is not None and not may_include(here, there):
            problems.append(f"{path}:{number}: {here} must not include {there} ({match.group(1)})")

for path in tree.code("include/", "lib/", "kernels/", "tools/"):
    if path.suffix in (".h", ".hpp", ".cuh") and path not in included:
        problems.append(f"{path}: no file includes this header")
tree.report(problems, looked_at, "includes go downwards, and every header is used")
