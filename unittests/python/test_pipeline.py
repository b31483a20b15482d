# SPDX-License-Identifier: Apache-2.0
"""The pipeline: the answers of the decoder, reports that fit into tables, and the stubs of the module."""
import ast
import pathlib

import cudaq_realtime
import numpy as np
import pandas
import pytest
import stim
from cudaq_realtime import DecodeError, Decoder, Pipeline


@pytest.fixture(scope="module")
def code():
    circuit = stim.Circuit.generated("surface_code:rotated_memory_z", distance=5, rounds=5,
                                     after_clifford_depolarization=0.005)
    dem = circuit.detector_error_model(decompose_errors=True)
    return dem, circuit.compile_detector_sampler(seed=5).sample(1000)


def test_answers_are_those_of_the_decoder(code):
    dem, events = code
    expected = Decoder("pymatching", dem).decode_batch(events)
    for workers in (1, 3):
        pipeline = Pipeline("pymatching", dem, workers=workers, slots=8)
        for _ in range(2):  # a pipeline can run again
            predictions, report = pipeline.run(events)
            assert np.array_equal(predictions, expected)
        assert pipeline.stats()["completed"] == 2000 and report["shots"] == 1000
    packed, _ = pipeline.run(np.packbits(events, axis=1, bitorder="little"), bit_packed_shots=True,
                             bit_packed_predictions=True)
    assert np.array_equal(packed, np.packbits(expected, axis=1, bitorder="little"))


def test_reports_are_rows_of_a_table(code):
    dem, events = code
    reports = [Pipeline("pymatching", dem, workers=w).run(events[:200])[1] for w in (1, 2)]
    table = pandas.DataFrame(reports)
    assert table["workers"].tolist() == [1, 2] and (table["shots_per_second"] > 0).all()
    for report in reports:
        assert report["latency_min_ns"] <= report["latency_p50_ns"] <= report["latency_p99_ns"]
        assert report["latency_p99_ns"] <= report["latency_max_ns"] == report.latencies_ns.max()
        assert report["version"] == cudaq_realtime.__version__


def test_requests_are_sent_at_the_rate(code):
    dem, events = code
    _, report = Pipeline("pymatching", dem).run(events[:100], rate=1000.0)
    assert 0.099 <= report["seconds"] < 5
    assert report["offered_per_second"] == 1000.0


def test_errors_name_the_shot_or_the_field(code):
    with pytest.raises(DecodeError, match="shot 1: no error of the model"):
        Pipeline("pymatching", "error(0.1) D0 D1 L0").run(np.array([[0, 0], [1, 0]]))
    with pytest.raises(ValueError, match="workers is 0"):
        Pipeline("lookup", "error(0.1) D0 L0", workers=0)
    with pytest.raises(ValueError, match="rate is -1"):
        Pipeline("lookup", "error(0.1) D0 L0").run(np.zeros((1, 1), dtype=bool), rate=-1)


def test_the_stub_has_every_name_of_the_module():
    folder = pathlib.Path(cudaq_realtime.__file__).parent
    assert (folder / "py.typed").exists()
    stub = ast.parse((folder / "_native.pyi").read_text())
    named = {node.name for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    named |= {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
    assert {name for name in dir(cudaq_realtime._native) if not name.startswith("_")} == named
