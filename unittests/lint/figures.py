#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reports in docs/performance and docs/archive have the stored form: no histograms, because a report has their
percentiles, and one line for each case, point or row. A report of the program gets this form by

    python3 unittests/lint/figures.py . --write docs/performance/FILE.json...
"""
import json
import pathlib
import sys

import tree

# Lists or objects, each of whose elements has a line of its own.
TABLES = ("cases", "curves", "figures", "points", "ratios", "rows")


def without_histograms(value):
    if isinstance(value, dict):
        return {k: without_histograms(v) for k, v in value.items() if k != "histogram"}
    return [without_histograms(v) for v in value] if isinstance(value, list) else value


def entries(value):
    """(prefix, element) of each element of a list or an object."""
    if isinstance(value, dict):
        return [(json.dumps(name, ensure_ascii=False) + ": ", name, v) for name, v in value.items()]
    return [("", None, v) for v in value]


def on_lines(value, is_table, indent):
    if not value or not is_table and not (isinstance(value, dict) and any(name in value for name in TABLES)):
        return json.dumps(value, ensure_ascii=False)
    begin, end = "{}" if isinstance(value, dict) else "[]"
    inner = indent + " "
    lines = [inner + prefix + on_lines(v, not is_table and name in TABLES, inner) for prefix, name, v in entries(value)]
    return f"{begin}\n" + ",\n".join(lines) + f"\n{indent}{end}"


def stored(text):
    return on_lines(without_histograms(json.loads(text)), False, "") + "\n"


if sys.argv[2:3] == ["--write"]:
    for file in map(pathlib.Path, sys.argv[3:]):
        file.write_text(stored(file.read_text()))
    sys.exit()
reports = [p for p in tree.files() if str(p).startswith(("docs/performance/", "docs/archive/")) and p.suffix == ".json"]
problems = [f"{p}: not in the stored form; run unittests/lint/figures.py . --write {p}"
            for p in reports if tree.text(p) != stored(tree.text(p))]
tree.report(problems, len(reports), "reports are without histograms, one case a line")
