#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links in the documents are valid: relative targets exist, and so do the headings that they name. Servers of two
tutorials have different ports, because their tests may run at the same time."""
import re

import tree


def anchors(path):
    for title in re.findall(r"^#+ +(.*?) *$", re.sub(r"```.*?```", "", tree.text(path), flags=re.S), flags=re.M):
        yield re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


problems, ports = [], {}
documents = [p for p in tree.files() if p.suffix == ".md"]
for path in documents:
    content = re.sub(r"```.*?```|`[^`\n]*`", "", tree.text(path), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", content):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = (tree.root() / path.parent / name) if name else tree.root() / path
        if not there.exists():
            problems.append(f"{path}: {target} does not exist")
        elif anchor and there.suffix == ".md" and anchor not in set(anchors(there)):
            problems.append(f"{path}: {target}: no such heading")
    if path.parts[:2] == ("docs", "tutorials") or path.name == "README.md" and len(path.parts) == 1:
        for port in sorted(set(re.findall(r"--port[= ](\d+)", tree.text(path)))):
            if ports.setdefault(port, path) != path:
                problems.append(f"{path}: {ports[port]} has the port {port}, too")
tree.report(problems, len(documents), "documents have valid links")
