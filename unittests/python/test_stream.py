# SPDX-License-Identifier: Apache-2.0
"""Streams: rounds in pieces of any size, the same answers as shots; ends, errors, threads."""
import itertools
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import threading
import time

import numpy as np
import pytest
import stim
from cudaq_realtime import DecodeError, Decoder, StreamDecoder
from cudaq_realtime.readout import Gaussian, quiet_circuit, readout_model

PAGE = pathlib.Path(__file__).parents[2] / "docs/decoders/streaming.md"


def surface_code(rounds, distance=3, noise=0.004):
    return stim.Circuit.generated("surface_code:rotated_memory_z", distance=distance, rounds=rounds,
                                  after_clifford_depolarization=noise, before_measure_flip_probability=noise)


CIRCUIT = surface_code(201)
MODEL = CIRCUIT.detector_error_model(decompose_errors=True)
# A round has two detectors, and one error, which flips both: a single event has no reason.
PAIRS = """repeat 9 {
    detector(0) D0
    detector(0) D1
    error(0.1) D0 D1 L0
    shift_detectors(1) 2
}
detector(0) D0
detector(0) D1
error(0.1) D0 D1 L0"""


def parts_of(shot, tail, cuts):
    """The bits before the tail in pieces of these sizes, and the tail."""
    at, end = 0, len(shot) - tail
    for size in itertools.cycle(cuts):
        if at >= end:
            return
        yield shot[at:min(at + size, end)]
        at += size


def test_pieces_of_any_size_and_form_give_the_answers_of_whole_shots():
    shots, flips = CIRCUIT.compile_detector_sampler(seed=5).sample(2000, separate_observables=True)
    expected = Decoder("sliding-window:inner=pymatching", MODEL).decode_batch(shots)
    stream = StreamDecoder(MODEL, "pymatching")
    tail = stream.tail_detectors
    assert stream.head_detectors + 99 * stream.body_detectors + tail == MODEL.num_detectors
    for shot, answer, cuts in zip(shots[:200], expected, itertools.cycle([[8], [1], [3, 0, 11], [5000], [7, 64, 65]])):
        stream.reset()
        for bits in parts_of(shot, tail, cuts):
            if len(bits) % 2:
                stream.push(bits)
            else:
                stream.push(np.packbits(bits, bitorder="little"), count=len(bits))
        observables = stream.finish(shot[len(shot) - tail:])
        assert observables.tolist() == answer.tolist() == stream.observables.tolist()
        assert stream.committed_rounds == stream.pushed_rounds and stream.pushed_bits == len(shot)
    # And they are answers: half as many errors as flips, give or take 0.02. Versions of Stim draw other shots.
    assert (expected != flips).mean() < 0.7 * flips.mean()


def test_rounds_become_final_while_others_come():
    stream = StreamDecoder(MODEL, commit=4, buffer=6)
    assert "commit 4 and buffer 6 rounds" in stream.description
    final = []
    assert not stream.push(np.zeros(stream.head_detectors, bool))
    for _ in range(20):
        if stream.push([0] * stream.body_detectors):
            final.append((stream.pushed_rounds, stream.committed_rounds))
    assert [committed for _, committed in final] == [4 * (k + 1) for k in range(stream.windows)] and len(final) > 5
    assert all(0 <= pushed - committed - 6 < 2 for pushed, committed in final)  # a repetition has two rounds


def test_frames_come_from_an_iterable_of_any_length():
    shot, flips = CIRCUIT.compile_detector_sampler(seed=6).sample(1, separate_observables=True)
    stream = StreamDecoder(MODEL)
    wanted = Decoder("sliding-window", MODEL).decode_batch(shot)[0].tolist()
    for cuts in ([24], [1], [5, 0, 400], [100000]):
        frames = list(stream.frames(parts_of(shot[0], 0, cuts)))
        rounds = [committed for committed, _ in frames]
        assert rounds == sorted(set(rounds)) and rounds[-1] == stream.pushed_rounds
        assert frames[-1][1].tolist() == wanted
    endless = stream.frames(np.zeros((8,), bool) for _ in itertools.count())
    rounds = [committed for committed, _ in itertools.islice(endless, 1000)]
    assert rounds == list(range(3, 3003, 3)) and stream.pushed_rounds < rounds[-1] + 12
    assert flips.shape == (1, 1)


