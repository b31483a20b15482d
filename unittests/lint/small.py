#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files stay small and finished: at most as many lines as LIMITS allows, no notes of unfinished work, no trailing
blanks, one newline at the end. Of a file that is longer than USUAL the check prints a warning: perhaps it has two
subjects. A class stays in one file; it is not cut only because of its length. The check reads every text file that
people write. A page of docs/concepts is read at one sitting: at most WORDS words."""
import fnmatch
import re

import tree

USUAL = 400
WORDS = 900
# The first pattern that matches a path decides. A * also matches slashes.
LIMITS = (
    ("*.md", None),  # prose is divided by subject, not by length
    ("*", 600),
)
# Path: reason. Not checked.
NOT_WRITTEN_BY_HAND = {
    "unittests/abi/*.abi": "abidw writes it",
    "*.b8": "recorded shots",
    "*.dem": "written by Stim",
    "unittests/qec/decoding/learned/golden/*": "written by make_golden.py",
    "training/predecoder/weights/*.safetensors": "written by publish.py",
    "training/predecoder/logs/*.jsonl": "written by train.py",
    "tools/data/*.meta": "written by tools/data/make_data.py",
    "unittests/tools/decode/own/*.*.*": "recorded shots",
    "unittests/tools/decode/own/*.stim": "written by Stim",
    "unittests/fuzz/corpus/*.tar.gz": "inputs of fuzz targets; a fuzzer writes them",
    "docs/performance/*.json": "figures, written by the program",
    "docs/archive/*.json": "figures, written by the program",
    "LICENSE": "a legal text, word for word",
    "*.png": "a picture",
    "*.svg": "a picture",
}
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")


def fits(path, patterns):
    return any(fnmatch.fnmatchcase(str(path), pattern) for pattern in patterns)


problems, warnings = [], []
paths = [p for p in tree.files() if not fits(p, NOT_WRITTEN_BY_HAND)]
for path in paths:
    content = tree.text(path)
    lines = content.split("\n")
    max_lines = next(limit for pattern, limit in LIMITS if fits(path, [pattern]))
    if max_lines and len(lines) - 1 > max_lines:
        problems.append(f"{path}: {len(lines) - 1} lines, at most {max_lines}")
    elif max_lines and len(lines) - 1 > USUAL:
        warnings.append(f"warning: {path}: {len(lines) - 1} lines, more than {USUAL}")
    if path.match("docs/concepts/*.md") and len(content.split()) > WORDS:
        problems.append(f"{path}: {len(content.split())} words, at most {WORDS}")
    if not content.endswith("\n") or content.endswith("\n\n"):
        problems.append(f"{path}: must end with one newline")
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            problems.append(f"{path}:{number}: unfinished: {line.strip()}")
        if line != line.rstrip() and path.suffix != ".md":
            problems.append(f"{path}:{number}: blanks at the end of the line")
        if "\t" in line and path.name != "Makefile":
            problems.append(f"{path}:{number}: a tab")
print(*warnings, sep="\n", end="\n" if warnings else "")
tree.report(problems, len(paths), "files are small and finished")
