#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
r"""Each row of a table in the documents has as many cells as the table has columns: a page does not show cells beyond
them. A bar in code also parts two cells; only \| does not."""
import re

import tree


def cells(row):
    return re.sub(r"\\.", "", row).strip().removeprefix("|").removesuffix("|").count("|") + 1


problems = []
documents = [p for p in tree.files() if p.suffix == ".md"]
for path in documents:
    columns, in_code, before = None, False, ""
    for number, line in enumerate(tree.text(path).splitlines(), 1):
        fence = line.lstrip().startswith("```")
        in_code ^= fence
        if fence or in_code or not line.strip():
            columns = None
        elif columns is None:
            if "|" in line and re.fullmatch(r"\s*\|?(\s*:?-+:?\s*\|)*(\s*:?-+:?)?\s*", line):
                columns = cells(line)
                if cells(before) != columns:
                    problems.append(f"{path}:{number}: {columns} columns under a head of {cells(before)}")
        elif cells(line) != columns:
            problems.append(f"{path}:{number}: cells in this row: {cells(line)}, columns of its table: {columns}")
        before = line
tree.report(problems, len(documents), "documents have whole tables")