def test_frames_of_an_input_that_ends_too_early_keep_those_before_it():
    frames = StreamDecoder(MODEL).frames([np.zeros(8 * 50, bool), np.zeros(3, bool)])
    assert next(frames)[0] > 30
    with pytest.raises(DecodeError, match="not those of the model's tail") as raised:
        list(frames)
    assert raised.value.status == 8


def test_an_end_in_the_middle_takes_nothing():
    stream = StreamDecoder(MODEL)
    stream.push(np.zeros(stream.head_detectors + 1, bool))
    tail = np.zeros(stream.tail_detectors, bool)
    with pytest.raises(ValueError, match=f"tail has 3 bits, accepted: {len(tail)}, the detectors after the loop"):
        stream.finish([0, 1, 0])
    with pytest.raises(DecodeError, match="status 8"):
        stream.finish(tail)
    stream.push(np.zeros(stream.body_detectors - 1, bool))
    assert stream.finish(tail).tolist() == [0]
    for after_the_end in (lambda: stream.push([0]), lambda: stream.finish(tail)):
        with pytest.raises(DecodeError, match=r"the stream has ended: reset\(\) begins the next one") as raised:
            after_the_end()
        assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    stream.reset()
    with pytest.raises(DecodeError, match="after a whole repetition"):
        stream.finish(tail)


def test_a_window_without_a_solution_breaks_the_stream_until_it_is_reset():
    stream = StreamDecoder(PAIRS, commit=2, buffer=2)
    stream.push([[0, 0], [1, 1], [0, 0], [0, 0]])
    for bits in ([[0, 1], [0, 0], [0, 0], [0, 0]], [0]):
        with pytest.raises(DecodeError, match="no error of the model") as raised:
            stream.push(bits)
        assert raised.value.status == 3 and raised.value.shot is None
    assert stream.committed_rounds == 2 and stream.observables.tolist() == [1]
    stream.reset()
    assert stream.committed_rounds == 0 and stream.observables.tolist() == [0]
    stream.push(np.zeros((9, 2), int))
    assert stream.finish(np.array([3], np.uint8), count=2).tolist() == [1]


def test_a_stream_that_cannot_be_is_refused_with_the_reason():
    for arguments, text in [(("error(0.1) D0 L0",), "the model has no loop"), ((PAIRS,), "give commit and buffer"),
                            ((MODEL, "none"), "none"), ((MODEL, "pymatching:none=1"), "none")]:
        with pytest.raises(ValueError, match=text):
            StreamDecoder(*arguments)
    with pytest.raises(ValueError, match="buffer 1 is less than"):
        StreamDecoder(MODEL, commit=1, buffer=1)
    with pytest.raises(ValueError, match="expected time, or index:N"):
        StreamDecoder(MODEL, rounds="index")
    assert StreamDecoder(PAIRS, commit=2, buffer=2, rounds="index:2").tail_detectors == 2


def test_other_threads_run_while_a_stream_decodes():
    stream = StreamDecoder(surface_code(51, distance=5, noise=0.008).detector_error_model(decompose_errors=True))
    random = np.random.default_rng(1)
    bits = random.random(stream.head_detectors + 3000 * stream.body_detectors) < 0.1
    packed = np.packbits(bits, bitorder="little")

    def turns_beside_a_decode():
        """How often another thread runs while the stream decodes these bits."""
        turns = 0
        decoding = threading.Thread(target=stream.push, args=(packed,), kwargs={"count": len(bits)})
        decoding.start()
        while decoding.is_alive():  # with the GIL held by the decode this would run once or twice
            turns += 1
            time.sleep(0.0005)
        decoding.join()
        assert stream.windows > 100
        stream.reset()
        return turns

    # On a busy machine the thread may have no core for the time of one decode.
    assert any(turns_beside_a_decode() >= 10 for _ in range(10))


