#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the files of this folder: small models and shots such as a user has, each in another format of Stim.

    python3 -m venv venv && venv/bin/pip install stim==1.15.0 pymatching==2.3.1 numpy==2.4.6
    venv/bin/python make_own_data.py

<name>.dem is the model, .dets.<format> the detection events, .obs.<format> the true observables, .pred.<format> the
predictions of PyMatching. No set has a .meta. The files are committed, because shots and predictions come from packages
that not every machine has.
"""

import pathlib

import numpy as np
import pymatching
import stim

SHOTS = 128  # a multiple of 64, for ptb64
SEED = 20261122
FOLDER = pathlib.Path(__file__).resolve().parent


def generated(code, distance, rounds, p):
    return stim.Circuit.generated(
        code, distance=distance, rounds=rounds, after_clifford_depolarization=p, after_reset_flip_probability=p,
        before_measure_flip_probability=p, before_round_data_depolarization=p)


def toric_copies(distance, copies, p):
    """Independent toric codes with perfect measurements; each has 2 observables."""
    lines = []
    for copy in range(copies):
        first, size = copy * distance * distance, distance
        for y in range(size):
            for x in range(size):
                here = first + y * size + x
                right, below = first + y * size + (x + 1) % size, first + (y + 1) % size * size + x
                lines.append(f"error({p}) D{here} D{right}" + (f" L{2 * copy}" if x == size - 1 else ""))
                lines.append(f"error({p}) D{here} D{below}" + (f" L{2 * copy + 1}" if y == size - 1 else ""))
    return stim.DetectorErrorModel("\n".join(lines))


def write(name, kind, bits, kind_bits, form):
    stim.write_shot_data_file(data=np.ascontiguousarray(bits), path=FOLDER / f"{name}.{kind}.{form}", format=form,
                              **{kind_bits: bits.shape[1]})


def make(name, dem, form, decodable=True):
    (FOLDER / f"{name}.dem").write_text(f"{dem}\n")
    detections, observables, _ = dem.compile_sampler(seed=SEED).sample(SHOTS)
    write(name, "dets", detections, "num_detectors", form)
    write(name, "obs", observables, "num_observables", form)
    if decodable:
        predictions = pymatching.Matching.from_detector_error_model(dem).decode_batch(detections).astype(bool)
        write(name, "pred", predictions, "num_observables", form)
        print(f"{name}: {dem.num_detectors} detectors, {dem.num_observables} observables, "
              f"{int((predictions != observables).any(axis=1).sum())} logical errors")


def main():
    def decomposed(circuit):
        return circuit.detector_error_model(decompose_errors=True)

    repetition = generated("repetition_code:memory", 5, 4, 0.03)
    (FOLDER / "repetition.stim").write_text(f"{repetition}\n")
    make("repetition", decomposed(repetition), "01")
    make("rotated_x", decomposed(generated("surface_code:rotated_memory_x", 3, 3, 0.01)), "b8")
    make("rotated_z", decomposed(generated("surface_code:rotated_memory_z", 3, 3, 0.01)), "hits")
    make("unrotated", decomposed(generated("surface_code:unrotated_memory_z", 3, 2, 0.01)), "r8")
    make("toric", toric_copies(3, 40, 0.01), "ptb64")
    make("color", generated("color_code:memory_xyz", 5, 2, 0.005).detector_error_model(), "dets", decodable=False)


if __name__ == "__main__":
    main()
