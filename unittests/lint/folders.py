#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders stay small enough to read: each has at most MAX_FILES files, not counting those in its subfolders. A name
identifies a file: no two files of the code, and no two files of the tests, have the same name."""
import fnmatch

import tree

MAX_FILES = 25
# Path of a folder: reason.
MAY_BE_LARGE = {
    "tools/data": "a recorded set is five files, and the program expects all sets in one folder",
    "unittests/lint": "one file for each rule",
}
# Groups of rooms; inside a group each file name is used once.
NAMES_ARE_UNIQUE_IN = (("include/", "lib/", "kernels/", "tools/", "benchmarks/", "contrib/"), ("unittests/",))
# Path: reason. A * also matches slashes.
MAY_SHARE_A_NAME = {
    "*/CMakeLists.txt": "CMake requires this name",
    "lib/host_dispatcher/host_dispatcher.h": "named after its class; the specification names the public header",
    "lib/qec/server/decoding_server.h": "named after its class; the public header is the same in C",
    "lib/base/cpu_relax.h": "named after its function; the existing system has the public header",
    "unittests/install/*": "each consumer is a small project of its own, with a main file",
}
problems = []
folders, names = {}, {}
for path in tree.files():
    folders.setdefault(str(path.parent), []).append(path)
    if any(fnmatch.fnmatchcase(str(path), pattern) for pattern in MAY_SHARE_A_NAME):
        continue
    for rooms in NAMES_ARE_UNIQUE_IN:
        if str(path).startswith(rooms):
            names.setdefault((rooms, path.name), []).append(path)

for folder, files in folders.items():
    if len(files) > MAX_FILES and folder not in MAY_BE_LARGE:
        problems.append(f"{folder}: {len(files)} files, at most {MAX_FILES}; divide it by subject")
for first, *others in names.values():
    problems += [f"{path}: has the name of {first}" for path in others]
tree.report(problems, len(folders), "folders are small, and each file has a name of its own")
