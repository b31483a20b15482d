#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the loss of trainings over the steps, as SVG. A line of a log has the mean since the line before it.

    plot_log.py training.svg "4 layers, then 6=run/log.jsonl" "64 channels=narrow/log.jsonl" """
import argparse
import json
import math
import pathlib
from xml.sax.saxutils import escape

LOW, HIGH = 0.008, 0.08  # of the loss
COLOURS = ["#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#b9770e"]


def points_of(path):
    before, points = 0, []
    for line in pathlib.Path(path).read_text().splitlines():
        values = json.loads(line)
        if "parameters" in values and not values["resume"] and points:
            before = points[-1][0]  # the steps of another network
        if "loss" in values:
            points.append((before + values["step"], values["loss"]))
    return points


def drawing(lines):
    width, height, left, bottom, right = 640, 400, 60, 50, 20
    longest = max(points[-1][0] for points in lines.values())

    def at(step, loss):
        part = math.log(min(max(loss, LOW), HIGH) / LOW) / math.log(HIGH / LOW)
        x, y = left + step / longest * (width - left - right), height - bottom - part * (height - bottom - 20)
        return f"{x:.1f},{y:.1f}"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             f'font-size="12"><!-- SPDX-License-Identifier: Apache-2.0 -->'
             '<title>Loss of trainings over the steps</title><rect width="100%" height="100%" fill="#fff"/>']
    for loss in (0.01, 0.02, 0.04, 0.08):
        y = at(0, loss).split(",")[1]
        parts.append(f'<path d="M{left},{y} H{width - right}" stroke="#ddd"/>'
                     f'<text x="{left - 8}" y="{y}" text-anchor="end">{loss:g}</text>')
    for step in range(0, longest + 1, 10000):
        x = at(step, LOW).split(",")[0]
        parts.append(f'<path d="M{x},20 V{height - bottom}" stroke="#ddd"/>'
                     f'<text x="{x}" y="{height - bottom + 16}" text-anchor="middle">{step:,}</text>')
    parts.append(f'<text x="{(width + left - right) / 2}" y="{height - 10}" text-anchor="middle">steps</text>')
    for k, ((name, points), colour) in enumerate(zip(lines.items(), COLOURS)):
        y = 40 + 18 * k
        parts.append(f'<path d="M{" L".join(at(*point) for point in points)}" fill="none" stroke="{colour}" '
                     f'stroke-width="2"/><path d="M{width - 190},{y - 4} h18" stroke="{colour}" stroke-width="2"/>'
                     f'<text x="{width - 166}" y="{y}">{escape(name)}</text>')
    return "\n".join(parts) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("svg", type=pathlib.Path)
    parser.add_argument("logs", nargs="+", metavar="NAME=FILE", help=f"at most {len(COLOURS)}")
    o = parser.parse_args()
    logs = [log.rpartition("=")[::2] for log in o.logs]
    if len(logs) > len(COLOURS) or len({name for name, _ in logs if name}) != len(logs):
        parser.error(f"one to {len(COLOURS)} NAME=FILE, each with a name of its own")
    lines = {name: points_of(path) for name, path in logs}
    if not all(lines.values()):
        parser.error("a log without a line of a loss")
    o.svg.write_text(drawing(lines))


if __name__ == "__main__":
    main()
