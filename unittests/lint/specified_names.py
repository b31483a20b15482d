#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of the specification's names is true: each row names a file that exists and contains the names of the
column `here`, or gives a reason why there is none."""
import re

import tree

PAGE = "docs/guide/specification_names.md"
problems, rows = [], 0
for number, line in enumerate(tree.text(PAGE).split("\n"), 1):
    if not line.startswith("| ") or line.startswith("| specification |"):
        continue
    rows += 1
    here, where = [cell.strip() for cell in line.split("|")][3:5]
    if here.startswith("absent"):
        if not re.match(r"absent[:,] \S", here):
            problems.append(f"{PAGE}:{number}: no reason why it is absent")
        continue
    names = re.findall(r"`([^`]+)`", here)
    # A link, if the page is installed with what it names; else `the path in this repository`.
    paths = [(tree.root() / PAGE).parent / name for name in re.findall(r"\]\(([^)#\s]+)", where)]
    paths += [tree.root() / name for name in re.findall(r"`([^`]+)`", where)]
    if not names or not paths:
        problems.append(f"{PAGE}:{number}: a row needs a name and a file, or 'absent: ' and the reason")
        continue
    for path in paths:
        if not path.is_file():
            problems.append(f"{PAGE}:{number}: {path.name} does not exist")
    text = "".join(path.read_text(errors="replace") for path in paths if path.is_file())
    problems += [f"{PAGE}:{number}: '{name}' is not in {', '.join(p.name for p in paths)}"
                 for name in names if name not in text]
tree.report(problems, rows, "names of the specification have a counterpart or a reason")
