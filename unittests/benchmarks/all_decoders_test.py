#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""benchmarks/decoding/all_decoders.py, quickly: its rows, reasons of refusals, a program that fails.
all_decoders_test.py SOURCE BENCH"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

source, bench = (pathlib.Path(argument) for argument in sys.argv[1:3])
data = source / "tools/data"


def run(*arguments, status=0):
    ended = subprocess.run([sys.executable, str(source / "benchmarks/decoding/all_decoders.py"), *map(str, arguments)],
                           capture_output=True, text=True, check=False)
    assert ended.returncode == status, (ended.returncode, ended.stdout, ended.stderr)
    return ended.stdout + ended.stderr


with tempfile.TemporaryDirectory() as folder:
    report = pathlib.Path(folder, "report.json")
    text = run("--program", bench, "--shots", 50, "--json", report, "--decoder", "lookup:depth=1",
               data / "bp_osd/color_d3_p0.01.dem")
    rows = {line.split("|")[1].strip().strip("`"): line for line in text.splitlines() if line.startswith("| `")}
    assert {"auto", "bp-osd", "relay-bp", "lookup:depth=1"} <= rows.keys(), text
    assert "not taken" in rows["pymatching"] and "\npymatching: " in text, text
    for name in ("auto", "bp-osd"):
        assert "not taken" not in rows[name], text
    # Each decoder that the program knows has a row.
    unknown = subprocess.run([bench, "decoding", "--dem", data / "surface_z_d3_p0.003.dem", "--decoder", "unknown"],
                             capture_output=True, text=True, check=False).stderr
    known = [re.match("[a-z-]+", name)[0]
             for name in unknown.split("known are ")[1].split(", and the path")[0].split(", ")]
    assert {"pymatching", "race", "sliding-window"} <= set(known), unknown
    for name in known:
        assert any(re.match(rf"{name}\b(?!-)", row) for row in rows), (name, list(rows))

    cases = next(iter(json.loads(report.read_text()).values()))
    # The same shots: `auto` is bp-osd here.
    assert cases["auto"]["failures"] == cases["bp-osd"]["failures"] and cases["auto"]["shot_ns"]["count"] == 50, cases

    slow = run("--program", bench, "--shots", 10**9, "--seconds", 0.2, data / "surface_z_d3_p0.003.dem", status=1)
    assert "auto: longer than 0.2 s" in slow, slow

    broken = pathlib.Path(folder, "broken")
    broken.write_text("#!/bin/sh\necho no memory >&2\nexit 3\n")
    broken.chmod(0o755)
    text = run("--program", broken, data / "surface_z_d3_p0.003.dem", status=1)
    assert "auto: status 3, no report: no memory" in text, text
    assert "is not there: build" in run("--program", folder + "/none", status=2)
    assert "is not a file" in run("--program", broken, folder + "/none.dem", status=2)
