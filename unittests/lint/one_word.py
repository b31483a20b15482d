#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shared words are read and written only through flag_word.h. No other file names a memory order, an atomic or a fence,
casts volatile away, or accesses memory through a cast to volatile. Tests and tools may use std::atomic for their own
words, but no builtin."""
import re

import tree

THE_FILE = "include/cudaq/realtime/detail/base/flag_word.h"
BUILTINS = r"\b__(?:atomic|sync)_\w+"
# An access through a cast to volatile.
VOLATILE_CASTS = r"\*\s*\w+_cast\s*<[^<>;]*\bvolatile\b|\*\s*\(\s*(?:const\s+)?volatile\s+[\w:]+\s*\*\s*\)"
# Allowed with a cast to const void *, because that uses only the address.
CONST_CASTS = r"\bconst_cast\b(?!\s*<\s*const void \*\s*>)"
LIBRARY = re.compile(r"\bmemory_order|\bstd::atomic|\bcuda::(?:std::)?atomic|\b_Atomic\b|\batomic_thread_fence|"
                     r"#\s*include\s*<(?:cuda/|cuda/std/)?(?:std)?atomic(?:\.h)?>|\b_mm_[lsm]fence|"
                     r"\b__threadfence\w*|" + BUILTINS + "|" + VOLATILE_CASTS + "|" + CONST_CASTS)
OTHERS = re.compile(BUILTINS + "|" + VOLATILE_CASTS)

problems = []
looked_at = 0
for path in tree.code("include/", "lib/", "kernels/", "tools/", "benchmarks/", "contrib/", "unittests/", "docs/"):
    if str(path) == THE_FILE:
        continue
    looked_at += 1
    pattern = LIBRARY if str(path).startswith(("include/", "lib/", "kernels/")) else OTHERS
    for number, line in enumerate(tree.without_comments(path).split("\n"), 1):
        match = pattern.search(line)
        if match:
            problems.append(f"{path}:{number}: '{match.group(0)}' belongs in {THE_FILE}")
tree.report(problems, looked_at, f"files access shared words only through {THE_FILE}")
