#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the Python of a page or of a notebook as one session: run_page.py PAGE.

Of a page, the ```python blocks: a line `>>>` is typed; the lines after it are what Python prints, with `...` for any
text. A page without such lines fails. Of a notebook (.ipynb), the code cells, which check themselves with `assert`. A
notebook that Jupyter cannot open, or that has outputs, fails."""
import doctest
import json
import os
import pathlib
import re
import sys


def run_page(page):
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(session)
    print(f"{page.name}: {tried - failed} of {tried} examples work as shown")
    return 1 if failed or not tried else 0


def check_notebook(notebook):
    """The parts of Jupyter's schema, nbformat 4.5, that are used here."""
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids) and all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", one) for one in ids)
    for cell in notebook["cells"]:
        keys = {"cell_type", "id", "metadata", "source"}
        if cell["cell_type"] == "code":
            keys |= {"execution_count", "outputs"}
            assert cell["outputs"] == [] and cell["execution_count"] is None, f"{cell['id']} has outputs"
        else:
            assert cell["cell_type"] == "markdown"
        assert set(cell) == keys and all(isinstance(line, str) for line in cell["source"])


def run_notebook(page):
    os.environ.setdefault("MPLBACKEND", "agg")
    notebook = json.loads(page.read_text())
    check_notebook(notebook)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert any("assert " in line for cell in code for line in cell["source"]), "nothing is checked"
    session = {"__name__": page.stem}
    for cell in code:
        exec(compile("".join(cell["source"]), f"{page.name}, {cell['id']}", "exec"), session)
    print(f"{page.name}: {len(code)} cells ran")
    return 0


if __name__ == "__main__":  # the worker processes of sinter import this file
    path = pathlib.Path(sys.argv[1])
    sys.exit(run_notebook(path) if path.suffix == ".ipynb" else run_page(path))
