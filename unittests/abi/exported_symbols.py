#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library exports exactly the functions that its map lists, and the public headers declare the same functions, and
docs/api describes the same functions. A function that is declared without CUDAQ_REALTIME_API is in the archive of
kernels: docs/api describes it, and the library does not export it. With [map]: the library exports some of the
archive's functions, or the C functions of the decoders beside C++. Functions of providers and of their clients are in
libraries of their own, whose maps list them.

usage: exported_symbols.py <source root> <library> <nm> [map]
"""
import pathlib
import re
import subprocess
import sys

import public_headers

root, library, nm = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
of_archive = len(sys.argv) > 4
version_map = root / (sys.argv[4] if of_archive else "lib/cudaq-realtime.map")

# Names that have no symbol any more, and the reason. No library may export them again.
TWO_FORMS = ("two forms of this name exist, with different arguments; a program that was compiled with another header "
             "must not link (docs/migration.md)")
WITHDRAWN = {"cudaq_create_dispatch_graph_regular": TWO_FORMS,
             "cudaq_dispatcher_set_mailbox": TWO_FORMS,
             "cudaq_dispatcher_set_unified_launch": TWO_FORMS,
             "cudaq_host_dispatcher_loop": TWO_FORMS,
             "cudaq_launch_unified_dispatch_device": TWO_FORMS}

# Header of a provider or its client: map of the library that exports its functions.
OTHER_LIBRARIES = {"shm_client.h": "lib/transport/shm/shm-client.map", "udp_provider.h": "lib/transport/udp/udp.map",
                   "roce_provider.h": "lib/transport/roce/roce.map",
                   "cpu_roce_provider.h": "lib/transport/cpu_roce/cpu-roce.map",
                   "decoding_client.h": "lib/transport/client/qec-client.map",
                   "decoding_server.h": "lib/qec/cudaq-qec-server.map",
                   "decoder_c.h": "lib/qec/cudaq-qec-decoding.map",
                   "stream_c.h": "lib/qec/cudaq-qec-decoding.map"}

exported = {}
symbols = subprocess.check_output([nm, "-D", "--defined-only", "--with-symbol-versions", library], text=True)
for line in symbols.splitlines():
    _, kind, name = line.split()
    if kind != "A":  # the version node itself
        symbol, _, version = name.partition("@@")
        if not symbol.startswith("_Z"):  # C++
            exported[symbol] = version

node_of = {}
for node, body in re.findall(r"^(CUDAQ_[A-Z0-9_.]+) \{(.*?)^\}", version_map.read_text(), flags=re.M | re.S):
    for symbol in re.findall(r"^\s*(\w+);", body.split("local:")[0], flags=re.M):
        node_of[symbol] = node

archived = {name: path.name for name, path in public_headers.archive_functions(root / "include").items()}
declared = {name: path.name for name, path in public_headers.functions(root / "include").items()}
elsewhere = {name: header for name, header in declared.items() if header in OTHER_LIBRARIES}
declared = {name: header for name, header in declared.items() if name not in elsewhere}
# | `name` | `header` | text |
page = root / "docs/api/index.md"
described = dict(re.findall(r"^\| `(\w+)` \| `([\w.]+)` \| \S", page.read_text() if page.exists() else "", flags=re.M))
if of_archive:
    declared, archived = {name: path for name, path in (archived | elsewhere).items() if name in node_of}, {}
    elsewhere = {}
    described = {name: header for name, header in described.items() if name in node_of}
else:
    described = {name: header for name, header in described.items() if header not in OTHER_LIBRARIES}

problems = [f"{name} belongs to the archive, but is exported" for name in sorted(set(exported) & set(archived))]
for name, header in sorted(elsewhere.items()):
    if name in exported:
        problems.append(f"{name} of {header} belongs to another library, but is exported")
    listed = (root / OTHER_LIBRARIES[header]).read_text().split("local:")[0]
    if not re.search(rf"^\s*{name};", listed, flags=re.M):
        problems.append(f"{name} is declared in {header} but not in {OTHER_LIBRARIES[header]}")
problems += [f"{name} is declared but not in docs/api/index.md" for name in sorted(set(archived) - set(described))]
problems += [f"docs/api/index.md: {s} is in {archived[s]}, not {h}" for s, h in sorted(described.items())
             if s in archived and h != archived[s]]
described = {name: header for name, header in described.items() if name not in archived}
for what, names in (("the map", set(node_of)), ("a public header (CUDAQ_REALTIME_API)", set(declared)),
                    ("docs/api/index.md", set(described))):
    problems += [f"{name} is exported but not in {what}" for name in sorted(set(exported) - names)]
    problems += [f"{name} is in {what} but not exported" for name in sorted(names - set(exported))]
problems += [f"{s} is exported in node '{v}', but the map lists it in {node_of[s]}" for s, v in sorted(exported.items())
             if s in node_of and v != node_of[s]]
problems += [f"docs/api/index.md: {s} is in {declared[s]}, not {h}" for s, h in sorted(described.items())
             if s in declared and h != declared[s]]
problems += [f"{s}: exported names begin with cudaq_" for s in sorted(exported) if not s.startswith("cudaq_")]
problems += [f"{s} is exported, but it was withdrawn: {WITHDRAWN[s]}" for s in sorted(set(exported) & set(WITHDRAWN))]
if not exported:
    problems.append("no exported symbol found")
print("\n".join(problems) or f"{len(exported)} symbols: exported, listed, declared and described")
sys.exit(bool(problems))
