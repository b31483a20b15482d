#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library never prints and never ends the process: no output stream, abort, exit or assert in lib/ and include/.
Two exceptions: a callback that ends its thread (lib/base/callback.h), and report() of the specification's benchmark
class, which prints where the program asks for it. Nothing is thrown outside of lib/qec, but passed on by a bare
`throw;` (docs/contributing.md, "Errors")."""
import re

import tree

FORBIDDEN = re.compile(r"(?<![\w.>])(?:std::)?(?:v?f?printf|puts|fputs|putchar|fputc|fwrite|perror|abort|exit|_exit|"
                       r"quick_exit|terminate|assert|__builtin_trap|__trap)\s*\(|\bstd::(?:cout|cerr|clog)\b|"
                       r"#\s*include\s*<(?:iostream|cassert|assert\.h|print)>")
THROWN = re.compile(r"\bthrow\b(?! *;)")
ALLOWED = {"lib/base/callback.cpp", "include/cudaq/qec/utils/pipeline_benchmarks.h"}
problems = []
paths = [path for path in tree.code("include/", "lib/", "kernels/") if str(path) not in ALLOWED]
for path in paths:
    for number, line in enumerate(tree.without_comments(path).split("\n"), 1):
        match = FORBIDDEN.search(line)
        if not match and str(path).startswith("lib/") and not str(path).startswith("lib/qec/"):
            match = THROWN.search(line)
        if match:
            problems.append(f"{path}:{number}: {match.group(0)}")
tree.report(problems, len(paths), "files neither print, nor end the process, nor throw where it is not allowed")
