#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of files, folders, functions, types, variables and tests use plain words, too: those of plain_words.py, and
NAME_WORDS, which a sentence may have. A name is read as its words: kNobodyAsked and nobody_asked are 'nobody asked'."""
import re

import tree
from plain_words import C_TEXT, IN_C, IN_PYTHON, WORDS, remove

# Word of a name, in lower case: what to write instead. The meaning of the value in its place is the better name.
NAME_WORDS = {
    r"said": "'response', 'result', 'decision', or what the value is",
    r"asked": "'requested', 'queried', 'polled', or what the value is",
    r"lent": "'taken', 'held_by_caller'",
    r"tells?": "'post', 'report', 'enqueue', 'set'",
    r"gone": "'ended', 'closed', 'absent', 'reported'",
    r"whom": "who exactly: 'dispatcher', 'member'",
    r"seats?": "'member_entry'",
}
# The same, for names of functions and variables only: a test's name is a sentence.
CODE_WORDS = {
    r"says?": "'append', 'print', 'send', 'report', or what the value is",
    r"asks?": "'query', 'call', 'exchange', or what the value is",
    r"lends?": "'hold'",
    r"most": "'max_', 'kMax'",
}
# Names of others: where they come from.
ALLOWED = {
    "serve_forever": "http.server of Python",
}
WORDS_OF_NAMES = {**WORDS, **NAME_WORDS}
del WORDS_OF_NAMES["seeds"]  # of random generators
FORBIDDEN = re.compile(r"(?<!\S)(?:" + "|".join(WORDS_OF_NAMES) + r")(?!\S)")
FORBIDDEN_IN_CODE = re.compile(r"(?<!\S)(?:" + "|".join({**WORDS_OF_NAMES, **CODE_WORDS}) + r")(?!\S)")
SENTENCE = re.compile(r"(?:[A-Z]|test_)")  # how the name of a test begins
NAME = re.compile(r"[A-Za-z_]\w*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
IN_CMAKE = re.compile(r'#[^\n]*|"(?:\\.|[^"\\])*"', re.DOTALL)
# Its variables and functions, where they get their value: much else in a script is text.
IN_SHELL = re.compile(r"(?:^|[\s;(])([A-Za-z_]\w*)(?:\+?=|\(\))|\bfor ([A-Za-z_]\w*) in\b")


def without_text(path):
    """The names of a file, and what is between them. Texts are checked by plain_english.py."""
    if path.suffix in (*C_TEXT, ".map"):
        return remove(IN_C, tree.text(path))
    if path.suffix == ".py":
        return remove(IN_PYTHON, tree.text(path))
    if path.suffix == ".cmake" or path.name == "CMakeLists.txt":
        return remove(IN_CMAKE, tree.text(path))
    if path.suffix == ".sh":
        return "\n".join(" ".join(map("".join, IN_SHELL.findall(line))) for line in tree.text(path).split("\n"))
    return ""


def instead_of(word):
    words = {**WORDS_OF_NAMES, **CODE_WORDS}
    return next(advice for pattern, advice in words.items() if re.fullmatch(pattern, word))


def forbidden_in(name):
    pattern = FORBIDDEN if SENTENCE.match(name) else FORBIDDEN_IN_CODE
    return pattern.search(" ".join(PART.findall(name)).lower())


problems = []
paths = tree.files()
for path in paths:
    if found := forbidden_in(re.sub(r"\W", "_", str(path))):
        problems.append(f"{path}: '{found.group(0)}' in the path: write {instead_of(found.group(0))}")
    reported = set(ALLOWED)
    for number, line in enumerate(without_text(path).split("\n"), 1):
        for name in NAME.findall(line):
            found = forbidden_in(name)
            if found and name not in reported:
                reported.add(name)
                problems.append(f"{path}:{number}: '{found.group(0)}' in {name}: write {instead_of(found.group(0))}")
tree.report(problems, len(paths), "files have plain names")
