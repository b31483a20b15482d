#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders are layers: a room includes only the rooms below it (docs/design.md). A folder without a rule, headers, or
folders, that include each other in a circle, an #include "..." of a file that does not exist, and a header
that no file includes are errors too."""
import os
import pathlib
import re

import tree

DETAIL = "include/cudaq/realtime/detail"
ANY = "*"
# What programs share of the room `tools`.
SHARED = ("tools/common", "tools/html", "tools/ring", "tools/trace", "tools/services", "tools/shots",
          "tools/command_line")
# The room of a file is the longest of these prefixes of its path. A name in a rule means that room and the rooms in it.
# "include" is an exception: it means only the public headers outside detail/. "include/*.cuh" means those of them that
# need nvcc.
BELOW = {
    f"{DETAIL}/base": {"include"},
    f"{DETAIL}/ring": {f"{DETAIL}/base", "include"},
    f"{DETAIL}/kernel_abi": {f"{DETAIL}/ring", f"{DETAIL}/base", "include"},
    f"{DETAIL}/loop": {f"{DETAIL}/kernel_abi", f"{DETAIL}/ring", f"{DETAIL}/base", "include"},
    "include": set(),
    # Device code that is compiled into the program: templates over detail/.
    "include/*.cuh": {DETAIL, "include"},
    "lib/base": {f"{DETAIL}/base", "include"},
    "lib/session": {"lib/base", f"{DETAIL}/base", "include"},
    "lib/ring": {f"{DETAIL}/ring", f"{DETAIL}/base", "include"},
    "lib/kernel_abi": {f"{DETAIL}/kernel_abi", f"{DETAIL}/ring", f"{DETAIL}/base", "include"},
    "lib/shared_ring": {"lib/ring", "lib/base", f"{DETAIL}/ring", f"{DETAIL}/base", "include"},
    "lib/host_dispatcher": {"lib/shared_ring", "lib/ring", "lib/base", f"{DETAIL}/ring", f"{DETAIL}/base", "include"},
    "lib/gpu_memory": {"lib/base", "include"},
    "lib/api": {"lib/gpu_memory", "lib/host_dispatcher", "lib/shared_ring", "lib/ring", "lib/kernel_abi", "lib/base",
                f"{DETAIL}/kernel_abi", f"{DETAIL}/ring", f"{DETAIL}/base", "include"},
    # The loader, and the providers: libraries of their own, which share nothing.
    "lib/transport/bridge": {"lib/base", f"{DETAIL}/base", "include"},
    "lib/transport/provider": {"lib/base", f"{DETAIL}/base", "include"},  # what the next ones share
    "lib/transport/shm": {"lib/transport/provider", "lib/gpu_memory", "lib/base", f"{DETAIL}/ring", f"{DETAIL}/base",
                          "include"},
    "lib/transport/client": {"lib/base", f"{DETAIL}/base", "include"},  # of all transports
    "lib/transport/datagram": {"lib/transport/client", "lib/transport/provider", "lib/session", "lib/base",
                               f"{DETAIL}/base", "include"},  # over UDP
    "lib/transport/roce": {"lib/transport/datagram", "lib/transport/provider", "lib/base", f"{DETAIL}/base", "include"},
    "lib/transport/udp": {"lib/transport/datagram", "lib/transport/provider", "lib/base", f"{DETAIL}/base", "include"},
    "lib/transport/cpu_roce": {"lib/transport/provider", "lib/base", f"{DETAIL}/base", "include"},
    "lib/transport/route": {"lib/base", f"{DETAIL}/base", "include"},
    "lib/transport/ucx": {"lib/transport/provider", "lib/transport/route", "lib/base", f"{DETAIL}/base", "include"},
    "lib/qec/decoding": {"lib/base", "include"},
    "lib/qec/decoders": {"lib/qec/decoding", "lib/base", f"{DETAIL}/base", "include"},
    "lib/qec/stream": {"lib/qec/decoders", "lib/qec/decoding", "lib/base", f"{DETAIL}/base", "include"},
    "lib/qec/learning": {"lib/qec/decoding", "include"},
    "lib/qec/stages": {"lib/qec/decoders", "lib/qec/decoding", "include"},
    "lib/qec/shots": {"lib/qec/decoding", "include"},
    "lib/qec/pipeline": {"lib/base", f"{DETAIL}/base", "include"},
    "lib/qec/services": {"lib/base", f"{DETAIL}/base", "include"},
    "lib/qec/server": {"lib/qec/stream", "lib/qec/decoders", "lib/qec/learning", "lib/qec/decoding", "lib/session",
                       "lib/base", f"{DETAIL}/base", "include"},
    "plugins": {"include"},  # a plug-in needs the public headers only
    "python": {"include"},  # the wheel, as other programs
    "kernels/graphs": {"lib/kernel_abi", DETAIL, "include"},
    "kernels/entry_points": {"kernels/graphs", "lib/kernel_abi", DETAIL, "include/*.cuh", "include"},
    # The pipeline's inference engines, and the workers that use them.
    "kernels/qec": {"lib/qec", "lib/base", f"{DETAIL}/base", "include/*.cuh", "include"},
    # What the programs share; the next rooms include only these of `tools`.
    "tools/common": {"lib/base", "include"},
    "tools/html": {"tools/common", "include"},
    "tools/ring": {"tools/common", "include"},
    "tools/trace": {"tools/common", "include"},
    "tools/services": {"tools/common", "lib/qec", "lib/transport", "lib/base", "include"},
    "tools/shots": {"tools/services", "tools/common", "lib/qec", "include"},
    "tools/command_line": {"tools/shots", "tools/trace", "tools/common", "lib/qec", "lib/base", "include"},
    "tools/help": {"tools/command_line", "tools/common", "include"},
    # Each other folder of it is a subcommand; the files beside them make a program of all.
    "tools": {"tools", "lib/qec", "lib/transport", "kernels/qec", "include/*.cuh", "include"},
    "benchmarks": {*SHARED, "lib/qec", "kernels/qec", "lib/base", "include/*.cuh", "include"},
    "contrib": {*SHARED, "lib/transport", "include"},
    "contrib/gpu_roce": {"lib/transport/provider", "lib/base", f"{DETAIL}/base", "include/*.cuh", "include"},
    "contrib/tensorrt": {"kernels/qec", "lib/qec/decoding", "lib/base", "include"},
    "docs/examples": {"lib/qec", "include/*.cuh", "include"},
    "unittests/install": {"include", "include/*.cuh"},  # only what is installed
    "unittests": {ANY},
}

# In these folders, at any depth: of the folders in one folder no two need each other, directly or through others.
NO_CIRCLES_IN = ("benchmarks", "contrib", "kernels", "lib", "tools", "unittests")
# A header in one of these rooms has another reader than the tests.
NOT_FOR_TESTS = ("benchmarks", "contrib", "kernels", "lib", "tools")
# An #include "..." that begins like this names a file of another project.
OUTSIDE = ("chromobius/", "pymatching/", "stim/")
# The public C headers include nothing of the project. These are for C++ programs.
ALSO = {f"include/cudaq/realtime/daemon/dispatcher/{name}": f"{DETAIL}/base"
        for name in ("graph_capture.h", "rpc_types.h")}
# Path: reason. Headers that no #include names.
READ_OTHERWISE = {
    "unittests/contrib/gpu_roce/double/doca_gpunetio_dev_verbs_twosided.cuh": "in place of a header of DOCA",
    "unittests/contrib/gpu_roce/double/hololink/operators/gpu_roce_transceiver/gpu_roce_transceiver.hpp":
        "in place of a header of the sensor bridge",
    "unittests/codegen/dispatch_params_offsets.h": "a compiler option of the codegen tests includes it",
}


def room(path):
    text = str(path)
    if text.startswith("include/") and not text.startswith(DETAIL + "/"):
        return "include/*.cuh" if path.suffix == ".cuh" else "include"
    return max((r for r in BELOW if r != "include" and text.startswith(r + "/")), key=len, default=None)


def may_include(here, there):
    return here == there or any(rule in (ANY, there) or (rule != "include" and there.startswith(rule + "/"))
                                for rule in BELOW[here])


project = set(tree.files())


def resolve(path, name):
    """Returns the project's file that an #include names, or None if it names no file of the project."""
    for base in (path.parent, *map(pathlib.PurePosixPath, ("include", "."))):
        candidate = pathlib.PurePosixPath(os.path.normpath(base / name))
        if candidate in project:
            return candidate
    return None


