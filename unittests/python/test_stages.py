# SPDX-License-Identifier: Apache-2.0
"""Stages of the pipeline in Python: their answers, their order, their errors, and the life of the object."""
import gc
import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest
import stim
from cudaq_realtime import DecodeError, Decoder, Pipeline, StageError

CHAIN = "error(0.01) D0 L0\nerror(0.02) D0 D1\nerror(0.01) D1"


@pytest.fixture(scope="module")
def code():
    circuit = stim.Circuit.generated("surface_code:rotated_memory_z", distance=3, rounds=3,
                                     after_clifford_depolarization=0.01)
    dem = circuit.detector_error_model(decompose_errors=True)
    return dem, circuit.compile_detector_sampler(seed=11).sample(400)


def test_a_decoder_in_python_gives_the_answers_of_the_pipeline(code):
    dem, events = code
    decoder = Decoder("pymatching", dem)

    def in_python(shot):
        assert shot.dtype == np.uint8 and shot.shape == (dem.num_detectors,)
        return decoder.decode(np.flatnonzero(shot))

    for workers in (1, 3):
        predictions, report = Pipeline(in_python, dem, workers=workers, slots=4).run(events)
        assert np.array_equal(predictions, decoder.decode_batch(events))
        assert (report["decoder"], report["predecoder"]) == ("in_python", "none")


def test_a_predecoder_removes_events_and_its_observables_are_added():
    shots = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])

    def take_the_left_one(shot):  # the error on D0 flips L0
        return np.array([0, shot[1]]), shot[:1]

    predictions, report = Pipeline("lookup", CHAIN, predecoder=take_the_left_one).run(shots)
    # With the left event reference, the decoder answers 0 for what is left: the answer is that of the predecoder.
    assert predictions.tolist() == [[0], [1], [1], [0]]
    assert report["predecoder"] == "take_the_left_one" and report["decoder"] == "lookup"
    plain, _ = Pipeline("lookup", CHAIN, predecoder=lambda shot: shot).run(shots)
    assert plain.tolist() == Decoder("lookup", CHAIN).decode_batch(shots).tolist() == [[0], [1], [0], [0]]


def test_each_stage_has_its_times():
    def slow(shot):
        time.sleep(0.004)
        return shot

    _, report = Pipeline("lookup", CHAIN, predecoder=slow).run(np.zeros((20, 2), dtype=bool))
    assert set(report.stages_ns) == {"predecode", "decode"} and len(report.stages_ns["decode"]) == 20
    assert report.stages_ns["predecode"].min() >= 4_000_000 and report.stages_ns["decode"].min() > 0
    assert (report.stages_ns["predecode"] + report.stages_ns["decode"] <= report.latencies_ns).all()
    assert report["predecode_mean_ns"] == report.stages_ns["predecode"].mean()
    _, report = Pipeline("lookup", CHAIN).run(np.zeros((5, 2), dtype=bool))
    assert "predecode_mean_ns" not in report and report["decode_mean_ns"] > 0


@pytest.mark.parametrize("wrong, text", [
    (lambda shot: 1 // 0, "ZeroDivisionError"),
    (lambda shot: shot[:1], r"array of events of the predecoder has the shape \(1,\), accepted: \(2,\)"),
    (lambda shot: (shot, [0, 0]), r"array of observables of the predecoder has the shape \(2,\), accepted: \(1,\)"),
    (lambda shot: shot * 3, "values other than 0 and 1"),
    (lambda shot: (0, 1, 0), "returned a tuple of 3, accepted: events and observables"),
])
def test_a_predecoder_that_fails_is_named_with_its_shot(wrong, text):
    def predecoder(shot):
        return wrong(shot) if shot.any() else shot

    pipeline = Pipeline("lookup", CHAIN, predecoder=predecoder, workers=1)
    with pytest.raises(StageError, match="(?s)shot 2: .*" + text) as raised:
        pipeline.run(np.array([[0, 0], [0, 0], [1, 0], [0, 0]]))
    assert raised.value.shot == 2
    assert pipeline.run(np.zeros((3, 2), dtype=bool))[0].tolist() == [[0]] * 3  # the next run is right


def test_a_decoder_that_fails_differs_from_a_shot_that_cannot_be_decoded():
    with pytest.raises(StageError, match=r"(?s)shot 0: .*answer of the decoder has the shape \(\), accepted: \(1,\)"):
        Pipeline(lambda shot: 0, CHAIN).run(np.zeros((1, 2), dtype=bool))
    with pytest.raises(DecodeError, match="shot 1: no error of the model"):
        Pipeline("pymatching", "error(0.1) D0 D1 L0", predecoder=lambda shot: shot).run(np.array([[0, 0], [1, 0]]))


def test_each_run_raises_the_error_of_its_own_stage():
    def fail(shot):
        raise ValueError("the reason")

    pipeline, raised = Pipeline(fail, CHAIN, workers=1, slots=1), []

    def run_often():
        for _ in range(30):
            try:
                pipeline.run(np.zeros((1, 2), dtype=bool))
            except Exception as error:
                raised.append(error)

    threads = [threading.Thread(target=run_often) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(raised) == 60
    assert all(isinstance(error, StageError) and "the reason" in str(error) for error in raised), raised


def test_a_stage_cannot_run_its_own_pipeline():
    holder, shots = [], np.zeros((1, 2), dtype=bool)
    pipeline = Pipeline(lambda shot: holder[0].run(shots)[0][0], CHAIN)
    holder.append(pipeline)
    with pytest.raises(StageError, match="a stage cannot run its own pipeline"):
        pipeline.run(shots)


def test_ctrl_c_ends_a_run():
    pipeline = Pipeline("lookup", CHAIN)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()  # not before: the signal would end the whole session
        try:
            pipeline.run(np.zeros((1000, 2), dtype=bool), rate=1.0)  # would take 1000 s
        finally:
            timer.cancel()
    timer.join()
    assert len(pipeline.run(np.zeros((3, 2), dtype=bool))[0]) == 3


def test_a_stage_that_refers_to_its_pipeline_does_not_keep_it():
    holder = []
    pipeline = Pipeline(lambda shot: [holder[0].stats()["submitted"] == 0], CHAIN)
    holder.append(pipeline)
    assert pipeline.run(np.zeros((1, 2), dtype=bool))[0].tolist() == [[0]]
    reference = weakref.ref(pipeline)
    del pipeline, holder
    gc.collect()
    assert reference() is None
