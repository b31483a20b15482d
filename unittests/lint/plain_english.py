#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Comments, documents and messages use plain words and short lines. WORDS (plain_words.py) lists the words that must
not be used, and what to write instead; ALLOWED lists the exceptions, each with its reason. URLs and code in documents
are not checked, and names are checked by plain_names.py. A line has at most COLUMNS columns; URLs, and table rows and
code blocks of documents, may be longer."""
import fnmatch
import re

import tree
from plain_words import C_TEXT, IN_C, IN_PYTHON, WORDS, remove, removed

COLUMNS = 120
# (path, word): reason. A * in a path also matches slashes; the word * means all words.
ALLOWED = {
    ("unittests/lint/plain_*.py", "*"): "the list itself",
    ("unittests/lint/self_test.py", "*"): "plants what the checks must find",
}
# Path: reason. Not checked.
NOT_WRITTEN_BY_HAND = {
    "LICENSE": "a legal text, word for word",
    "*.json": "figures and settings, written by programs",
    "*.abi": "written by abidw",
    "*.png": "a picture",
    "*.csv": "counts, written by programs",
    "*.svg": "a picture",
    "*.b8": "recorded shots",
    "*.dem": "written by Stim",
    "unittests/qec/decoding/learned/golden/*": "written by make_golden.py",
    "training/predecoder/weights/*.safetensors": "written by publish.py",
    "training/predecoder/logs/*.jsonl": "written by train.py",
    "tools/data/*.meta": "written by make_data.py",
    "unittests/tools/decode/own/*.*.*": "recorded shots",
    "unittests/tools/decode/own/*.stim": "written by Stim",
    "unittests/fuzz/corpus/*.tar.gz": "inputs of fuzz targets",
    "unittests/qec/server/golden/*frames.txt": "written by make_frames.py",
    "unittests/transport/roce/golden/*.txt": "written by programs",
}

# Between two words of a phrase. At the end of a line, the next line may begin with a comment sign or a quote.
GAP = r'(?:[ \t]+|[ \t"]*\n[ \t"/*#>]*)'
# Not part of an identifier, an option, a variable, a call, an assignment or a file name.
FORBIDDEN = re.compile(r"(?<![\w$])(?<!--)(?<!\$\{)(?:" + "|".join(WORDS).replace(" ", GAP) + r")(?![\w=(]|\.\w)",
                       re.IGNORECASE)
FENCED_BLOCK = re.compile(r"^[ >]*(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^[ >]*(?P=fence)[`~]*[ ]*$|\Z)",
                          re.DOTALL | re.MULTILINE)
INLINE_CODE = re.compile(r"(?P<quote>`+)(?:(?!\n[ ]*\n).)+?(?P=quote)|(?<=\])\([^)\n]*\)", re.DOTALL)
URL = re.compile(r"\w+://[^\s)>\"']+")


def fits(path, patterns):
    return any(fnmatch.fnmatchcase(str(path), pattern) for pattern in patterns)


def only_group_1(pattern, text):
    parts, end = [], 0
    for match in pattern.finditer(text):
        parts += removed(text[end:match.start()]), match.group(1) or removed(match.group(0))
        end = match.end()
    return "".join(parts)


def for_people(path, text):
    """The text without the parts that are not checked; its lines keep their numbers."""
    if path.suffix in C_TEXT:
        text = only_group_1(IN_C, text)
    elif path.suffix == ".py":
        text = only_group_1(IN_PYTHON, text)
    elif path.suffix == ".md":
        text = remove(INLINE_CODE, remove(FENCED_BLOCK, text))
    return remove(URL, text)


def long_lines(path, text):
    if path.suffix == ".md":
        text = remove(FENCED_BLOCK, text)
    for number, line in enumerate(text.split("\n"), 1):
        table_row = path.suffix == ".md" and line.lstrip().startswith("|")
        if len(line) > COLUMNS and len(URL.sub("", line)) > COLUMNS and not table_row:
            yield number, len(line)


def instead_of(word):
    return next(advice for pattern, advice in WORDS.items() if re.fullmatch(pattern, word))


problems = []
paths = [p for p in tree.files() if not fits(p, NOT_WRITTEN_BY_HAND)]
for path in paths:
    text = tree.text(path)
    allowed = {word for pattern, word in ALLOWED if fits(path, [pattern])}
    checked = for_people(path, text)
    for match in FORBIDDEN.finditer(checked):
        word = " ".join(re.findall(r"\w+", match.group(0).lower()))
        if allowed.isdisjoint(("*", word)):
            number = checked.count("\n", 0, match.start()) + 1
            problems.append(f"{path}:{number}: '{word}': write {instead_of(word)}")
    for number, length in long_lines(path, text):
        problems.append(f"{path}:{number}: {length} columns, at most {COLUMNS}")
tree.report(problems, len(paths), "files use plain words and short lines")
