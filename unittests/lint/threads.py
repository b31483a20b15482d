#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library starts threads in one place, which blocks the program's signals on them and disables cancellation. No
other file of lib/, kernels/ and include/ names a thread class or a function that starts threads."""
import re

import tree

# The thread pool is a public header without a library; it blocks the signals itself.
ALLOWED = ("lib/base/runner.h", "lib/base/runner.cpp", "include/cudaq/qec/utils/thread_pool.h")
STARTS = re.compile(r"\bstd::(?:jthread|thread|async)\b(?!::hardware_concurrency)|\bpthread_create\b|\bthrd_create\b")

problems = []
looked_at = 0
for path in tree.code("include/", "lib/", "kernels/"):
    if str(path) in ALLOWED:
        continue
    looked_at += 1
    for number, line in enumerate(tree.without_comments(path).split("\n"), 1):
        match = STARTS.search(line)
        if match:
            problems.append(f"{path}:{number}: '{match.group(0)}': use loop_thread of lib/base/runner.h")
tree.report(problems, looked_at, "files start no threads of their own")
