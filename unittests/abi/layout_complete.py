#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layout lists contain every struct, field and enumerator of the public headers, and nothing else; the page of what
is frozen names each header of include/cudaq/qec that they cover."""
import pathlib
import re
import sys

import public_headers

root = pathlib.Path(sys.argv[1])

# Only inline code of the defining header uses them, or they are types without values: they never cross a binary
# boundary. Types in .cuh headers do not cross it either: they are for device code that is compiled into the program.
INLINE_ONLY = {"HostDispatchWorker", "HostDispatcherConfig", "RegularKernel", "CooperativeKernel", "DeviceCallMode",
               "GraphLaunchMode", "graph_capture_options", "graph_capture_result"}

# The pipeline and the decoders are C++ interfaces: std::function, std::span and unique_ptr cross them, and their layout
# is not frozen. Only the layout of data on the wire and of the C interfaces is frozen.
NOT_FROZEN, FROZEN = root / "include/cudaq/qec", {"decode_response.h", "decoder_c.h", "decoder_plugin.h",
                                                          "decoding_client.h", "decoding_server.h",
                                                          "decoding_server_wire.h", "stream_c.h"}

listed = "".join((root / "unittests/abi" / name).read_text()
                 for name in ("layout_c.inc", "layout_providers.inc", "layout_cxx.inc"))
sizes = set(re.findall(r"^CUDAQ_SIZE\((\w+),", listed, flags=re.M))
offsets = set(re.findall(r"^CUDAQ_OFFSET\((\w+), (\w+),", listed, flags=re.M))
values = set(re.findall(r"^CUDAQ_VALUE\((\w+),", listed, flags=re.M))

structs = {n: f for n, (f, path) in public_headers.structs(root / "include").items()
           if n not in INLINE_ONLY and path.suffix != ".cuh" and
           (NOT_FROZEN not in path.parents or path.name in FROZEN)}
fields = {(name, field) for name, names in structs.items() for field in names}
enumerators = set(public_headers.enumerators(root / "include"))

problems = [f"CUDAQ_SIZE({name}, ...) is missing" for name in sorted(set(structs) - sizes)]
problems += [f"CUDAQ_OFFSET({s}, {f}, ...) is missing" for s, f in sorted(fields - offsets)]
problems += [f"CUDAQ_VALUE({name}, ...) is missing" for name in sorted(enumerators - values)]
problems += [f"{name} is listed but no public header defines it" for name in sorted(sizes - set(structs))]
page = (root / "docs/guide/frozen.md").read_text()
problems += [f"docs/guide/frozen.md does not name {name}" for name in sorted(FROZEN) if f"`{name}`" not in page]
if len(structs) < 10 or len(enumerators) < 30:
    problems.append("the headers could not be read: too few structs or enumerators")
print("\n".join(problems) or
      f"{len(structs)} structs, {len(fields)} fields, {len(enumerators)} enumerators: all listed")
sys.exit(bool(problems))
