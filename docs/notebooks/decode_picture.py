#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the decode of one shot on the layout of its code:

    decode_picture.py MODEL.dem PICTURE.svg [--events 3,7,12 | --seed N] [--decoder pymatching]

MODEL.dem has coordinates `detector(x, y, t)`, as Stim's circuits write them. There is a panel for each t: dots are the
detectors, full dots those that fired. A line is an edge of the correction, a short one an edge to the boundary: it
goes to the nearest side of the panel, as a model does not say to which side of the code. An edge between two panels
has a ring at both of its ends, and a dashed line in the later panel if it also moves. Without --events the shot is
sampled from the model. Status: 0, or 2 with a text. It needs cudaq_realtime and stim; the picture has a light and a
dark form."""
import argparse
import html
import pathlib
import sys

import stim

from cudaq_realtime import Decoder

STEP, EDGE, PER_ROW = 26, 30, 4  # pixels between neighbours, around a panel; panels in a row
STYLE = """text{font:12px sans-serif;fill:#1b1e21}.dot{fill:#b9c0c6}.fired{fill:#b4541a}
line{stroke:#2563a8;stroke-width:3;stroke-linecap:round}.moves{stroke-dasharray:4 5}
.ring{fill:none;stroke:#2563a8;stroke-width:2}.frame{fill:#fff;stroke:#d5dade}
@media (prefers-color-scheme:dark){text{fill:#e7e9eb}.dot{fill:#596066}.fired{fill:#f0a06a}
line,.ring{stroke:#79b0ee}.frame{fill:#14181b;stroke:#3a4147}}"""


class Layout:
    """Where each detector is: its panel, and its pixels there."""

    def __init__(self, model):
        noted = model.get_detector_coordinates()
        short = [k for k in range(model.num_detectors) if len(noted.get(k, [])) < 3]
        if short or not noted:
            raise ValueError(f"detector {short[0] if short else 0} has no coordinates x, y, t: the layout is not known")
        self.times = sorted({noted[k][2] for k in noted})
        self.ends = [(min(noted[k][axis] for k in noted), max(noted[k][axis] for k in noted)) for axis in (0, 1)]
        gaps = sorted({abs(noted[a][0] - noted[b][0]) for a in list(noted)[:60] for b in noted} - {0.0})
        self.unit = gaps[0] if gaps else 1.0
        self.places = {k: (self.times.index(noted[k][2]), *self.pixels(noted[k])) for k in noted}
        self.width, self.height = (self.scaled(high - low) + 2 * EDGE for low, high in self.ends)

    def scaled(self, length):
        return STEP * length / self.unit

    def pixels(self, its):
        return tuple(EDGE + self.scaled(its[axis] - self.ends[axis][0]) for axis in (0, 1))

    def outside(self, k):
        """A point beside the nearest side of the code."""
        _, x, y = self.places[k]
        sides = [(x, -1, 0), (self.width - x, 1, 0), (y, 0, -1), (self.height - y, 0, 1)]
        _, to_x, to_y = min(sides)
        return x + to_x * STEP * 0.8, y + to_y * STEP * 0.8


def line(start, end, kind=""):
    return '<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"{}/>'.format(*start, *end, kind)


def parts_of_panels(layout, events, edges):
    panels = [[] for _ in layout.times]
    for first, second in edges:
        panel, *start = layout.places[first]
        if second < 0:
            panels[panel].append(line(start, layout.outside(first)))
            continue
        other, *end = layout.places[second]
        if panel == other:
            panels[panel].append(line(start, end))
            continue
        for where, (x, y) in ((panel, start), (other, end)):
            panels[where].append(f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="9"/>')
        if start != end:
            panels[max(panel, other)].append(line(start, end, ' class="moves"'))
    for k, (panel, x, y) in layout.places.items():
        kind, radius = ("fired", 5.5) if k in events else ("dot", 3.5)
        panels[panel].append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}">'
                             f"<title>detector {k}</title></circle>")
    return panels


def picture(model, events, edges, title):
    layout = Layout(model)
    columns = min(PER_ROW, len(layout.times))
    rows = -(-len(layout.times) // columns)
    wide, high = layout.width + 12, layout.height + 30
    total = max(columns * wide, 8 * len(title)) + 12, rows * high + 36
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total[0]:.0f} {total[1]:.0f}" role="img" '
           f'aria-label="{title}"><style>{STYLE}</style><rect class="frame" width="100%" height="100%"/>'
           f'<text x="12" y="22">{title}</text>']
    for number, parts in enumerate(parts_of_panels(layout, set(events), edges)):
        x, y = 12 + number % columns * wide, 36 + number // columns * high
        out.append(f'<g transform="translate({x:.1f} {y:.1f})"><rect class="frame" width="{layout.width:.1f}" '
                   f'height="{layout.height:.1f}"/><text x="0" y="{layout.height + 16:.1f}">t = '
                   f'{layout.times[number]:g}</text>{"".join(parts)}</g>')
    return "\n".join([*out, "</svg>", ""])


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("picture", type=pathlib.Path)
    shot = parser.add_mutually_exclusive_group()
    shot.add_argument("--events", type=lambda text: [int(k) for k in text.split(",")])
    shot.add_argument("--seed", type=int)
    parser.add_argument("--decoder", default="pymatching")
    given = parser.parse_args(arguments)
    try:
        model = stim.DetectorErrorModel.from_file(given.model)
        events = given.events
        if events is None:
            fired, _, _ = model.compile_sampler(seed=given.seed).sample(1)
            events = [int(k) for k in fired[0].nonzero()[0]]
        decoder = Decoder(given.decoder + ("," if ":" in given.decoder else ":") + "edges=1", model)
        edges = [tuple(map(int, pair)) for pair in decoder.decode_to_edges_array(events)]
        flips = [int(k) for k in decoder.decode(events).nonzero()[0]]
        title = html.escape(f"{given.decoder}: {len(events)} events, {len(edges)} edges, observables that flip: "
                            f"{flips or 'none'}")
        given.picture.write_text(picture(model, events, edges, title))
    except (ValueError, IndexError, RuntimeError, OSError) as error:
        print(f"decode_picture.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
