# SPDX-License-Identifier: Apache-2.0
"""A function as a decoder: its answers, its deadline, and calls that do not return."""
import os
import queue
import sys
import threading
import time

import numpy as np
import pytest
import sinter
import stim
from cudaq_realtime import DecodeError, Decoder, Dispatcher, FunctionDecoder, Pipeline, StageError
from cudaq_realtime.sinter_decoder import SinterDecoder

CHAIN = "error(0.01) D0 L0\nerror(0.02) D0 D1\nerror(0.01) D1"
SHOTS = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])


def left_one(shot):
    """The answers of `lookup` for CHAIN."""
    return np.array([shot[0] & ~shot[1] & 1], np.uint8)


class Stuck:
    """A function that does not return while shots are [1, 1], until release()."""

    def __init__(self):
        self.waiting, self.calls = threading.Event(), 0

    def __call__(self, shot):
        self.calls += 1
        if shot.all():
            assert self.waiting.wait(60)
        return left_one(shot)

    def release(self):
        self.waiting.set()


@pytest.fixture
def stuck():
    function = Stuck()
    yield function
    function.release()


@pytest.mark.parametrize("deadline_us", [None, 60e6])
def test_a_function_has_the_calls_of_a_decoder(deadline_us):
    decoder, expected = FunctionDecoder(left_one, CHAIN, deadline_us=deadline_us), Decoder("lookup", CHAIN)
    assert (decoder.name, decoder.num_detectors, decoder.num_observables) == ("left_one", 2, 1)
    assert np.array_equal(decoder.decode_batch(SHOTS), expected.decode_batch(SHOTS))
    packed = np.packbits(SHOTS, axis=1, bitorder="little")
    assert np.array_equal(decoder.decode_batch(packed, bit_packed_shots=True, bit_packed_predictions=True),
                          expected.decode_batch(packed, bit_packed_shots=True, bit_packed_predictions=True))
    assert decoder.decode([0]).tolist() == decoder([1, 0]).tolist() == [1]
    statuses, solved, late = np.empty(4, np.int32), np.empty(4, bool), np.empty(4, bool)
    decoder.decode_batch(SHOTS, statuses=statuses, solved=solved, late=late)
    assert not statuses.any() and solved.all() and not late.any()
    assert decoder.deadlines == ((14, 0, 0) if deadline_us else (0, 0, 0))


@pytest.mark.parametrize("deadline_us", [None, 60e6])
@pytest.mark.parametrize("answer, fault", [(lambda: 1 / 0, "ZeroDivisionError: division by zero"),
                                           (lambda: [0, 1], r"the answer of function has the shape \(2,\)"),
                                           (lambda: [7], "values other than 0 and 1"), (lambda: None, "has the shape"),
                                           (lambda: ["x"], "has the type <U1")])
def test_a_function_that_raises_or_returns_something_else_is_an_internal_error(deadline_us, answer, fault):
    def function(shot):
        return answer() if shot[0] else [0]

    decoder = FunctionDecoder(function, CHAIN, deadline_us=deadline_us)
    with pytest.raises(DecodeError, match=fault) as raised:
        decoder.decode_batch(SHOTS)
    assert (raised.value.status, raised.value.shot) == (5, 1)
    statuses = np.empty(4, np.int32)
    assert decoder.decode_batch(SHOTS, statuses=statuses).tolist() == [[0]] * 4
    assert statuses.tolist() == [0, 5, 5, 0]
    assert decoder.decode([1]).tolist() == [0]  # it goes on


@pytest.mark.parametrize("events", [[7], [2], [2**63], [2**64 - 1], [1, 1], [0, 1, 0], [7, 7]])
def test_wrong_indices_have_the_status_that_decoders_give_them(events):
    raised = []
    for decoder in (Decoder("lookup", CHAIN), FunctionDecoder(left_one, CHAIN)):
        with pytest.raises(DecodeError) as error:
            decoder.decode(np.array(events, np.uint64))
        raised.append(error.value.status)
    assert raised[0] == raised[1] == (2 if events in ([1, 1], [0, 1, 0]) else 1)
    assert FunctionDecoder(left_one, CHAIN).decode([]).tolist() == [0]


def test_a_shot_that_does_not_return_has_the_status_of_a_deadline_and_the_next_is_decoded(stuck):
    decoder = FunctionDecoder(stuck, CHAIN, deadline_us=200_000)
    statuses, solved = np.empty(4, np.int32), np.empty(4, bool)
    assert decoder.decode_batch(SHOTS, statuses=statuses, solved=solved)[2].tolist() == [0]
    assert statuses[2] == 9 and not solved[2]
    with pytest.raises(DecodeError) as raised:
        decoder.decode([0, 1])
    assert raised.value.status == 9 and 2 <= decoder.stuck_calls <= 4  # on a busy machine a good shot is late, too
    assert decoder.deadlines.missed >= 2
    stuck.release()
    end = time.monotonic() + 30
    while decoder.stuck_calls and time.monotonic() < end:
        time.sleep(0.01)
    assert decoder.stuck_calls == 0


