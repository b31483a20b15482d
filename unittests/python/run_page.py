#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the ```python blocks of a page, in their order, as one session: run_page.py PAGE. A line `>>>` is typed; the
lines after it are what Python prints, with `...` for any text. A page without such lines fails."""
import doctest
import pathlib
import re
import sys


def main(page):
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(session)
    print(f"{page.name}: {tried - failed} of {tried} examples work as shown")
    return 1 if failed or not tried else 0


if __name__ == "__main__":  # the worker processes of sinter import this file
    sys.exit(main(pathlib.Path(sys.argv[1])))
