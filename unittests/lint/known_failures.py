#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/guide/known_failures.md names, for each failure, the tests whose comments name it: scripts/known_failures.py
would not change the page. Each failure has such a test, or a reason why not."""
import pathlib
import sys

import tree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import known_failures as writer  # noqa: E402

page = tree.text(writer.PAGE)
updated, problems, count = writer.update(page)
if not problems and updated != page:
    stale = next(old for old, new in zip(page.split("\n"), updated.split("\n")) if old != new)
    problems.append(f"{writer.PAGE}: scripts/known_failures.py was not run after the tests changed: {stale}")
tree.report(problems, count, f"failures have tests, which {writer.PAGE} names")
