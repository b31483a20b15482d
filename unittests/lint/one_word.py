#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shared words are read and written only through three headers, each with a task of its own: flag_word.h,
slot_memory.h, shared_word.h. No other file names a memory order, an atomic or a fence, casts volatile away, or accesses
memory through a cast to volatile. Tests and tools may use std::atomic for their own words, but no builtin. A client of
a ring in tools/ or benchmarks/ calls the slot helpers and the producer's handle through the header of tools/ring."""
import re

import tree

BASE = "include/cudaq/realtime/detail/base/"
BUILTINS = r"\b__(?:atomic|sync)_\w+"
ORDERS = r"\bmemory_order"
FENCES = r"\b_mm_[lsm]fence"
# An access through a cast to volatile.
VOLATILE_CASTS = r"\*\s*\w+_cast\s*<[^<>;]*\bvolatile\b|\*\s*\(\s*(?:const\s+)?volatile\s+[\w:]+\s*\*\s*\)"
# Allowed with a cast to const void *, because that uses only the address.
CONST_CASTS = r"\bconst_cast\b(?!\s*<\s*const void \*\s*>)"
ATOMICS = (r"\bstd::atomic|\bcuda::(?:std::)?atomic|\b_Atomic\b|\batomic_thread_fence|"
           r"#\s*include\s*<(?:cuda/|cuda/std/)?(?:std)?atomic(?:\.h)?>|\b__threadfence\w*")
ALL = (ORDERS, FENCES, ATOMICS, BUILTINS, VOLATILE_CASTS, CONST_CASTS)
# What a header may use of these; flag_word.h all.
OWN = {f"{BASE}flag_word.h": ALL, f"{BASE}slot_memory.h": (FENCES, VOLATILE_CASTS), f"{BASE}shared_word.h": (ORDERS,),
       "lib/base/ticks.h": (FENCES,)}  # it orders no words: the moment at which a counter is read
OTHERS = (BUILTINS, VOLATILE_CASTS)
RING_PORT = "tools/ring/ring_port.h"
RING_CALLS = (r"\bcudaq_host_ringbuffer_(?:write_rpc_request|signal_slot|poll_tx_flag|read_rpc_response|clear_slot)\b|"
              r"\bcudaq_ringbuffer_producer_(?:claim|write|commit|send)\b")

problems = []
looked_at = 0
for path in tree.code("include/", "lib/", "kernels/", "tools/", "benchmarks/", "contrib/", "unittests/", "docs/"):
    looked_at += 1
    patterns = ALL if str(path).startswith(("include/", "lib/", "kernels/")) else OTHERS
    forbidden = [pattern for pattern in patterns if pattern not in OWN.get(str(path), ())]
    for number, line in enumerate(tree.without_comments(path).split("\n"), 1):
        match = forbidden and re.search("|".join(forbidden), line)
        if match:
            problems.append(f"{path}:{number}: '{match.group(0)}' belongs in {BASE}flag_word.h")
        match = str(path).startswith(("tools/", "benchmarks/")) and re.search(RING_CALLS, line)
        if match and str(path) != RING_PORT:
            problems.append(f"{path}:{number}: '{match.group(0)}' belongs in {RING_PORT}")
tree.report(problems, looked_at, f"files access shared words only through the headers of {BASE}")
