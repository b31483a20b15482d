#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Code in the documents is compiled code. The lines of each ```c, ```cpp or ```cuda block of README.md and docs/ occur
word for word, in one piece, in a file of docs/examples/ (built and run), in a test, or in a public header. A block that
is not code of the project (pseudo code, frames, output) is written as ```text."""
import textwrap

import tree

LANGUAGES = {"c", "cpp", "c++", "cuda"}


def normal(text):
    return "\n".join(line.rstrip() for line in textwrap.dedent(text).strip("\n").split("\n"))


def blocks(path):
    """Yields (line number, language, text) of each fenced block."""
    language = None
    for number, line in enumerate(tree.text(path).split("\n"), 1):
        stripped = line.strip()
        if language is None and stripped.startswith("```"):
            language, start, body = stripped[3:].split(" ")[0].lower(), number, []
        elif language is not None and stripped == "```":
            yield start, language, "\n".join(body)
            language = None
        elif language is not None:
            body.append(line)
    if language is not None:
        yield start, "unclosed", ""


places = {}  # line: where code has it, as (lines, index)
for source in tree.code("docs/examples/", "include/", "unittests/"):
    lines = tree.text(source).split("\n")
    for index, line in enumerate(lines):
        places.setdefault(line.strip(), []).append((lines, index))


def is_quoted(block):
    wanted = normal(block)
    size = wanted.count("\n") + 1
    return any(normal("\n".join(lines[index:index + size])) == wanted
               for lines, index in places.get(wanted.split("\n")[0].strip(), ()))


problems = []
looked_at = 0
documents = [p for p in tree.files() if p.suffix == ".md" and (len(p.parts) == 1 or p.parts[0] == "docs")]
for path in documents:
    for number, language, text in blocks(path):
        looked_at += 1
        if language == "unclosed":
            problems.append(f"{path}:{number}: the block does not end")
        elif language in LANGUAGES and not is_quoted(text):
            problems.append(f"{path}:{number}: not found word for word in docs/examples/, unittests/ or include/")
tree.report(problems, looked_at or len(documents), "blocks of the documents are text or compiled code")
