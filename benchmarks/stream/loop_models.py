#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes models of streams, without Stim: surface_loop_dD_p0.005.dem, from the recorded sets surface_z_dD_p0.005.dem of
tools/data, whose inner rounds are alike.

    loop_models.py FOLDER [--data tools/data]

An endless experiment of the rotated surface code, Z basis, circuit noise of p = 0.005. As in the sets of d = 7 and 13,
components of an error are errors of their own, and equal ones are one: the graph that matching makes of Stim's model. A
repetition is one round, and its coordinate is the time. d = 3 has no inner rounds in its set."""
import argparse
import pathlib
import re

DISTANCES = (5, 7, 13)
DIGITS = 12


def edges_of(lines):
    """(detectors, observables) -> probability of a model: components are edges, and equal edges are one."""
    edges, at = {}, 0

    def take(begin, end):
        nonlocal at
        number = begin
        while number < end:
            line = lines[number].strip()
            if line.startswith("repeat "):
                close = next(k for k in range(number, end) if lines[k].strip() == "}")
                for _ in range(int(line.split()[1])):
                    take(number + 1, close)
                number = close
            elif line.startswith("shift_detectors"):
                at += int(line.split()[-1])
            elif line.startswith("error("):
                p = float(line[len("error("):line.index(")")])
                for component in line[line.index(")") + 1:].split("^"):
                    detectors = tuple(sorted(at + int(d) for d in re.findall(r"D(\d+)", component)))
                    key = detectors, tuple(re.findall(r"L\d+", component))
                    old = edges.get(key, 0.0)
                    edges[key] = old * (1 - p) + p * (1 - old)
            number += 1

    take(0, len(lines))
    return edges


def loop_model(text, distance):
    """A model with a loop, of one whose rounds from the third to the last but two are alike."""
    half = (distance * distance - 1) // 2  # detectors of the first and of the last round
    begins = [0] + [half + 2 * half * k for k in range(distance + 1)]
    rounds = [[] for _ in begins[:-1]]
    for (detectors, observables), p in sorted(edges_of(text.splitlines()).items()):
        first = max(k for k in range(distance + 1) if begins[k] <= detectors[0])
        targets = " ".join([f"D{d - begins[first]}" for d in detectors] + list(observables))
        rounds[first].append(f"error({p:.{DIGITS}g}) {targets}")
    assert all(r == rounds[2] for r in rounds[2:distance - 1]), "the inner rounds are not alike"

    def block(number, indent=""):
        size = 2 * half if 0 < number < distance else half
        named = [f"detector(0) D{k}" for k in range(size)]
        return [indent + line for line in [*rounds[number], *named, f"shift_detectors(1) {size}"]]

    lines = [*block(0), *block(1), "repeat 1000 {", *block(2, "    "), "}"]
    for number in range(distance - 1, distance + 1):
        lines += block(number)
    return "\n".join(lines) + "\n"


def write_all(folder, data):
    """The files that it has written."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for distance in DISTANCES:
        text = (data / f"surface_z_d{distance}_p0.005.dem").read_text()
        made.append(folder / f"surface_loop_d{distance}_p0.005.dem")
        made[-1].write_text(loop_model(text, distance))
    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2] / "tools" / "data")
    given = parser.parse_args()
    for path in write_all(given.folder, given.data):
        print(path)
