#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws logical error rates over the distance, with their 95 % intervals, as SVG:

    scripts/plot_errors.py docs/performance/correlated.json            writes correlated.svg beside the report
    scripts/plot_errors.py --check docs/performance/correlated.json    fails if the picture is not that of the report

The report has `points`: distance, p, and reports of `cudaq-realtime-bench decoding` as `cases`."""
import html
import json
import math
import pathlib
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 380, 72, 520, 20, 330  # units of the SVG
COLOURS = ("#2563a8", "#b4541a", "#2f7a43", "#7d4aa5")  # those of the program's pages; a colour for each decoder
DASHES = ("", "7 4", "2 3")  # dashes for each p
STYLE = "text{font:13px sans-serif;fill:#1b1e21}.grid{stroke:#d5dade}polyline{fill:none;stroke-width:2}"


def decade(power):
    return f'10<tspan dy="-5" font-size="9">{power}</tspan>'


def draw(points):
    rates = [bound for p in points for case in p["cases"] for bound in case["interval_95"] if bound > 0]
    low, high = math.floor(math.log10(min(rates))), math.ceil(math.log10(max(rates)))
    distances = sorted({p["distance"] for p in points})
    noise = sorted({p["p"] for p in points})
    names = list(dict.fromkeys(case["name"] for p in points for case in p["cases"]))

    def x(distance):
        return LEFT + 20 + (RIGHT - LEFT - 40) * (distance - distances[0]) / ((distances[-1] - distances[0]) or 1)

    def y(rate):
        return BOTTOM - (BOTTOM - TOP) * (max(math.log10(rate), low) - low) / (high - low)

    out = []
    for power in range(low, high + 1):
        at = y(10.0**power)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
                   f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{decade(power)}</text>')
    out += [f'<text x="{x(d):.1f}" y="{BOTTOM + 20}" text-anchor="middle">{d}</text>' for d in distances]
    middle = (TOP + BOTTOM) / 2
    out.append(f'<text x="{(LEFT + RIGHT) / 2}" y="{BOTTOM + 42}" text-anchor="middle">distance d, d rounds</text>')
    out.append(f'<text transform="translate(16 {middle}) rotate(-90)" text-anchor="middle">logical errors per shot'
               '</text>')
    row = TOP + 10
    for k, name in enumerate(names):
        colour = COLOURS[k % len(COLOURS)]
        for n, p in enumerate(noise):
            series = [(point["distance"], case) for point in points if point["p"] == p for case in point["cases"]
                      if case["name"] == name]
            line = f'stroke="{colour}" stroke-dasharray="{DASHES[n % len(DASHES)]}"'
            out.append(f'<polyline {line} points="' +
                       " ".join(f'{x(d):.1f},{y(case["logical_error_rate"]):.1f}' for d, case in series) + '"/>')
            for d, case in series:
                lowest, highest = (y(bound) for bound in case["interval_95"])
                out.append(f'<line stroke="{colour}" x1="{x(d):.1f}" x2="{x(d):.1f}" y1="{lowest:.1f}" '
                           f'y2="{highest:.1f}"/><circle fill="{colour}" r="3" cx="{x(d):.1f}" '
                           f'cy="{y(case["logical_error_rate"]):.1f}"/>')
            out.append(f'<line {line} stroke-width="2" x1="{RIGHT + 16}" x2="{RIGHT + 44}" y1="{row}" y2="{row}"/>'
                       f'<text x="{RIGHT + 50}" y="{row - 3}">{html.escape(name)}</text>'
                       f'<text x="{RIGHT + 50}" y="{row + 12}">p = {p}</text>')
            row += 42
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
            f'aria-label="Logical errors per shot over the distance">\n<!-- SPDX-License-Identifier: Apache-2.0 -->\n'
            f'<style>{STYLE}</style>\n<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n' + "\n".join(out) +
            "\n</svg>\n")


def main():
    check = sys.argv[1:2] == ["--check"]
    reports = sys.argv[2 if check else 1:]
    if not reports:
        sys.exit(__doc__)
    for report in map(pathlib.Path, reports):
        picture, path = draw(json.loads(report.read_text())["points"]), report.with_suffix(".svg")
        if not check:
            path.write_text(picture)
        elif not path.exists() or path.read_text() != picture:
            sys.exit(f"{path}: not the picture of {report}; scripts/plot_errors.py {report} draws it")


if __name__ == "__main__":
    main()
