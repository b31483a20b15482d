#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make (or check) the files of this folder: a colour code with coloured detectors, and Chromobius' answers.

    python3 -m venv venv && venv/bin/pip install stim==1.15.0 chromobius==1.1.1 numpy==2.4.6
    venv/bin/python make_chromobius_data.py            # write the files
    venv/bin/python make_chromobius_data.py --check    # compare the committed files with a fresh run

The code is the triangular 6.6.6 colour code of distance 5, with bit flips of the data and wrong readouts (p = 0.01
each): four rounds, the last readout is right. A site (i, j), 0 <= j <= i <= 3 (d - 1) / 2, of the triangular lattice is
a plaquette if (i + j) % 3 is 1, else a qubit; the colour of a plaquette is i % 3. The observable is the parity of all
qubits. The files are committed, because the answers come from a package that not every machine has.
"""
import pathlib
import sys

import chromobius
import numpy as np
import stim

DISTANCE, ROUNDS, NOISE, SHOTS, SEED = 5, 4, 0.01, 500, 20261122
BASIS_Z = 3  # the fourth coordinate of a detector is its basis (0 for X, 3 for Z) plus its colour
STEPS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1))


def model():
    side = 3 * (DISTANCE - 1) // 2
    sites = [(i, j) for i in range(side + 1) for j in range(i + 1)]
    plaquettes = [s for s in sites if sum(s) % 3 == 1]
    number = {s: k for k, s in enumerate(plaquettes)}
    lines = []
    for t in range(ROUNDS):
        base = t * len(plaquettes)
        for i, j in sites:
            if (i, j) in number:
                continue
            near = [number[i + a, j + b] for a, b in STEPS if (i + a, j + b) in number]
            lines.append(f"error({NOISE}) " + " ".join(f"D{base + k}" for k in sorted(near)) + " L0")
        if t + 1 < ROUNDS:
            lines += [f"error({NOISE}) D{base + k} D{base + k + len(plaquettes)}" for k in range(len(plaquettes))]
    for t in range(ROUNDS):
        for (i, j), k in number.items():
            lines.append(f"detector({i}, {j}, {t}, {BASIS_Z + i % 3}) D{t * len(plaquettes) + k}")
    return "\n".join(lines) + "\n"


def main():
    text = model()
    dem = stim.DetectorErrorModel(text)
    detections, observables, _ = dem.compile_sampler(seed=SEED).sample(SHOTS, bit_packed=True)
    predictions = chromobius.compile_decoder_for_dem(dem).predict_obs_flips_from_dets_bit_packed(detections)
    print(f"{int((predictions != observables).any(axis=1).sum())} logical errors in {SHOTS} shots")
    files = {"color_d5.dem": text.encode(), "color_d5.dets.b8": detections.tobytes(),
             "color_d5.obs.b8": observables.tobytes(), "color_d5.pred.b8": np.asarray(predictions).tobytes()}
    folder = pathlib.Path(__file__).resolve().parent
    bad = [name for name, data in files.items()
           if "--check" in sys.argv and (folder / name).read_bytes() != data]
    if bad:
        sys.exit("different: " + ", ".join(bad))
    if "--check" not in sys.argv:
        for name, data in files.items():
            (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
