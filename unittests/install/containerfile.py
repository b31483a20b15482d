#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Containerfile: containerfile.py sound|builds SOURCE.

sound: its instructions are known, its stages, shell commands and copied files exist, and it installs the packages that
scripts/bootstrap.sh calls necessary. builds: podman or docker builds it, and the demo runs. Skipped without a builder
that works, or without network for it."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

way, source = sys.argv[1], pathlib.Path(sys.argv[2])
INSTRUCTIONS = {"FROM", "RUN", "COPY", "USER", "ENTRYPOINT", "CMD", "WORKDIR", "ENV", "ARG", "LABEL"}
text = (source / "Containerfile").read_text()
joined = re.sub(r"\\\n", " ", "".join(line + "\n" for line in text.split("\n") if not line.startswith("#")))
problems, stages, seen = [], {}, []
for line in filter(str.strip, joined.split("\n")):
    word, _, rest = line.partition(" ")
    seen.append(word)
    if word not in INSTRUCTIONS:
        problems.append(f"unknown instruction {word}")
    elif word == "FROM":
        named = re.fullmatch(r"\S+:\S+(?: AS (\w+))?", rest.strip())
        problems += [] if named else [f"FROM {rest}: an image with a tag, and AS with a name"]
        stages.update({named.group(1): None} if named and named.group(1) else {})
    elif word == "COPY":
        *what, _ = [w for w in rest.split() if not w.startswith("--")]
        stage = re.search(r"--from=(\w+)", rest)
        if stage and stage.group(1) not in stages:
            problems.append(f"COPY {rest}: no stage {stage.group(1)}")
        folder = stages.get(stage.group(1)) if stage else source
        problems += [f"COPY {rest}: {folder / w} does not exist" for w in what if folder and not (folder / w).exists()]
    elif word == "RUN":
        checked = subprocess.run(["bash", "-n", "-c", rest], capture_output=True, text=True, check=False)
        problems += [checked.stderr] if checked.returncode else []
    elif word in ("ENTRYPOINT", "CMD"):
        try:
            json.loads(rest)
        except ValueError:
            problems.append(f"{word} {rest}: a list of strings")
problems += [f"no instruction {word}" for word in ("FROM", "USER", "ENTRYPOINT") if word not in seen]
table = re.search(r"^table\(\).*?^T$", (source / "scripts/bootstrap.sh").read_text(), flags=re.DOTALL | re.MULTILINE)
needed = re.findall(r"^must\|[^|]*\|([^|]*)\|", table.group(0), flags=re.MULTILINE)
problems += [f"apt-get does not install {package}" for package in needed if f" {package} " not in joined]
if problems or not needed:
    sys.exit("\n".join(f"Containerfile: {p}" for p in problems) or "no packages found in scripts/bootstrap.sh")
print(f"Containerfile: {len(seen)} instructions are sound")

if way == "sound":
    sys.exit(0)


def works(*command):
    return subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == 0


builder = next((b for b in ("podman", "docker") if shutil.which(b) and works(b, "info")), None)
if not builder or not works(builder, "pull", "debian:12"):
    reason = f"{builder} cannot get the image debian:12" if builder else "neither podman nor docker works here"
    print(f"skipped: {reason}")
    sys.exit(77)
subprocess.run([builder, "build", "--file", source / "Containerfile", "--tag", "cudaq-realtime-test", source],
               check=True)
subprocess.run([builder, "run", "--rm", "cudaq-realtime-test", "demo", "--config", "d3"], check=True)
