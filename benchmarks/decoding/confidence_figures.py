#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong shots over discarded ones, and the time of gaps, for docs/decoders/confidence.md. It needs the Python package,
with sinter.

    confidence_figures.py curve [FILE.svg] [--shots N] [--distances 3,5,7] [--noise .003] [--decoder NAME]
    confidence_figures.py time [--distances 3,5,7] [--noise .003]

Goal of `curve`: how many shots are wrong among those that are kept if the shots of the smallest gaps are discarded. All
limits are of the same shots. Goal of `time`: the CPU time of a shot with its gap over that without, on one thread: the
smallest of five rounds, in which both alternate. The circuit is Stim's rotated surface code, distance rounds, noise of
one strength everywhere."""
import argparse
import math
import sys
import time

import numpy as np
from cudaq_realtime import Decoder
from erasure_figures import interval, numbers, surface_code

BATCH = 20000
SHARES = (0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
LOW_X, LOW_Y = 1e-4, 1e-6  # of the picture


def sampled(given, distance, shots, seed):
    circuit = surface_code(distance, 0, given.noise)
    return circuit.detector_error_model(decompose_errors=True), circuit.compile_detector_sampler(seed=seed), shots


def gaps_and_wrong(given, distance):
    """Of each shot its gap, and whether its answer is wrong."""
    dem, sampler, shots = sampled(given, distance, given.shots, given.seed)
    decoder = Decoder(f"{given.decoder}:confidence=1", dem)
    gaps, wrong = np.empty(shots), np.empty(shots, dtype=bool)
    for begin in range(0, shots, BATCH):
        events, flips = sampler.sample(min(BATCH, shots - begin), separate_observables=True)
        room, rows = np.empty((len(events), 1)), slice(begin, begin + len(events))
        wrong[rows] = (decoder.decode_batch(events, gaps=room) != flips).any(axis=1)
        gaps[rows] = np.nan_to_num(room[:, 0], nan=-1, posinf=1e9)  # what is not known is discarded first
    return gaps, wrong


def curve(given):
    lines = {}
    print("| d | discarded | gap of at least | kept | wrong of these | rate (95 %) |\n|---|---|---|---|---|---|")
    for distance in given.distances:
        gaps, wrong = gaps_and_wrong(given, distance)
        order = np.argsort(gaps, kind="stable")
        gaps, wrong = gaps[order], wrong[order]
        left = wrong[::-1].cumsum()[::-1]  # of the shots from here on
        firsts = np.flatnonzero(np.diff(gaps, prepend=-2))  # shots with equal gaps stay together
        for share in SHARES:
            first = int(firsts[np.searchsorted(firsts, share * len(gaps), side="right") - 1])
            kept, count = len(gaps) - first, int(left[first])
            low, high = interval(count, kept)
            print(f"| {distance} | {first / len(gaps):.2%} | {gaps[first]:.1f} | {kept} | {count} | "
                  f"{count / kept:.1e} ({max(low, 0):.1e} to {high:.1e}) |", flush=True)
        picked = firsts[np.unique(np.searchsorted(firsts, np.geomspace(1, 0.6 * len(gaps), 60)))[:-1]]
        lines[distance] = [(first / len(gaps), left[first] / (len(gaps) - first)) for first in picked if left[first]]
    if given.svg:
        with open(given.svg, "w", encoding="utf-8") as file:
            file.write(drawing(lines, given))


def drawing(lines, given):
    """lines: of each distance its points: the share that is discarded, and the rate of the others."""
    width, height, left, bottom, right = 640, 400, 70, 50, 60

    def at(share, rate):
        x = left + (1 - math.log10(max(share, LOW_X)) / math.log10(LOW_X)) * (width - left - right)
        return f"{x:.1f},{20 + math.log10(rate) / math.log10(LOW_Y) * (height - 20 - bottom):.1f}"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             f'font-size="12"><!-- SPDX-License-Identifier: Apache-2.0 -->'
             f'<title>Logical error rate of the shots that are kept over the share that is discarded, '
             f'{given.decoder}, noise {given.noise:g}</title><rect width="100%" height="100%" fill="#fff"/>']
    for power in range(round(math.log10(LOW_Y)), 1):
        y = at(1, 10.0 ** power).split(",")[1]
        parts.append(f'<path d="M{left},{y} H{width - right}" stroke="#ddd"/>'
                     f'<text x="{left - 8}" y="{y}" text-anchor="end">1e{power}</text>')
    for share in (1e-4, 1e-3, 1e-2, 1e-1, 1):
        x = at(share, 1).split(",")[0]
        parts.append(f'<path d="M{x},20 V{height - bottom}" stroke="#ddd"/>'
                     f'<text x="{x}" y="{height - bottom + 16}" text-anchor="middle">{100 * share:g} %</text>')
    parts.append(f'<text x="{(width + left - right) / 2}" y="{height - 10}" text-anchor="middle">discarded</text>')
    for (distance, points), colour in zip(lines.items(), ["#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad"]):
        parts.append(f'<path d="M{" L".join(at(*point) for point in points if point[1] >= LOW_Y)}" fill="none" '
                     f'stroke="{colour}" stroke-width="2"/>')
        x, y = at(*points[0]).split(",")
        parts.append(f'<text x="{float(x) + 6}" y="{float(y) - 6}" fill="{colour}">d = {distance}</text>')
    return "\n".join(parts) + "\n</svg>\n"


def cpu_us(decode, shots):
    begin = time.process_time()
    decode()
    return (time.process_time() - begin) / shots * 1e6


def times(given):
    print("| d | without, us | with the gap, us | ratio |\n|---|---|---|---|")
    for distance in given.distances:
        dem, sampler, shots = sampled(given, distance, BATCH, given.seed)
        events, _ = sampler.sample(shots, separate_observables=True, bit_packed=True)
        plain, sure = Decoder(given.decoder, dem), Decoder(f"{given.decoder}:confidence=1", dem)
        room = np.empty((shots, 1))
        rounds = np.array([(cpu_us(lambda: plain.decode_batch(events, bit_packed_shots=True), shots),
                            cpu_us(lambda: sure.decode_batch(events, bit_packed_shots=True, gaps=room), shots))
                           for _ in range(5)])
        without, with_gap = rounds.min(axis=0)
        print(f"| {distance} | {without:.2f} | {with_gap:.2f} | {with_gap / without:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["curve", "time"])
    parser.add_argument("svg", nargs="?")
    parser.add_argument("--shots", type=int, default=1000000)
    parser.add_argument("--distances", type=numbers(int), default=[3, 5, 7])
    parser.add_argument("--noise", type=float, default=0.003)
    parser.add_argument("--decoder", default="pymatching")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    {"curve": curve, "time": times}[given.what](given)


if __name__ == "__main__":
    sys.exit(main())
