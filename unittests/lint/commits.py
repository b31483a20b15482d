#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The subject of a commit is one line of at most MAX_CHARACTERS, without a period at the end; the body gives the
reason of the change. Usage: commits.py ROOT [FIRST]. The check reads the commits after FIRST, except merges."""
import subprocess
import sys

import tree

MAX_CHARACTERS = 72
# Older subjects were written before this rule existed.
FIRST = "43006eac7a3151b3fa1f54c7d1f5335154fede01"


def git(*arguments):
    return subprocess.run(["git", "-C", tree.root(), *arguments], capture_output=True, text=True, encoding="utf-8",
                          errors="replace")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


first = sys.argv[2] if len(sys.argv) > 2 else FIRST
try:
    top = git("rev-parse", "--show-toplevel")
except OSError:
    skip("git is not installed")
if top.returncode or tree.pathlib.Path(top.stdout.strip()).resolve() != tree.root():
    skip("the tree was exported without its history")
if git("merge-base", "--is-ancestor", first, "HEAD").returncode:
    skip(f"the history does not reach back to {first[:7]} (a shallow clone)")

problems = []
log = git("-c", "log.showSignature=false", "log", "--no-merges", "--format=%h\t%s", f"{first}..HEAD")
log.check_returncode()
commits = [line.split("\t", 1) for line in log.stdout.splitlines()]
for name, subject in commits:
    if len(subject) > MAX_CHARACTERS:
        problems.append(f"{name}: a subject of {len(subject)} characters, at most {MAX_CHARACTERS}: {subject}")
    if subject.endswith("."):
        problems.append(f"{name}: a subject that ends in a period: {subject}")
tree.report(problems, len(commits) + 1, f"commits since {first[:7]}, itself included, have short subjects")
