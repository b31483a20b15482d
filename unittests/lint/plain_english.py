#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Comments, documents and messages use plain words and short lines. WORDS lists the words that must not be used, and
what to write instead; ALLOWED lists the exceptions, each with its reason. Identifiers, URLs and code in documents are
not checked. A line has at most COLUMNS columns; URLs, and table rows and code blocks of documents, may be longer."""
import fnmatch
import re

import tree

COLUMNS = 120
# Pattern of a word or phrase, in lower case: what to write instead.
WORDS = {
    r"behind": "'after' for time, 'below' or 'beyond' for place",
    r"in front of": "'before'",
    r"nobody|no one": "'no thread', 'no program', or who exactly",
    r"some(?:body|one)|any(?:body|one)|every(?:body|one)": "who exactly: 'another thread', 'the caller', 'each member'",
    r"whoever": "'the thread that', 'the caller that'",
    r"for ever|forever": "'without limit', 'until it is stopped'",
    r"he|him|his|himself|she|her|hers|herself": "'it' for a program, 'they' for a person",
    r"told": "'set', 'reported', 'notified', 'requested'",
    r"(?:see|sees|seen|saw) through": "what is detected, and how",
    r"keeps? house|keeping house|kept house|the house says": "poll_control(), or what it does",
    r"believe[sd]?|believing": "'assumes'; 'verifies' for a negation",
    r"seeds": "'the specification' (the seed of a random generator may be singular)",
    r"in work": "'in progress'",
    r"to be had|can be had": "'available'",
    r"of its own accord": "'by itself'",
    r"crews?|desks?|harvesters?|foresee[ns]?|glance[sd]?": "the word of the glossary (docs/contributing.md)",
    r"ledgers?": "job_table, ring_router or graph_scheduler_state",
    r"upon|hereby|herein|thereof|therein|whereupon|lest|albeit|ere": "a plain word",
}
# (path, word): reason. A * in a path also matches slashes; the word * means all words.
ALLOWED = {
    ("unittests/lint/plain_english.py", "*"): "the list itself",
    ("unittests/lint/self_test.py", "*"): "plants what the checks must find",
    ("docs/testing.md", "seeds"): "names the specification, once",
    ("docs/migration.md", "seeds"): "names the specification",
}
# Path: reason. Not checked.
NOT_WRITTEN_BY_HAND = {
    "LICENSE": "a legal text, word for word",
    "*.json": "figures and settings, written by programs",
    "*.abi": "written by abidw",
    "*.png": "a picture",
    "*.svg": "a picture",
    "*.b8": "recorded shots",
    "*.dem": "written by Stim",
    "tools/data/*.meta": "written by make_data.py",
    "unittests/tools/decode/own/*.*.*": "recorded shots",
    "unittests/tools/decode/own/*.stim": "written by Stim",
    "unittests/fuzz/corpus/*.tar.gz": "inputs of fuzz targets",
    "unittests/qec/server/golden/frames.txt": "written by make_frames.py",
    "unittests/transport/roce/golden/*.txt": "written by programs",
}

# Between two words of a phrase. At the end of a line, the next line may begin with a comment sign or a quote.
GAP = r'(?:[ \t]+|[ \t"]*\n[ \t"/*#>]*)'
# Not part of an identifier, an option, a variable, a call, an assignment or a file name.
FORBIDDEN = re.compile(r"(?<![\w$])(?<!--)(?<!\$\{)(?:" + "|".join(WORDS).replace(" ", GAP) + r")(?![\w=(]|\.\w)",
                       re.IGNORECASE)
# Group 1 is a comment or a string, the parts of a program that people read. An #include and a character such as '"' are
# matched first, because a quote or a comment sign in them begins no string and no comment.
IN_C = re.compile(r"""^[ \t]*\#[ \t]*include[ \t]*(?:"[^"\n]*"|<[^>\n]*>) | '(?:\\.|[^'\\\n])' |
                      (//[^\n]* | /\*.*?\*/ | R"(?P<delimiter>\w*)\(.*?\)(?P=delimiter)" | "(?:\\.|[^"\\\n])*")""",
                  re.DOTALL | re.MULTILINE | re.VERBOSE)
IN_PYTHON = re.compile(r"""(\#[^\n]* | (?P<quote>\"\"\"|'''|"|')(?:\\.|(?!(?P=quote)).)*(?P=quote))""",
                       re.DOTALL | re.VERBOSE)
FENCED_BLOCK = re.compile(r"^[ >]*(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^[ >]*(?P=fence)[`~]*[ ]*$|\Z)",
                          re.DOTALL | re.MULTILINE)
INLINE_CODE = re.compile(r"(?P<quote>`+)(?:(?!\n[ ]*\n).)+?(?P=quote)|(?<=\])\([^)\n]*\)", re.DOTALL)
URL = re.compile(r"\w+://[^\s)>\"']+")


def fits(path, patterns):
    return any(fnmatch.fnmatchcase(str(path), pattern) for pattern in patterns)


def removed(part):
    """What replaces a part that is not checked: its line ends. No phrase continues across it, unless it is blank."""
    return (";" if part.strip() else "") + "\n" * part.count("\n")


def remove(pattern, text):
    return pattern.sub(lambda match: removed(match.group(0)), text)


def only_group_1(pattern, text):
    parts, end = [], 0
    for match in pattern.finditer(text):
        parts += removed(text[end:match.start()]), match.group(1) or removed(match.group(0))
        end = match.end()
    return "".join(parts)


def for_people(path, text):
    """The text without the parts that are not checked; its lines keep their numbers."""
    if path.suffix in (*tree.CODE, ".inc", ".pml"):
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
