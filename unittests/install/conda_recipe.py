#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cmake/conda/recipe.yaml is YAML with the version of version.h, options that the build has, files that are there and
commands that the program has: conda_recipe.py SOURCE PROGRAM. It builds nothing; where the Python module rattler_build
is installed it reads the recipe, too, and finds fields that its form does not have."""
import pathlib
import re
import subprocess
import sys

try:
    import yaml
except ImportError:
    print("skipped: the Python module yaml is not installed")
    sys.exit(77)

source, program = (pathlib.Path(argument) for argument in sys.argv[1:3])
path = source / "cmake/conda/recipe.yaml"
recipe = yaml.safe_load(path.read_text())
problems = []


def expect(is_so, text):
    if not is_so:
        problems.append(text)


version = subprocess.check_output([source / "scripts/version.sh", "python"], text=True).strip()
expect(recipe["context"]["version"] == version, f"version {recipe['context']['version']}, version.h has {version}")
expect((path.parent / recipe["source"]["path"]).resolve() == source.resolve(), "source.path is not the source tree")
for licence in recipe["about"]["license_file"]:
    expect((source / licence).is_file(), f"{licence} is not there")
build_files = "".join(file.read_text() for file in [source / "CMakeLists.txt", *source.glob("cmake/*.cmake")])
options = re.findall(r"-D(\w+)=", " ".join(recipe["build"]["script"]))
expect(options, "the script sets no option")
for option in options:
    expect(option.startswith("CMAKE_") or re.search(rf"(option|set)\({option}\b", build_files), f"no option {option}")
# What scripts/bootstrap.sh calls necessary to compile, by conda's names.
names = {"libcli11-dev": "cli11", "nlohmann-json3-dev": "nlohmann_json", "libfmt-dev": "fmt", "cmake": "cmake",
         "ninja-build": "ninja", "g++": "${{ compiler('cxx') }}"}
table = (source / "scripts/bootstrap.sh").read_text().split("cat <<'T'\n")[1].split("\nT\n")[0]
listed = {entry if entry.startswith("${{") else entry.split()[0]
          for part in ("build", "host") for entry in recipe["requirements"][part]}
for need, _, debian, _ in (line.split("|") for line in table.splitlines()):
    if need == "must":
        expect(names.get(debian, debian) in listed, f"the recipe does not require {names.get(debian, debian)}")
subcommands = re.findall(r"^  ([a-z]+)  ", subprocess.run([program, "help"], capture_output=True, text=True,
                                                          check=True).stdout, re.MULTILINE)
for command in (line for test in recipe["tests"] for line in test["script"]):
    name, subcommand, *_ = command.split()
    expect(name == "cudaq-realtime" and subcommand in subcommands, f"{command}: the program has no such command")
try:
    import rattler_build
    rattler_build.Stage0Recipe.from_file(str(path))
except ImportError:
    print("not read by rattler-build: the Python module rattler_build is not installed")
print("\n".join(problems) or "the recipe fits the source tree")
sys.exit(bool(problems))
