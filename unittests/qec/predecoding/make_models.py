#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the models of the gate (gate_test.cpp): rotated surface codes, memory in the Z basis, as many rounds as the
distance, p = 0.003, in the compact form of unittests/data/make_data.py.

    venv/bin/python make_models.py      # the same environment as for make_data.py
"""

import pathlib
import sys

import stim

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "data"))
import make_data  # noqa: E402

P = 0.003
# gates, resets, measurements, data qubits before each round; uniform noise has p everywhere.
NOISE = {"uniform": (P, P, P, P), "data": (P / 10, P / 10, P / 10, 3 * P),
         "measurement": (P / 10, P / 10, 4 * P, P / 10)}
IN_DATA_FOLDER = (7, 13)  # uniform models of these distances are in unittests/data, in this form
make_data.PROBABILITY_DIGITS = 6

for noise, (gates, resets, measurements, data) in NOISE.items():
    for distance in (5, 7, 9, 11, 13):
        if noise == "uniform" and distance in IN_DATA_FOLDER:
            continue
        circuit = stim.Circuit.generated(
            "surface_code:rotated_memory_z", distance=distance, rounds=distance,
            after_clifford_depolarization=gates, after_reset_flip_probability=resets,
            before_measure_flip_probability=measurements, before_round_data_depolarization=data)
        text = make_data.merged_text(circuit.detector_error_model(decompose_errors=True))
        (HERE / "models" / f"{noise}_d{distance}.dem").write_text(text)
