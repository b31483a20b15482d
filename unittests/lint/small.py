#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files stay small and finished: at most 420 lines (600 for a model and for a public header), no notes to self, no trailing blanks, a newline at the end."""
import re

import tree

MOST_LINES = 420
MOST_LINES_OF_A_MODEL = 600
MOST_LINES_OF_A_PUBLIC_HEADER = 600  # the C API is one header
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")
TEXT = tree.CODE + (".py", ".sh", ".cmake", ".txt", ".md", ".pml", ".in", ".map")
problems = []
paths = [p for p in tree.files() if p.suffix in TEXT]
for path in paths:
    content = tree.text(path)
    lines = content.split("\n")
    most = MOST_LINES_OF_A_MODEL if path.suffix == ".pml" else MOST_LINES
    if path.parts[0] == "include":
        most = MOST_LINES_OF_A_PUBLIC_HEADER
    if path.suffix != ".md" and len(lines) - 1 > most:
        problems.append(f"{path}: {len(lines) - 1} lines, at most {most}")
    if not content.endswith("\n") or content.endswith("\n\n"):
        problems.append(f"{path}: must end with one newline")
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            problems.append(f"{path}:{number}: unfinished: {line.strip()}")
        if line != line.rstrip() and path.suffix != ".md":
            problems.append(f"{path}:{number}: blanks at the end of the line")
        if "\t" in line:
            problems.append(f"{path}:{number}: a tab")
tree.report(problems, len(paths), "files are small and finished")