def test_calls_of_several_threads_follow_one_another():
    stream = StreamDecoder(MODEL)
    stream.push(np.zeros(stream.head_detectors, bool))
    body = np.zeros(stream.body_detectors, bool)
    threads = [threading.Thread(target=lambda: [stream.push(body) for _ in range(200)]) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert stream.pushed_bits == stream.head_detectors + 800 * stream.body_detectors


def test_workers_give_the_frames_of_one_thread():
    shots = CIRCUIT.compile_detector_sampler(seed=9).sample(20)
    for mode, reference in (("sequential", "sequential"), ("parallel", "parallel"), ("auto", "parallel")):
        name = "sliding-window:inner=pymatching,commit=4,buffer=3,mode="
        alone, stream = StreamDecoder(MODEL, name + reference), StreamDecoder(MODEL, name + mode, workers=2)
        assert stream.description.endswith(f"; {reference}, 2 workers")
        for shot in shots:
            pieces = np.array_split(shot, 150)
            expected = {rounds: observables.tolist() for rounds, observables in alone.frames(pieces)}
            got = list(stream.frames(pieces))
            rounds = [of for of, _ in got]
            assert rounds == sorted(set(rounds)) and rounds[-1] == stream.pushed_rounds
            # Two windows that become final together give one frame without workers.
            assert all(expected[of] == observables.tolist() for of, observables in got if of in expected)
            assert expected[rounds[-1]] == got[-1][1].tolist()


def test_workers_take_any_number_of_bits_and_report_failures_later():
    stream = StreamDecoder(PAIRS, "pymatching", commit=2, buffer=2, workers=1)
    assert StreamDecoder(PAIRS, "pymatching", commit=2, buffer=2, workers=1) == stream
    for bits in (np.zeros(2 * 100_003, bool), np.zeros(2 * 10_001, bool)):
        stream.push(bits)
    assert stream.pushed_rounds == 110_004 and stream.pushed_bits == 220_008
    stream.finish([0, 0])
    assert stream.committed_rounds == 110_005
    stream.reset()
    wrong = np.zeros(2 * 100, bool)
    wrong[30] = True
    with pytest.raises(DecodeError):
        stream.push(wrong)
        stream.finish([0, 0])
    with pytest.raises(DecodeError):
        stream.push([0])
    assert stream.committed_rounds in range(0, 16, 2)
    for count in (-1, 1025):
        with pytest.raises(ValueError, match="workers is"):
            StreamDecoder(PAIRS, workers=count)


def test_the_name_of_the_decoder_may_have_the_windows():
    named = StreamDecoder(MODEL, "sliding-window:inner=pymatching,commit=4,buffer=6")
    assert named.description == StreamDecoder(MODEL, "pymatching", commit=4, buffer=6).description
    with pytest.raises(ValueError, match="commit is also given outside of the name"):
        StreamDecoder(MODEL, "sliding-window:commit=4", commit=5)


def test_the_error_of_a_stream_names_the_window_and_the_broken_promise(breaking_plugin):
    stream = StreamDecoder(PAIRS, f"{breaking_plugin}:break=status", commit=2, buffer=2)
    fault = "window 0: plug-in breaking: decode returned 17, accepted: 0, 3, 5, 7"
    with pytest.raises(DecodeError, match="internal error of the decoder .status 5.: " + fault) as failure:
        stream.push(np.zeros(2 * 9, dtype=bool))
    assert failure.value.fault == fault


@pytest.mark.parametrize("workers", [0, 2])
def test_ctrl_c_ends_a_push_and_a_finish(workers):
    slow = StreamDecoder(MODEL, "relay-bp:num_sets=100,stop_nconv=100", workers=workers)
    rounds = np.random.default_rng(1).random(slow.head_detectors + 40_000 * slow.body_detectors) < 0.05

    def interrupted(call):
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()  # not before: the signal would end the whole session
            try:
                call()
            finally:
                timer.cancel()
        timer.join()

    interrupted(lambda: slow.push(rounds))  # minutes
    assert slow.pushed_bits < len(rounds)
    slow.reset()
    if workers:  # finish hands its windows to them, and waits
        slow.push(rounds[:slow.head_detectors + 4000 * slow.body_detectors])
        for _ in range(2):  # the second call goes on to wait
            interrupted(lambda: slow.finish(np.zeros(slow.tail_detectors, dtype=np.uint8)))
    slow.reset()
    assert slow.pushed_bits == 0


def test_the_handler_of_a_signal_cannot_call_the_object_whose_call_it_interrupts():
    slow = StreamDecoder(MODEL, "relay-bp:num_sets=100,stop_nconv=100")
    rounds = np.random.default_rng(1).random(slow.head_detectors + 40_000 * slow.body_detectors) < 0.05
    before = signal.signal(signal.SIGALRM, lambda *_: slow.pushed_bits)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(RuntimeError, match="by the handler of a signal"):
            slow.push(rounds)  # minutes
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# The example of docs/decoders/streaming.md: a shot of Stim's b8 as a stream, and all shots by windows.
@pytest.mark.skipif(not (shutil.which("stim") and shutil.which("cudaq-realtime")), reason="needs both programs")
def test_the_example_of_the_page_decodes_shots(tmp_path):
    blocks = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    (example,) = [block for block in blocks if "stim convert" in block]
    circuit = stim.Circuit.generated("surface_code:rotated_memory_z", distance=3, rounds=20,
                                     after_clifford_depolarization=0.003, before_measure_flip_probability=0.003)
    circuit.to_file(tmp_path / "circuit.stim")
    circuit.detector_error_model(decompose_errors=True).to_file(tmp_path / "model.dem")
    circuit.compile_detector_sampler(seed=3).sample_write(50, filepath=str(tmp_path / "shots.b8"), format="b8")
    run = subprocess.run(["bash", "-eo", "pipefail", "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.split()
    assert lines[-52:-50][0] == "21"  # Stim's 20 rounds are 21 here
    assert lines[-51] == lines[-50]  # the last frame is the prediction of the first shot
    assert len(lines[-50:]) == 50


def test_values_come_with_the_rounds_and_give_the_answers_of_whole_shots():
    text = str(surface_code(15).flattened())
    circuit = stim.Circuit(text.replace("\nMR ", "\nMR(0.03) ").replace("\nM ", "\nM(0.03) "))
    calibration = Gaussian(1, -1, 0.53)
    made = readout_model(circuit, calibration, fold_loops=True)
    stream = StreamDecoder(made.dem, "pymatching", commit=40, buffer=3, readout=made.readout)
    (body, others), tail = stream.num_measurements, stream.tail_detectors
    true = quiet_circuit(circuit).compile_sampler(seed=3).sample(40)
    values = (np.where(true, -1, 1) + 0.53 * np.random.default_rng(4).normal(size=true.shape)).astype(np.float32)
    events = circuit.compile_m2d_converter().convert(measurements=values < 0, append_observables=False)
    expected = Decoder("pymatching", made.dem, readout=made.readout).decode_batch(events, soft=values)
    for shot, soft, answer in zip(events, values, expected):
        stream.reset()
        before = len(shot) - tail
        stream.push(shot[:before], soft=soft[:-1])
        with pytest.raises(DecodeError, match="soft values have come"):
            stream.finish(shot[before:])
        assert (stream.finish(shot[before:], soft=soft[-1:]) == answer).all()
    assert len(values[0]) == others + body * ((before - stream.head_detectors) // stream.body_detectors)
    assert pickle.loads(pickle.dumps(stream)) == stream
