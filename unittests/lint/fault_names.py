#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each function that libcudaq-realtime exports is named in unittests/fault_injection, whose tests make the calls
in it fail. The headers bind X to X_spec: a test that calls X tests X_spec."""
import pathlib
import re

import tree

MAP = pathlib.PurePosixPath("lib/cudaq-realtime.map")
SWEEPS = "unittests/fault_injection/"
# Functions without a sweep, each with the reason.
EXEMPT = {
    "cudaq_host_ringbuffer_slot_available": "it reads two words",
    "cudaq_realtime_version": "it returns a constant",
    "cudaq_rpc_status_string": "it returns a literal",
    "cudaq_status_string": "it returns a literal",
}

exported = re.findall(r"^\s+(cudaq_\w+);", tree.text(MAP), re.M)
named = set()
for path in tree.code(SWEEPS):
    named |= set(re.findall(r"\bcudaq_\w+", tree.without_comments(path)))
named |= {name + "_spec" for name in named}
problems = [f"{MAP}: {name} is in no test of {SWEEPS}: add it to a script there, or to EXEMPT with the reason"
            for name in exported if name not in named and name not in EXEMPT]
# A small tree, that of the self-test, does not export them.
problems += [f"{MAP}: {name} is in EXEMPT, and a test of {SWEEPS} calls it: remove it from EXEMPT"
             for name in EXEMPT if name in named]
tree.report(problems, len(exported), "exported functions have calls that fail in a test, or an exemption")
