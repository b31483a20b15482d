#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the unpacked source archive with what its build reads: sdist_files.py SOURCE UNPACKED BUILD INPUTS.

INPUTS: the files that ninja names. Files that they include are found by their names, as the compiler finds them: beside
the file, in the root, and in include/. Each of these that the source tree has must be in the archive, and of each
folder of the archive at least one file is read. The tests of the package are in it, with the files that they name;
those that read pages skip themselves without them."""
import pathlib
import re
import sys

source, unpacked, build, inputs = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
named = {(build / line).resolve() for line in inputs.read_text().splitlines()}
waiting = sorted(path for path in named if path.is_relative_to(unpacked) and not path.is_relative_to(build))
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', flags=re.MULTILINE)
SOURCES = {".c", ".cpp", ".h", ".cuh"}
read, missing = set(waiting), []
while waiting:
    path = waiting.pop()
    if not path.exists():
        missing.append(f"{path.relative_to(unpacked)} is not in the archive")
        continue
    for name in INCLUDE.findall(path.read_text()) if path.suffix in SOURCES else ():
        places = [folder / name for folder in (path.parent, unpacked, unpacked / "include")]
        found = next((place for place in places if place.exists()), None)
        if found and found.resolve() not in read:
            read.add(found.resolve())
            waiting.append(found.resolve())
        elsewhere = [p.relative_to(unpacked) for p in places if p.is_relative_to(unpacked)]
        if not found and any((source / place).exists() for place in elsewhere):
            missing.append(f"{path.relative_to(unpacked)} includes {name}, which is not in the archive")
for test in sorted((source / "unittests/python").rglob("*.py")):
    if test.name.startswith(("test_", "conftest")):
        named = re.findall(r'"(?:unittests/)?([\w./]+/[\w./]+)"', test.read_text())
        for name in [str(test.relative_to(source / "unittests")), *named]:
            path = f"unittests/{name}"
            if (source / path).exists() and not (unpacked / path).exists():
                missing.append(f"{path}, of the tests, is not in the archive")
of_users = {"LICENSE", "PKG-INFO", "README.md", "benchmarks", "pyproject.toml", "unittests"}
folders = {path.name for path in unpacked.iterdir()}
missing += [f"the archive has no {name}" for name in sorted(of_users - folders)]
missing += [f"the build reads nothing of {name}" for name in sorted(
    folders - of_users - {path.relative_to(unpacked).parts[0] for path in read})]
if missing or len(read) < 200:
    sys.exit("\n".join(sorted(missing)) or f"only {len(read)} files are read")
print(f"the build reads {len(read)} files of the archive")