def siblings(path, target):
    """Returns the folders of two files that differ, below the last one that both are in. None: one of them is in it."""
    for depth, pair in enumerate(zip(path.parts[:-1], target.parts[:-1])):
        if pair[0] != pair[1]:
            return [str(pathlib.PurePosixPath(*file.parts[:depth + 1])) for file in (path, target)] if depth else None
    return None


def circle(included, begin):
    """Returns the names on a way from `begin` back to it, or None. `included`: a name -> the names that it includes."""
    ways, seen = [[begin]], set()
    while ways:
        way = ways.pop()
        for name in sorted(included.get(way[-1], ())):
            if name == begin:
                return [*way, begin]
            if name not in seen:
                seen.add(name)
                ways.append([*way, name])
    return None


problems = []
looked_at = 0
included = {}  # file: the files that it includes; of NO_CIRCLES_IN, folder: the folders that its files include
readers = {}  # header: the top folders of the files that include it
for path in tree.code():
    here = room(path)
    if here is None:
        problems.append(f"{path}: a room without a rule; add what it may include to unittests/lint/layers.py")
        continue
    for number, line in enumerate(tree.without_comments(path).split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if not match:
            continue
        quote, name = match.groups()
        target = resolve(path, name)
        if not target:
            if quote == '"' and not name.startswith(OUTSIDE):
                problems.append(f"{path}:{number}: {name} is not a file of the project")
            continue
        looked_at += 1
        if target != path:
            included.setdefault(str(path), set()).add(str(target))
            readers.setdefault(target, set()).add(path.parts[0])
        if path.parts[0] in NO_CIRCLES_IN and (folders := siblings(path, target)):
            included.setdefault(folders[0], set()).add(folders[1])
        there = room(target)
        if there is not None and not may_include(here, there) and ALSO.get(str(path)) != there:
            problems.append(f"{path}:{number}: {here} must not include {there} ({name})")

named = set()
for name in sorted(included):
    way = circle(included, name)
    if way and named.isdisjoint(way):
        named.update(way)
        problems.append(f"{name}: a circle of includes: {' -> '.join(way)}")
for path in tree.code():
    if path.suffix not in (".h", ".hpp", ".cuh") or str(path) in READ_OTHERWISE:
        continue
    if path not in readers:
        problems.append(f"{path}: no file includes this header")
    elif readers[path] == {"unittests"} and (path.parts[0] in NOT_FOR_TESTS or DETAIL in str(path)):
        problems.append(f"{path}: only tests include this header")
tree.report(problems, looked_at, "includes go downwards, and every header is used")
