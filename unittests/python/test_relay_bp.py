# SPDX-License-Identifier: Apache-2.0
"""relay-bp against the package relay_bp, on shots that no file has: equal corrections in 64-bit arithmetic."""
import numpy as np
import pytest
import stim
from cudaq_realtime import Decoder, DecodeError

relay_bp = pytest.importorskip("relay_bp", reason="the package relay_bp==0.2.1 is not installed")
sparse = pytest.importorskip("scipy.sparse", reason="scipy is not installed")

MASK = 2**64 - 1
STEP = 0x9e3779b97f4a7c15
LEGS, LOW, HIGH = 8, -0.24, 0.66


def mix(z):
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
    return z ^ z >> 31


def strength(seed, leg, column):
    """That of docs/decoders/relay_bp.md: a hash of seed, leg and column."""
    unit = (mix((mix((seed + leg * STEP) & MASK) + column * STEP) & MASK) >> 11) * 2.0**-53
    return LOW + (HIGH - LOW) * unit


def columns_of(dem):
    """(detectors, observables) -> probability, equal errors merged, in the order of the decoder's columns."""
    columns = {}
    for error in dem.flattened():
        if error.type != "error":
            continue
        detectors, observables = set(), set()
        for target in error.targets_copy():
            if target.is_relative_detector_id():
                detectors ^= {target.val}
            elif target.is_logical_observable_id():
                observables ^= {target.val}
        if not detectors:
            continue
        key = tuple(sorted(detectors)), tuple(sorted(observables))
        p, q = columns.get(key, 0.0), error.args_copy()[0]
        columns[key] = p * (1 - q) + q * (1 - p)
    return sorted(columns.items())


@pytest.mark.parametrize("code", ["color_code:memory_xyz", "surface_code:rotated_memory_z"])
def test_answers_in_64_bits_are_those_of_the_package(code):
    circuit = stim.Circuit.generated(code, distance=5, rounds=3, after_clifford_depolarization=0.01)
    dem = circuit.detector_error_model()
    columns = columns_of(dem)
    checks = sparse.lil_matrix((dem.num_detectors, len(columns)), dtype=np.uint8)
    flips = np.zeros((dem.num_observables, len(columns)), dtype=np.uint8)
    for k, ((detectors, observables), _) in enumerate(columns):
        checks[list(detectors), k] = 1
        flips[list(observables), k] = 1
    package = relay_bp.RelayDecoderF64(
        sparse.csr_matrix(checks), np.array([p for _, p in columns]), alpha=1.0, gamma0=0.1, pre_iter=20,
        num_sets=LEGS, set_max_iter=20, stop_nconv=2,
        explicit_gammas=np.array([[strength(3, leg, k) for k in range(len(columns))] for leg in range(LEGS + 1)]))
    decoder = Decoder(f"relay-bp:precision=double,pre_iter=20,num_sets={LEGS},set_max_iter=20,stop_nconv=2,seed=3", dem)
    shots = circuit.compile_detector_sampler(seed=11).sample(500)
    converged = 0
    for shot in shots:
        expected = package.decode_detailed(shot.astype(np.uint8))
        try:
            observables = decoder.decode(np.flatnonzero(shot))
        except DecodeError as failure:
            assert failure.status == 7 and not expected.success
            continue
        assert expected.success
        assert np.array_equal(observables, flips @ expected.decoding % 2)
        errors = decoder.decode_to_errors_array(np.flatnonzero(shot))
        assert len(errors) == expected.decoding.sum()
        converged += 1
    assert converged > 400
