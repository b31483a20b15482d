#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a user pays besides decoding, beside PyMatching: the start of a decoder, and a call of Python for each shot.

    fixed_costs.py [--runs 10] [--distances 5,7,13,21]      with the packages of compare_all.sh, in its venv

A start ends with the first answer: PyMatching builds its matcher then, ours has built it. The two take turns in one
process, and the least processor time of the process counts. Models are stim.DetectorErrorModel objects, decomposed.
"""
import argparse
import time

import numpy as np
import pymatching
import stim
from cudaq_realtime import Decoder

SHOTS, MAX_DISTANCE_OF_CALLS = 1000, 7


def surface(distance, p):
    return stim.Circuit.generated("surface_code:rotated_memory_z", distance=distance, rounds=distance,
                                  after_clifford_depolarization=p, after_reset_flip_probability=p,
                                  before_measure_flip_probability=p, before_round_data_depolarization=p)


def least_seconds(functions, runs):
    least = [float("inf")] * len(functions)
    for _ in range(runs):
        for k, function in enumerate(functions):
            begin = time.process_time()
            function()
            least[k] = min(least[k], time.process_time() - begin)
    return least


def row(case, functions, runs, unit, scale):
    theirs, ours = (scale * seconds for seconds in least_seconds(functions, runs))
    print(f"| {case} | {theirs:.3g} {unit} | {ours:.3g} {unit} | {ours / theirs:.2f} |", flush=True)


def starts(distance, runs):
    model = surface(distance, 0.005).detector_error_model(decompose_errors=True)
    nothing = np.zeros(model.num_detectors, np.uint8)
    for name, is_correlated in (("pymatching", False), ("pymatching-correlated", True)):
        row(f"start of {name}, d={distance}",
            (lambda: pymatching.Matching.from_detector_error_model(
                model, enable_correlations=is_correlated).decode(nothing, enable_correlations=is_correlated),
             lambda: Decoder(name, model).decode(np.flatnonzero(nothing))), runs, "ms", 1e3)


def calls(distance, p, runs):
    circuit = surface(distance, p)
    model = circuit.detector_error_model(decompose_errors=True)
    shots = circuit.compile_detector_sampler(seed=1).sample(SHOTS)
    theirs, ours = pymatching.Matching.from_detector_error_model(model), Decoder("pymatching", model)
    row(f"a call for each shot of bits, d={distance}, p={p}",
        (lambda: [theirs.decode(shot) for shot in shots],
         lambda: [ours.decode(np.flatnonzero(shot)) for shot in shots]), runs, "us", 1e6 / SHOTS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--distances", default="5,7,13,21")
    options = parser.parse_args()
    print("| what | PyMatching | ours | ratio |\n|---|---|---|---|")
    for distance in map(int, options.distances.split(",")):
        starts(distance, options.runs)
        for p in (0.001, 0.005) if distance <= MAX_DISTANCE_OF_CALLS else ():
            calls(distance, p, options.runs)


if __name__ == "__main__":
    main()
