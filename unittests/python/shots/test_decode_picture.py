# SPDX-License-Identifier: Apache-2.0
"""The picture of a decode: docs/notebooks/decode_picture.py, a program of the documents."""
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import pytest

PROGRAM = pathlib.Path(__file__).parents[3] / "docs/notebooks/decode_picture.py"
if not PROGRAM.exists():
    pytest.skip("an archive of the sources has no documents", allow_module_level=True)
# Three detectors in a row, seen twice: D0 to D2 at t = 0, D3 to D5 at t = 1.
PLACES = "".join(f"detector({2 * x}, 1, {t}) D{3 * t + x}\n" for t in range(2) for x in range(3))
ERRORS = "error(0.01) D0 L0\nerror(0.02) D0 D1\nerror(0.02) D1 D2\nerror(0.02) D1 D4\nerror(0.001) D1 D5\n" \
         "error(0.02) D3 D4\nerror(0.02) D4 D5\n"


def run(tmp_path, model, *arguments):
    (tmp_path / "model.dem").write_text(model)
    return subprocess.run([sys.executable, PROGRAM, tmp_path / "model.dem", tmp_path / "out.svg", *arguments],
                          capture_output=True, text=True, timeout=60)


def drawn(tmp_path):
    """Of each panel: the detectors that fired, lines, dashed lines, rings."""
    name = "{http://www.w3.org/2000/svg}"
    panels = []
    for panel in xml.etree.ElementTree.parse(tmp_path / "out.svg").getroot().iter(f"{name}g"):
        circles, lines = list(panel.iter(f"{name}circle")), list(panel.iter(f"{name}line"))
        fired = [int(c[0].text.split()[1]) for c in circles if c.get("class") == "fired"]
        moves = sum(one.get("class") == "moves" for one in lines)
        panels.append((fired, len(lines) - moves, moves, sum(c.get("class") == "ring" for c in circles)))
    return panels


@pytest.mark.parametrize("events, expected", [
    ("0", [([0], 1, 0, 0), ([], 0, 0, 0)]),  # to the boundary
    ("1,2", [([1, 2], 1, 0, 0), ([], 0, 0, 0)]),
    ("1,4", [([1], 0, 0, 1), ([4], 0, 0, 1)]),  # a wrong measurement
    ("0,5", [([0], 1, 0, 1), ([5], 0, 1, 1)]),  # D0 D1, and D1 D5, which also moves: 10.8; by D4 it is 11.7
])
def test_each_edge_is_in_the_panel_of_its_time(tmp_path, events, expected):
    ended = run(tmp_path, PLACES + ERRORS, "--events", events)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert drawn(tmp_path) == expected


def test_the_same_seed_draws_the_same_shot(tmp_path):
    pictures = []
    for _ in range(2):
        assert run(tmp_path, PLACES + ERRORS, "--seed", "7").returncode == 0
        pictures.append((tmp_path / "out.svg").read_text())
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize("model, arguments, text", [
    (ERRORS, ["--events", "0"], "detector 0 has no coordinates"),
    ("no model", [], "decode_picture.py:"),
    (PLACES + ERRORS, ["--events", "9"], "outside the model"),
    (PLACES + ERRORS, ["--decoder", "lookup"], "edges"),
    (PLACES + "error(0.1) D0 D1\n", ["--events", "0"], "no error of the model causes"),
])
def test_what_cannot_be_drawn_is_refused(tmp_path, model, arguments, text):
    ended = run(tmp_path, model, *arguments)
    assert ended.returncode == 2 and text in ended.stderr and "Traceback" not in ended.stderr, ended.stderr
    assert not (tmp_path / "out.svg").exists()
