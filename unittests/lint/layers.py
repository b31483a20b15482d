#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders are layers: a room includes only the rooms below it (docs/design.md)."""
import re

import tree

MAY_INCLUDE = {
    "include": set(),
    # Device code that is compiled into the program: templates, with what is behind them.
    "include/*.cuh": {"kernels", "lib/ring", "include"},
    # The project's atomics: one file, at the bottom.
    "lib/ring/flag_word.h": {"include"},
    "lib/support": {"lib/ring/flag_word.h", "include"},
    "lib/ring": {"lib/ring/flag_word.h", "include"},
    "lib/device": {"lib/ring", "include"},
    "lib/host_dispatcher": {"lib/ring", "lib/support", "include"},
    "lib/api": {"lib/host_dispatcher", "lib/device", "lib/ring", "lib/support", "include"},
    "lib/transport": {"lib/ring", "lib/support", "include"},
    "lib/qec": {"lib/support", "lib/ring/flag_word.h", "include"},
    "kernels": {"include/*.cuh", "lib/device", "lib/ring", "include"},
    # The pipeline's inference engines, and the workers made of them.
    "kernels/qec": {"lib/qec", "lib/support", "lib/ring/flag_word.h", "include"},
    "tools": {"include/*.cuh", "lib/qec", "kernels/qec", "include"},
    "docs/examples": {"include/*.cuh", "lib/qec", "include"},
    "unittests/install": set(),  # sees the installed headers only
}
ANYTHING = ("unittests",)


def room(path):
    parts = path.parts
    if parts[0] == "include" and path.suffix == ".cuh":
        return "include/*.cuh"
    if str(path) in MAY_INCLUDE:
        return str(path)
    two = "/".join(parts[:2])
    return two if two in MAY_INCLUDE else parts[0]


for below in MAY_INCLUDE.values():
    if "lib/ring" in below:
        below.add("lib/ring/flag_word.h")
project = set(tree.files())


def resolve(path, name):
    """The project's file that an #include names, or None for one from outside."""
    for base in (path.parent, *map(tree.pathlib.PurePosixPath, ("include", ".", "lib", "tools"))):
        candidate = tree.pathlib.PurePosixPath(tree.os.path.normpath(base / name))
        if candidate in project:
            return candidate
    return None


problems = []
looked_at = 0
included = set()
for path in tree.code():
    here = room(path)
    for number, line in enumerate(tree.without_comments(path).split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
        target = resolve(path, match.group(1)) if match else None
        if not target:
            continue
        looked_at += 1
        if target != path:
            included.add(target)
        there = room(target)
        if here == "unittests/install":
            there = here if str(target).startswith(("unittests/install", "include")) else there
        if here != there and here not in ANYTHING and there not in MAY_INCLUDE.get(here, set()):
            problems.append(f"{path}:{number}: {here} must not include {there} ({match.group(1)})")
    if here not in MAY_INCLUDE and here not in ANYTHING:
        problems.append(f"{path}: a room without a rule; name what it may include in unittests/lint/layers.py")

for path in tree.code("include/", "lib/", "kernels/", "tools/"):
    if path.suffix in (".h", ".hpp", ".cuh") and path not in included:
        problems.append(f"{path}: no file includes this header")
tree.report(problems, looked_at, "includes go downwards, and every header is used")
