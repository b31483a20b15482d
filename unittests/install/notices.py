#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""THIRD_PARTY_NOTICES.txt names each installed program and library in which code of another project is found,
with the text of each licence and the versions of cmake/pymatching: notices.py PREFIX. The code is found by texts and
type names that it leaves in a stripped file."""
import pathlib
import re
import sys

# The heading of the notice, and the marks of that code.
MARKS = {
    "NVIDIA CUDA runtime": [b"no CUDA-capable device is detected", b"libcuda.so.1"],
    "PyMatching": [b"No perfect matching could be found. This likely means"],
    "Stim": [b"N4stim"],
    "Chromobius": [b"N10chromobius"],
    "CLI11": [b"N3CLI"],
    "JSON for Modern C++": [b"N8nlohmann"],
    "NVIDIA CCCL": [b"N4cuda3std"],
}
# What a notice may write in place of names.
GROUPS = {"the programs": ["cudaq-realtime", "cudaq-realtime-gpu", "cudaq-realtime-bench"]}

prefix = pathlib.Path(sys.argv[1])
notices = next(prefix.rglob("THIRD_PARTY_NOTICES.txt")).read_text()
named = {}
for name, where in re.findall(r"^=+\n(\S.*)\nLicence: .*\nUsed in: (.*)\n=+$", notices, flags=re.MULTILINE):
    named[name] = {file for part in where.split(", ") for file in GROUPS.get(part, [part])}
files = [file for file in [*prefix.glob("bin/*"), *prefix.glob("lib*/**/*.so*")]
         if file.is_file() and not file.is_symlink() and file.read_bytes()[:4] == b"\x7fELF"]
found, missing = 0, []
for file in files:
    code, name = file.read_bytes(), re.sub(r"\.so.*", "", file.name)
    for project, marks in MARKS.items():
        if not all(mark in code for mark in marks):
            continue
        found += 1
        places = next((places for heading, places in named.items() if heading.startswith(project)), set())
        if name not in places and not ("decoder plug-ins" in places and "chromobius" in name):
            missing.append(f"{file.relative_to(prefix)} has code of {project}, its notice names only {sorted(places)}")
for name, text in re.findall(r"^=+\n(\S.*)\nLicence: .*\nUsed in: .*\n=+\n\n(.*)$", notices, flags=re.MULTILINE):
    if "was not found" in text:
        missing.append(f"{name}: the text of its licence is missing")
acquired = (pathlib.Path(__file__).parents[2] / "cmake/pymatching/AcquirePyMatching.cmake").read_text()
for project in ("PyMatching", "Stim"):
    # The first number only: a directory of the user may have another version.
    wanted = re.search(rf"set\(CUDAQ_{project.upper()}_VERSION (\d+)\.", acquired)[1]
    missing += [f"{heading}: the version of another project" for heading in named
                if re.match(rf"{project} (?!{wanted}\.)\d", heading)]
print("\n".join(missing))
print(f"{len(files)} files, {found} times code of others, {len(missing)} faults")
sys.exit(1 if missing or found < 3 else 0)