def test_the_number_of_calls_that_do_not_return_is_limited(stuck):
    decoder = FunctionDecoder(stuck, CHAIN, deadline_us=1000)
    before = threading.active_count()
    for _ in range(10):
        with pytest.raises(DecodeError):
            decoder.decode([0, 1])
    assert decoder.stuck_calls == 4 and threading.active_count() - before <= 4
    with pytest.raises(DecodeError):  # without a call
        decoder.decode([0])
    assert stuck.calls <= 4
    stuck.release()
    end = time.monotonic() + 30
    while decoder.stuck_calls and time.monotonic() < end:
        time.sleep(0.01)
    patient = FunctionDecoder(stuck, CHAIN, deadline_us=30e6)
    assert patient.decode([0]).tolist() == [1]


def test_a_late_answer_of_a_batch_without_statuses_raises_nothing(stuck):
    assert FunctionDecoder(stuck, CHAIN, deadline_us=1000).decode_batch([[1, 1]]).tolist() == [[0]]


def test_a_function_may_call_its_own_decoder_and_ends_in_time():
    def again(shot):
        return decoder(shot * 0) if shot[0] else left_one(shot)

    decoder = FunctionDecoder(again, CHAIN)
    assert decoder([1, 0]).tolist() == [0]
    decoder = FunctionDecoder(again, CHAIN, deadline_us=60e6)
    begin = time.monotonic()
    with pytest.raises(DecodeError, match="RuntimeError: the function has called its own decoder") as raised:
        decoder([1, 0])
    assert raised.value.status == 5 and time.monotonic() - begin < 30
    assert decoder([0, 1]).tolist() == [0] and decoder.stuck_calls == 0  # it goes on


def test_a_call_that_was_given_up_may_not_call_its_own_decoder():
    faults, given_up = queue.SimpleQueue(), threading.Event()

    def again(shot):
        if shot[0]:
            assert given_up.wait(60)
            try:
                decoder([0, 1])
            except RuntimeError as error:
                faults.put(error)
        return left_one(shot)

    decoder = FunctionDecoder(again, CHAIN, deadline_us=1000)
    with pytest.raises(DecodeError) as raised:
        decoder([1, 0])
    given_up.set()
    assert raised.value.status == 9 and "has called its own decoder" in str(faults.get(timeout=30))


def test_counts_are_whole_while_threads_call_and_look():
    decoder = FunctionDecoder(left_one, CHAIN, deadline_us=60e6)

    def call():
        for _ in range(200):
            decoder([0, 1])
            assert decoder.stuck_calls == 0

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert decoder.deadlines == (800, 0, 0)


def test_a_dispatcher_goes_on_while_a_function_does_not_return(stuck):
    decoder = FunctionDecoder(stuck, CHAIN, deadline_us=200_000)
    with Dispatcher({"decode": decoder.serve}) as dispatcher:
        assert dispatcher.call("decode", b"\x03") == (9, b"")
        for _ in range(20):  # on a busy machine a good one may be late, too
            answer = dispatcher.call("decode", b"\x01")
            if answer.status == 0:
                break
        assert answer == (0, b"\x01")
        assert dispatcher.call("decode", b"\x01\x00").status == -1005
        assert "payload" in dispatcher.errors[0]


def test_a_pipeline_ends_while_a_function_does_not_return(stuck):
    function = FunctionDecoder(stuck, CHAIN, deadline_us=200_000)
    with pytest.raises(StageError, match="status 9"):
        Pipeline(function, CHAIN, workers=1).run(SHOTS)
    answers, report = Pipeline(FunctionDecoder(left_one, CHAIN, deadline_us=60e6), CHAIN).run(SHOTS)
    assert answers.tolist() == [[0], [1], [0], [0]] and report["decoder"] == "FunctionDecoder"


def lookup_of(dem):
    decoder = Decoder("lookup", dem)
    return lambda shot: decoder.decode(np.flatnonzero(shot))


def endless_of(_):
    return lambda shot: time.sleep(3600)


def test_sinter_collects_with_a_function_and_counts_those_that_do_not_return_as_failures():
    circuit = stim.Circuit.generated("repetition_code:memory", distance=3, rounds=3,
                                     before_round_data_depolarization=0.05)
    custom = {"mine": SinterDecoder(lookup_of), "endless": SinterDecoder(endless_of, deadline_us=1000)}
    stats = sinter.collect(num_workers=1, tasks=[sinter.Task(circuit=circuit)], decoders=list(custom),
                           custom_decoders=custom, max_shots=300)
    by_name = {one.decoder: one for one in stats}
    assert by_name["mine"].errors < by_name["mine"].shots / 5
    assert by_name["endless"].errors == by_name["endless"].shots >= 300
    with pytest.raises(ValueError, match="is for functions"):
        SinterDecoder("lookup", deadline_us=5)


def test_a_child_of_fork_calls_the_function_on_threads_of_its_own():
    decoder = FunctionDecoder(left_one, CHAIN, deadline_us=30e6)
    assert decoder.decode([0]).tolist() == [1]
    child = os.fork()
    if child == 0:
        os._exit(0 if decoder.decode([0]).tolist() == [1] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_arguments_of_another_type_are_refused():
    with pytest.raises(TypeError, match="function is 'lookup'"):
        FunctionDecoder("lookup", CHAIN)
    for bad in (0, -1, "5", 2e9, float("nan")):
        with pytest.raises(ValueError, match="deadline_us"):
            FunctionDecoder(left_one, CHAIN, deadline_us=bad)
    with pytest.raises(ValueError, match="shot has the shape"):
        FunctionDecoder(left_one, CHAIN)([1])
