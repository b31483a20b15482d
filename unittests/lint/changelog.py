#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/changelog.md has the form of keep-a-changelog: first `Unreleased`, then the released versions, the newest first,
each with its date; inside a version only the six kinds of changes, each once and not empty. The newest released version
is not newer than that of version.h. `Unreleased` is a page that one reads: a change that no user
notices has no line, and several changes of one thing have one."""
import re

import tree

PAGE = "docs/changelog.md"
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
MAX_LINES = 200  # of `Unreleased`
RELEASE = re.compile(r"\[(\d+)\.(\d+)\.(\d+)(?:-([a-z0-9]+))?\] - \d{4}-\d{2}-\d{2}")


def of_header():
    text = tree.text("include/cudaq/realtime/version.h")
    numbers = re.findall(r"#define CUDAQ_REALTIME_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text)
    return ordered(*numbers, *re.findall(r'#define CUDAQ_REALTIME_VERSION_PRERELEASE "(\w*)"', text))


def ordered(major, minor, patch, before=None):
    """1.0.0-rc1 is older than 1.0.0-rc10, and this is older than 1.0.0."""
    word, number = re.fullmatch(r"(\D*)(\d*).*", before or "~").groups()
    return int(major), int(minor), int(patch), word, int(number or 0)


problems = []
titles = re.findall(r"^## (.*)$", tree.text(PAGE), flags=re.MULTILINE)
if titles[:1] != ["[Unreleased]"]:
    problems.append(f"{PAGE}: the first version must be '## [Unreleased]'")
released = []
for title in titles[1:]:
    found = RELEASE.fullmatch(title)
    if not found:
        problems.append(f"{PAGE}: '{title}': write '[1.2.3] - 2030-01-31'")
    else:
        released.append(ordered(*found.groups()))
if released != sorted(set(released), reverse=True):
    problems.append(f"{PAGE}: the newest version must come first, and each once")
if released and released[0] > of_header():
    problems.append(f"{PAGE}: {titles[1]} is released, but the version of version.h is older")
for title, body in re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", tree.text(PAGE), flags=re.MULTILINE):
    if title == "[Unreleased]" and body.count("\n") > MAX_LINES:
        problems.append(f"{PAGE}: {title} has {body.count(chr(10))} lines, at most {MAX_LINES}: join some")
    kinds = re.findall(r"^### (.*)\n((?:(?!### ).*\n)*)", body, flags=re.MULTILINE)
    names = [kind for kind, _ in kinds]
    if names != [kind for kind in KINDS if kind in names]:
        problems.append(f"{PAGE}: {title}: sections are {', '.join(KINDS)}, in this order, each once; not {names}")
    problems += [f"{PAGE}: {title}: '{kind}' is empty" for kind, text in kinds if not text.strip()]
tree.report(problems, len(titles), "versions in the changelog")
