#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logical errors with and without heralds, for docs/decoders/heralds.md. It needs the Python package, with sinter.

    erasure_figures.py table [--shots N] [--distances 3,5] [--shares 0,.5,.9] [--noise .01] [--json FILE]
    erasure_figures.py curve FILE.svg [--shots N] [--distances 3,5]
    erasure_figures.py windows [--shots N] [--distances 3,5] [--shares .5,.9]
    erasure_figures.py exact        (all errors of a code of distance 3; no samples)

Goal of `table`: how many shots are wrong if the decoder knows the heralds, and if it has the average probabilities.
Both decode the same shots. `windows`: how many are wrong if a stream decodes them by windows, five times as many rounds
as the distance, beside whole shots. Not measured: times. The circuit is Stim's rotated surface code, distance rounds,
noise of one strength everywhere; each error is an erasure in the given share of the cases, of a gate with two qubits
each of them at half the rate."""
import argparse
import json
import math
import sys
import tempfile
import zlib

import numpy as np
import stim
from cudaq_realtime import Decoder
from cudaq_realtime.heralds import heralded_model
from figure_numbers import interval, numbers

BATCH = 2000


def with_erasures(circuit, share, heralded=True):
    """Each error of the circuit is an erasure in this share of the cases. heralded: with a detector for each; else the
    same errors and no herald."""
    made, records, new = stim.Circuit(), 0, []
    for one in circuit.flattened():
        targets, args = one.targets_copy(), one.gate_args_copy()
        if one.name in ("DEPOLARIZE1", "DEPOLARIZE2", "X_ERROR"):
            if share < 1:
                made.append(one.name, targets, args[0] * (1 - share))
            erased = args[0] * share / (2 if one.name == "DEPOLARIZE2" else 1)
            if erased and not heralded:
                made.append("DEPOLARIZE1", targets, erased * 3 / 4)
            elif erased:
                made.append("HERALDED_ERASE", targets, erased)
                for k in range(len(targets)):
                    made.append("DETECTOR", [stim.target_rec(k - len(targets))])
                records += len(targets)
        elif one.name in ("DETECTOR", "OBSERVABLE_INCLUDE"):
            made.append(one.name, [stim.target_rec(new[target.value] - records) for target in targets], args)
        else:
            made.append(one)
            if stim.gate_data(one.name).produces_measurements:
                new.extend(range(records, records + len(targets)))
                records += len(targets)
    return made


def surface_code(distance, share, noise, heralded=True, rounds=None):
    return with_erasures(stim.Circuit.generated(
        "surface_code:rotated_memory_z", distance=distance, rounds=rounds or distance,
        after_clifford_depolarization=noise, before_round_data_depolarization=noise,
        before_measure_flip_probability=noise, after_reset_flip_probability=noise), share, heralded)


def measure(distance, share, noise, shots, seed):
    """How many shots are wrong: with heralds, without, with only, without only."""
    circuit = surface_code(distance, share, noise)
    made = heralded_model(circuit)
    knows = Decoder("pymatching", made.dem, made.heralds)
    average = Decoder("pymatching", surface_code(distance, share, noise, heralded=False).detector_error_model(
        decompose_errors=True))
    heralds = {int(line.split()[1]) for line in made.heralds.splitlines()[3:]}
    others = np.array([k for k in range(made.num_detectors) if k not in heralds])
    assert len(others) == average.num_detectors
    sampler = circuit.compile_detector_sampler(seed=seed)
    counts = np.zeros(4, dtype=int)
    for begin in range(0, shots, BATCH):
        events, flips = sampler.sample(min(BATCH, shots - begin), separate_observables=True)
        wrong = [(decoder.decode_batch(bits) != flips).any(axis=1)
                 for decoder, bits in ((knows, events), (average, events[:, others]))]
        counts += [wrong[0].sum(), wrong[1].sum(), (wrong[0] & ~wrong[1]).sum(), (wrong[1] & ~wrong[0]).sum()]
    return [int(count) for count in counts]


def table(given):
    rows = []
    print("| d | erased | shots | wrong with heralds | rate (95 %) | wrong without | rate (95 %) | only with | only "
          "without |\n|---|---|---|---|---|---|---|---|---|")
    for distance in given.distances:
        for share in given.shares:
            wrong = measure(distance, share, given.noise, given.shots, given.seed)
            rates = [f"{count / given.shots:.2e} ({low:.1e} to {high:.1e})" for count in wrong[:2]
                     for low, high in [interval(count, given.shots)]]
            print(f"| {distance} | {share} | {given.shots} | {wrong[0]} | {rates[0]} | {wrong[1]} | {rates[1]} | "
                  f"{wrong[2]} | {wrong[3]} |", flush=True)
            rows.append({"distance": distance, "share": share, "noise": given.noise, "shots": given.shots,
                         "seed": given.seed, "wrong_with": wrong[0], "wrong_without": wrong[1]})
    if given.json:
        with open(given.json, "w", encoding="ascii") as file:
            json.dump(rows, file, indent=1)


def windows(given):
    print("| d | erased | shots | wrong: whole shots | windows | parallel windows | ratio (95 %) | parallel |\n"
          "|---|---|---|---|---|---|---|---|")
    for distance in given.distances:
        for share in given.shares:
            circuit = surface_code(distance, share, given.noise, rounds=5 * distance)
            made = heralded_model(circuit, fold_loops=True)
            with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
                file.write(made.heralds)
                file.flush()
                names = ("pymatching:", "sliding-window:inner=pymatching,",
                         "sliding-window:inner=pymatching,mode=parallel,")
                decoders = [Decoder(f"{name}heralds={file.name}", made.dem) for name in names]
            sampler = circuit.compile_detector_sampler(seed=given.seed)
            wrong = np.zeros((3, given.shots), dtype=bool)
            for begin in range(0, given.shots, BATCH):
                events, flips = sampler.sample(min(BATCH, given.shots - begin), separate_observables=True)
                for k, decoder in enumerate(decoders):
                    wrong[k, begin:begin + len(events)] = (decoder.decode_batch(events) != flips).any(axis=1)
            counts = wrong.sum(axis=1)
            ratios = []
            for k in (1, 2):
                only, other = int((wrong[k] & ~wrong[0]).sum()), int((wrong[0] & ~wrong[k]).sum())
                ratio, half = counts[k] / counts[0], 1.96 * math.sqrt(only + other) / counts[0]
                ratios.append(f"{ratio:.3f} ({ratio - half:.3f} to {ratio + half:.3f})")
            print(f"| {distance} | {share} | {given.shots} | {counts[0]} | {counts[1]} | {counts[2]} | {ratios[0]} | "
                  f"{ratios[1]} |", flush=True)


def curve(given):
    """Rates over the strength of the noise, at one share: lines cross at the threshold. A point without a wrong shot is
    a triangle at the upper end of its interval, and no line goes through it."""
    noises = [float(noise) for noise in np.geomspace(0.003, 0.04, 7)]
    lines = {}
    for distance in given.distances:
        for noise in noises:
            wrong = measure(distance, given.shares[-1], noise, given.shots, given.seed)
            print(distance, noise, wrong, flush=True)
            for k, name in enumerate(("with heralds", "without")):
                lines.setdefault((name, distance), []).append((noise, wrong[k], given.shots))
    with open(given.svg, "w", encoding="utf-8") as file:
        file.write(drawing(lines, given.shares[-1]))


def drawing(lines, share):
    """lines: of each name and distance its points: the noise, wrong shots, and all shots."""
    def height_of(wrong, shots):
        return wrong / shots if wrong else interval(0, shots)[1]
    low = math.floor(math.log10(min(height_of(*point[1:]) for points in lines.values() for point in points)))
    width, height, left, bottom = 640, 400, 70, 50

    def at(noise, rate):
        x = left + (math.log10(noise) - math.log10(0.0025)) / math.log10(0.05 / 0.0025) * (width - left - 130)
        return f"{x:.1f},{20 + math.log10(rate) / low * (height - 20 - bottom):.1f}"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             f'font-size="12"><!-- SPDX-License-Identifier: Apache-2.0 -->'
             f'<title>Logical error rate of a shot over the noise, {100 * share:g} % erasures</title>'
             '<rect width="100%" height="100%" fill="#fff"/>']
    for power in range(low, 1):
        y = at(0.0025, 10.0 ** power).split(",")[1]
        parts.append(f'<path d="M{left},{y} H{width - 130}" stroke="#ddd"/>'
                     f'<text x="{left - 8}" y="{y}" text-anchor="end">1e{power}</text>')
    for noise in (0.003, 0.005, 0.01, 0.02, 0.04):
        x = at(noise, 1).split(",")[0]
        parts.append(f'<path d="M{x},20 V{height - bottom}" stroke="#ddd"/>'
                     f'<text x="{x}" y="{height - bottom + 16}" text-anchor="middle">{noise:g}</text>')
    parts.append(f'<text x="{(width - 60) / 2}" y="{height - 10}" text-anchor="middle">strength of the noise</text>')
    colours = ["#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad"]
    distances = sorted({distance for _, distance in lines})
    for (name, distance), points in lines.items():
        colour = colours[distances.index(distance) % 4]
        dash = "" if name == "with heralds" else ' stroke-dasharray="5 4"'
        path = " L".join(at(noise, wrong / shots) for noise, wrong, shots in points if wrong)
        if path:
            parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        for noise, wrong, shots in points:
            if not wrong:
                parts.append(f'<path d="M{at(noise, height_of(wrong, shots))} l5,-8 h-10 z" fill="{colour}"><title>'
                             f'none of {shots} shots is wrong: below {height_of(wrong, shots):.1e}</title></path>')
    for k, (name, distance) in enumerate(sorted(lines)):
        y, colour = 40 + 18 * k, colours[distances.index(distance) % 4]
        dash = "" if name == "with heralds" else ' stroke-dasharray="5 4"'
        parts.append(f'<path d="M{width - 122},{y - 4} h18" stroke="{colour}" stroke-width="2"{dash}/>'
                     f'<text x="{width - 100}" y="{y}">d{distance} {name}</text>')
    if any(not wrong for points in lines.values() for _, wrong, _ in points):
        y = 40 + 18 * len(lines)
        parts.append(f'<path d="M{width - 109},{y} l5,-8 h-10 z" fill="#555"/>'
                     f'<text x="{width - 100}" y="{y}">none: below it</text>')
    return "\n".join(parts) + "\n</svg>\n"


def exact(given):
    """Distance 3, data qubits in rows of three, one round without errors of measurements: all sets of fired heralds,
    and all errors. The likeliest answer, and matching with each of two rules for an erased qubit."""
    z_checks, x_checks = [[0, 1, 3, 4], [4, 5, 7, 8], [2, 5], [3, 6]], [[1, 2, 4, 5], [3, 4, 6, 7], [0, 1], [7, 8]]
    logical_z = [0, 1, 2]
    erased, other = given.noise * given.shares[-1], given.noise * (1 - given.shares[-1])
    of_x = [[f"D{k}" for k, check in enumerate(z_checks) if q in check] + ["L0"] * (q in logical_z) for q in range(9)]
    of_z = [[f"D{4 + k}" for k, check in enumerate(x_checks) if q in check] for q in range(9)]
    flips = {"X": of_x, "Y": [[*x, "^", *z] for x, z in zip(of_x, of_z)], "Z": of_z}
    rules = {"1/2 for X and 1/2 for Z": {"X": 0.5, "Z": 0.5},
             "1/4 for each of X, Y and Z": {"X": 0.25, "Y": 0.25, "Z": 0.25}}
    decoders = {}
    for rule, paulis in rules.items():
        model = [f"error({other / 3!r}) " + " ".join(flips[pauli][q]) for q in range(9) for pauli in "XYZ"]
        lines = []
        for q in range(9):
            pairs = [f"{len(model) + k} {p}" for k, p in enumerate(paulis.values())]
            model += ["error(1e-9) " + " ".join(flips[pauli][q]) for pauli in paulis]
            lines.append(f"herald {8 + q} " + " ".join(pairs) + "\n")
        text = "\n".join(model)
        decoders[rule] = Decoder("pymatching", text, f"cudaq-realtime-heralds 1\nmodel {zlib.crc32(text.encode()):08x}"
                                 f"\ndetectors 17\n{''.join(lines)}")

    def mask(targets):
        return sum(256 if target == "L0" else 1 << int(target[1:]) for target in targets)
    wrong = dict.fromkeys([*rules, "the likeliest answer"], 0.0)
    outcomes = np.arange(512)  # a syndrome, and in bit 8 the observable
    for fired in range(512):
        chance = (outcomes == 0).astype(float)
        for q in range(9):
            x, z = mask(of_x[q]), mask(of_z[q])
            is_fired = fired >> q & 1
            chance = chance * (erased if is_fired else 1 - erased)
            for p in [[1 - other, *[other / 3] * 3], [0.25] * 4][:1 + is_fired]:
                chance = sum(part * chance[outcomes ^ flip] for part, flip in zip(p, (0, x, x ^ z, z)))
        wrong["the likeliest answer"] += np.minimum(chance[:256], chance[256:]).sum()
        shots = np.array([[s >> k & 1 for k in range(8)] + [fired >> q & 1 for q in range(9)] for s in range(256)],
                         dtype=np.uint8)
        for rule, decoder in decoders.items():
            answers = decoder.decode_batch(shots)[:, 0]
            wrong[rule] += np.where(answers, chance[:256], chance[256:]).sum()
    for rule, rate in wrong.items():
        print(f"{rule}: {rate:.6e} of the shots are wrong, {rate / wrong['the likeliest answer']:.4f} of the least")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("table", "windows", "curve", "exact"))
    parser.add_argument("svg", nargs="?")
    parser.add_argument("--shots", type=int, default=20000)
    parser.add_argument("--distances", type=numbers(int), default=[3, 5, 7, 9])
    parser.add_argument("--shares", type=numbers(float), default=[0, 0.5, 0.9])
    parser.add_argument("--noise", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    given = parser.parse_args()
    {"table": table, "windows": windows, "curve": curve, "exact": exact}[given.what](given)


if __name__ == "__main__":
    sys.exit(main())
