#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/guide/errors.md has every status of the library with its text, and every text of a refusal that is not about an
argument (those name the field and the accepted values themselves). In the page, `...` stands for a value."""
import re

import tree

PAGE = "docs/guide/errors.md"
# The static texts of the statuses: file, beginning of the function.
STATUS_TEXTS = (("lib/api/status.cpp", "const char *cudaq_status_string"),
                ("lib/api/status.cpp", "const char *cudaq_rpc_status_string"),
                ("lib/qec/decoders/decoder.cpp", "const char *decode_status_text"))
STRING = r'"(?:[^"\\]|\\.)*"'
REASON = re.compile(r"make_reason\(\s*([^,\"]*?CUDAQ_ERR_\w+[^,\"]*?),\s*(" + STRING +
                    r"(?:\s*(?:" + STRING + r"|PRI\w+))*)")
VALUE = re.compile(r"%[-+ #0]*[\d.*]*(?:hh|h|ll|l|z|j|t)?[a-zA-Z]")


def joined(literals):
    """The text of C string literals that follow each other."""
    literals = re.sub(r"PRI\w+", '"d"', literals)
    text = "".join(part[1:-1] for part in re.findall(STRING, literals))
    return text.replace('\\"', '"').replace("\\n", " ").strip()


def shown(text):
    return " ".join(VALUE.sub("...", text).split())


def status_texts():
    for path, start in STATUS_TEXTS:
        source = tree.text(path)
        begin = source.index(start)
        for literal in re.findall(r"return (" + STRING + r");", source[begin:source.index("\n}", begin)]):
            yield path, joined(literal)


def refusals():
    for path in tree.code("lib/", "kernels/", "include/"):
        for status, literals in REASON.findall(tree.text(path)):
            if set(re.findall(r"CUDAQ_ERR_\w+", status)) != {"CUDAQ_ERR_INVALID_ARG"}:
                yield str(path), joined(literals)


problems = []
page = " ".join(tree.text(PAGE).split()) if (tree.root() / PAGE).exists() else ""
quoted = set(re.findall(r"`([^`]+)`", page))
texts = set(status_texts()) | set(refusals()) if page else set()
for path, text in sorted(texts):
    begins = shown(text) + " "  # a text that continues with a macro is quoted with its continuation
    if re.sub(r"[.\s:()]", "", begins) and not any((q + " ").startswith(begins) for q in quoted):
        problems.append(f"{path}: {PAGE} lacks the text `{shown(text)}`")
tree.report(problems, len(texts), "error texts are in the index of errors")
