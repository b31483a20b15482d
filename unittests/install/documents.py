#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The installed documents are whole: documents.py PREFIX. Links between pages lead somewhere. Each page that a library,
a program or a man page names is installed, and each model that a configuration names. Each function of
docs/api/index.md has a man page."""
import pathlib
import re
import sys

prefix = pathlib.Path(sys.argv[1]).resolve()
documents = prefix / "share/doc/cudaq-realtime"
problems = []

pages = [page for page in documents.rglob("*.md")]
for page in pages:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
            problems.append(f"{page.relative_to(documents)}: {target} does not exist")

named = 0
for file in [*prefix.glob("bin/*"), *prefix.glob("lib*/**/*.so"), *prefix.glob("share/man/*/*")]:
    text = file.read_bytes().replace(b"\\-", b"-")
    for before, page in re.findall(rb"((?:[\w.-]+/)*)\b(docs/[\w/]+\.md)", text):
        named += 1
        if before != b"share/doc/cudaq-realtime/" or not (documents / page.decode()).exists():
            problems.append(f"{file.relative_to(prefix)} names {(before + page).decode()}, which is not installed")

for file in documents.rglob("*.yaml"):
    for model in re.findall(r"^ *dem_file: (\S+)", file.read_text(), flags=re.MULTILINE):
        if not (file.parent / model).exists():
            problems.append(f"{file.relative_to(documents)}: {model} does not exist")

manual = prefix / "share/man/man3"
for function in re.findall(r"^\| `(\w+)` \|", (documents / "docs/api/index.md").read_text(), flags=re.MULTILINE):
    if not (manual / f"{function}.3").exists():
        problems.append(f"{function} has no man page")
for page in manual.glob("*.3"):
    for target in re.findall(r"^\.so (.*)$", page.read_text(), flags=re.MULTILINE):
        if not (manual.parent / target).exists():
            problems.append(f"{page.name} leads to {target}, which does not exist")

print("\n".join(sorted(set(problems))))
print(f"{len(pages)} pages, named in {named} places; {len(list(manual.glob('*.3')))} man pages of the C API")
sys.exit(1 if problems or not pages or not named else 0)
