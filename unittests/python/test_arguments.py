# SPDX-License-Identifier: Apache-2.0
"""Events, models and numbers of a caller: each is taken in every form, or refused with its name and the remedy."""
import os
import re
import socket
import subprocess
import sys
import threading
import time

import cudaq_realtime
import numpy as np
import pytest
import stim
from cudaq_realtime import Answer, Client, Decoder, Dispatcher, Pipeline, StreamDecoder
from cudaq_realtime.sinter_decoder import SinterDecoder

CHAIN = "error(0.01) D0 L0\nerror(0.02) D0 D1\nerror(0.01) D1 D2\nerror(0.01) D2"
CIRCUIT = stim.Circuit.generated("repetition_code:memory", distance=3, rounds=2, before_round_data_depolarization=0.1)


def by_a_stage(name):
    """A predecoder that returns these events, as the events that it leaves or as the observables."""
    def run(given):
        def stage(shot):
            return (given, [0]) if name == "left" else (shot, given)
        return Pipeline("lookup", CHAIN if name == "left" else CHAIN.replace("L0", "L0 L1 L2"),
                        predecoder=stage, workers=1).run(np.zeros((1, 3), dtype=bool))
    return run


LOOP = """repeat 5 {
    detector(0) D0
    error(0.1) D0 L0
    shift_detectors(1) 1
}
detector(0) D0
detector(0) D1
detector(0) D2
error(0.1) D0
error(0.1) D1
error(0.1) D2"""
STREAM = StreamDecoder(LOOP, "lookup", commit=1, buffer=1)


def ended_stream():
    STREAM.reset()
    return STREAM


# Every entry that takes detection events, and what it takes them as.
DECODER = Decoder("pymatching:edges=1", CHAIN)
ENTRIES = {
    "decode": (DECODER.decode, "indices"),
    "decode with weight": (lambda given: DECODER.decode(given, return_weight=True), "indices"),
    "decode_to_edges_array": (DECODER.decode_to_edges_array, "indices"),
    "decode_batch": (DECODER.decode_batch, "rows"),
    "decode_batch packed": (lambda given: DECODER.decode_batch(given, bit_packed_shots=True), "packed"),
    "Pipeline.run": (Pipeline("pymatching", CHAIN).run, "rows"),
    "Pipeline.run packed": (lambda given: Pipeline("pymatching", CHAIN).run(given, bit_packed_shots=True), "packed"),
    "StreamDecoder.push": (lambda given: STREAM.push(given), "any bits"),
    "StreamDecoder.push packed": (lambda given: STREAM.push(given, count=3), "packed bits"),
    "StreamDecoder.finish": (lambda given: ended_stream().finish(given), "bits of a tail"),
    "StreamDecoder.frames": (lambda given: next(STREAM.frames([given, np.zeros(9, bool)])), "any bits"),
    "sinter": (lambda given: SinterDecoder("lookup").compile_decoder_for_dem(dem=stim.DetectorErrorModel(
        CHAIN)).decode_shots_bit_packed(bit_packed_detection_event_data=given), "packed"),
    "events of a predecoder": (by_a_stage("left"), "bits"),
    "observables of a predecoder": (by_a_stage("observables"), "bits"),
}
TAKEN = {
    "indices": [[], [0], (1, 0), range(2), np.array([0]), np.array([1], np.uint64), np.array([1], np.int16),
                np.array([], dtype=bool), np.flatnonzero([True, False, True]), np.array([0, 9, 1])[::2], np.array([])],
    "rows": [[[0, 1, 0]], np.ones((2, 3), bool), np.ones((2, 3), np.uint8), np.zeros((0, 3), int),
             np.asfortranarray(np.eye(3, dtype=np.int64))],
    "packed": [np.zeros((2, 1), np.uint8), np.array([[7], [5]], np.uint8)],
    "bits": [[0, 1, 0], np.ones(3, bool), np.ones(3, np.uint8), (True, False, True)],
    "any bits": [[], [1], [[0, 1], [1, 0]], np.ones((2, 3, 4), bool), np.asfortranarray(np.eye(3, dtype=np.int64)),
                 np.ones(9, np.uint8)[::2], np.array([], dtype=bool)],
    "bits of a tail": [[0, 1, 0], np.ones((1, 3), bool)],
    "packed bits": [np.zeros(1, np.uint8), np.array([7], np.uint8), np.array([7, 9], np.uint8)[::2]],
}
FOR_ALL = [0.5, [0.7, 1.2], np.zeros(3), "0", "010", b"010", ["0"], ["0", "1", "0"], None, {0}, [None], [[0], [1, 2]],
           [object()], np.zeros((1, 3)), [[["0", "0", "0"]]], np.array(["1970"], "M8[Y]"), np.array([1], "m8[s]"), 1j]
REFUSED = {
    "indices": [0, True, [True, False, True], np.array([1], bool), np.array([0], np.uint8),
                np.array([0, 0, 1], np.uint8), np.array([0, 1, 0], np.int8), [0, 1, 0], np.array([0, 0, 1]),
                [[0, 1]], np.zeros((1, 3), bool), [-1], [0.0], np.array([0.0, 1.0]), [2**70]],
    "rows": [[0, 1, 0], [[0, 1]], [[0, 2, 0]], [[0, -1, 0]], [[0.0, 1.0, 0.0]], [["0", "1", "0"]],
             np.zeros((1, 3), "m8[s]")],
    "packed": [[[1]], np.zeros((1, 1), bool), np.zeros((1, 3), np.uint8), np.zeros((1, 1), np.int8), [["a"]]],
    "any bits": [0, True, [0, 1, 2], [-1], [0.0, 1.0], [[0, 1], [2, 0]], np.array([7], np.uint8)],
    "bits of a tail": [[0, 1], [0, 1, 2], [0, 1, -1], [0.0, 1.0, 0.0], 0, np.zeros((2, 3), bool)],
    "packed bits": [[1], np.zeros(1, bool), np.zeros(2, np.uint8), np.zeros((1, 1), np.uint8), np.zeros(1, np.int8)],
    "bits": [[0, 1], [0, 1, 2], [0, 1, -1], [0.0, 1.0, 0.0], [[0, 1, 0]], 0],
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_events_are_taken_in_the_form_of_the_entry(entry):
    run, form = ENTRIES[entry]
    for given in TAKEN[form]:
        if isinstance(given, np.ndarray):
            given.flags.writeable = False  # nothing writes into it
        run(given)


@pytest.mark.parametrize("entry", ENTRIES)
def test_events_in_another_form_are_refused_with_what_is_accepted(entry):
    run, form = ENTRIES[entry]
    for given in FOR_ALL + REFUSED[form]:
        with pytest.raises((ValueError, cudaq_realtime.StageError), match="accepted|other than 0 and 1"):
            run(given)
            pytest.fail(f"{given!r} was taken")


@pytest.mark.parametrize("entry", [e for e, (_, form) in ENTRIES.items() if form == "indices"])
def test_a_bit_array_is_never_read_as_indices(entry):
    for bits in (np.array([1, 0, 1], np.uint8), np.array([True, False, True]), np.array([0], np.uint8),
                 np.array([1, 0, 1]), [True, False, True], np.zeros((2, 3), np.uint8)):
        with pytest.raises(ValueError, match=r"np\.flatnonzero\(bits\).*decode_batch"):
            ENTRIES[entry][0](bits)


MODELS = {"Decoder": lambda dem: Decoder("lookup", dem).decode_batch(np.ones((1, 3), bool)),
          "Pipeline": lambda dem: Pipeline("lookup", dem).run(np.ones((1, 3), bool))[0],
          "Pipeline of a function": lambda dem: Pipeline(lambda shot: [0], dem).run(np.zeros((1, 3), bool))[0]}


@pytest.mark.parametrize("entry", MODELS)
def test_a_model_is_taken_as_an_object_a_text_and_a_path(entry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("error")
    expected = MODELS[entry](CHAIN).tolist()
    for path in ("a model (1)", "model.dem", "error/model.dem"):
        (tmp_path / path).write_text(f"# comment: H 0\n\n  {CHAIN}")
        assert MODELS[entry](path).tolist() == MODELS[entry](tmp_path / path).tolist() == expected
    assert MODELS[entry](stim.DetectorErrorModel(CHAIN)).tolist() == expected
    assert MODELS[entry]("repeat 3 {\n    ERROR(0.1) D0 L0\n    shift_detectors 1\n}").shape == (1, 1)
    assert Decoder("lookup", "").num_detectors == Decoder("lookup", "# nothing").num_detectors == 0


def test_shots_for_an_empty_model_are_refused_because_it_has_no_detectors():
    empty = Decoder("lookup", "# nothing")
    assert empty.decode([]).shape == (0,)
    for call in (lambda: empty.decode_batch(ROW), lambda: empty.decode_batch(ROW, bit_packed_shots=True),
                 lambda: empty.decode([0]), lambda: StreamDecoder("")):
        with pytest.raises(ValueError, match="the model has no detectors"):
            call()


@pytest.mark.parametrize("entry", MODELS)
def test_what_is_no_model_is_refused_with_the_remedy(entry, tmp_path):
    CIRCUIT.to_file(tmp_path / "code.stim")
    for circuit in (CIRCUIT, str(CIRCUIT), tmp_path / "code.stim", str(tmp_path / "code.stim")):
        with pytest.raises(ValueError, match=r"(dem|code\.stim).*\.detector_error_model\((\w+=True)?\)"):
            MODELS[entry](circuit)
    for name in ("file.dem", "/no/such/file.dem", "../d5", "d5"):
        with pytest.raises(ValueError, match=f"dem is '{name}': no such file, and no model"):
            MODELS[entry](name)
    with pytest.raises(FileNotFoundError, match="missing.dem"):
        MODELS[entry](tmp_path / "missing.dem")
    for folder in (tmp_path, str(tmp_path)):
        with pytest.raises(IsADirectoryError, match=f"Is a directory.*{tmp_path.name}"):
            MODELS[entry](folder)
    for other in (None, 5, CHAIN.encode(), [CHAIN], DECODER):
        with pytest.raises(TypeError, match="dem is .*accepted: a stim.DetectorErrorModel, its text, or the path"):
            MODELS[entry](other)


ROW = np.zeros((1, 3), dtype=bool)


@pytest.mark.parametrize("call, text", [
    (lambda: Decoder(None, CHAIN), "name of the decoder is None, accepted: one of decoder_names"),
    (lambda: Decoder(DECODER, CHAIN), "name of the decoder is Decoder"),
    (lambda: DECODER.decode_batch(ROW, threads=10**5), "threads is 100000, accepted: 0 to 1024"),
    (lambda: DECODER.decode_batch(ROW, threads=-1), "threads is -1, accepted: 0 to 1024"),
    (lambda: DECODER.decode_batch(ROW, threads=2.0), "threads is 2.0, accepted: a whole number"),
    (lambda: DECODER.decode_batch(ROW, statuses=[0]), r"statuses is \[0\], accepted: an array int32\[1\]"),
    (lambda: DECODER.decode_batch(ROW, statuses=np.frombuffer(bytes(4), np.int32)), "statuses is read only"),
    (lambda: DECODER.decode_batch(np.zeros((2, 3), bool), statuses=np.zeros(4, np.int32)[::2]), "is not contiguous"),
    (lambda: DECODER.decode_batch(np.zeros((2, 1), np.uint8)),
     r"has the shape \(2, 1\), accepted: rows of 3 bits, or packed rows of 1 byte with bit_packed_shots=True"),
    (lambda: Pipeline("lookup", CHAIN).run(np.zeros((2, 1), np.uint8)), "or packed rows of 1 byte "),
    (lambda: StreamDecoder(LOOP, None), "name of the decoder is None, accepted"),
    (lambda: StreamDecoder(LOOP, commit=-1), "commit is -1, accepted: 0 to 1048576"),
    (lambda: StreamDecoder(LOOP, buffer=1.5), "buffer is 1.5, accepted: a whole number from 0 to 1048576"),
    (lambda: StreamDecoder(LOOP, rounds=3), "rounds is 3, accepted: 'time', or 'index:N'"),
    (lambda: StreamDecoder(5), "dem is 5, accepted: a stim.DetectorErrorModel"),
    (lambda: STREAM.push(np.zeros(1, np.uint8), count=-1), "count is -1, accepted"),
    (lambda: STREAM.push(np.zeros(1, np.uint8), count="8"), "count is '8', accepted: a whole number"),
    (lambda: STREAM.push(np.zeros(1, np.uint8), count=9), r"is uint8\[1\], accepted for 9 packed bits: uint8\[2\]"),
    (lambda: Pipeline("lookup", CHAIN).run(ROW, rate=float("nan")), "rate is nan, accepted: a number of 0 or more"),
    (lambda: Pipeline("lookup", CHAIN).run(ROW, rate=float("inf")), "rate is inf, accepted"),
    (lambda: Pipeline("lookup", CHAIN).run(ROW, rate=-1), "rate is -1, accepted"),
    (lambda: Pipeline("lookup", CHAIN).run(ROW, rate=1e-300), "rate is 1e-300, accepted: 1e-09 or more for 1 shots"),
    (lambda: Pipeline("lookup", CHAIN).run(ROW, rate="fast"), "rate is 'fast', accepted"),
    (lambda: Pipeline("lookup", CHAIN).run(ROW, rate=None), "rate is None, accepted"),
    (lambda: Pipeline("lookup", CHAIN, workers=10**5), "workers is 100000, accepted: 1 to 64"),
    (lambda: Pipeline("lookup", CHAIN, workers=2.5), "workers is 2.5, accepted: a whole number"),
    (lambda: Pipeline("lookup", CHAIN, slots=2**40), "slots is 1099511627776, accepted: 1 to 16777216"),
    (lambda: Pipeline("lookup", CHAIN, slots="8"), "slots is '8', accepted: a whole number"),
    (lambda: Pipeline(DECODER, CHAIN), "decoder is Decoder.*accepted: a name as of Decoder, or a function"),
    (lambda: Pipeline("lookup", CHAIN, predecoder="local"), "predecoder is 'local', accepted: None, or a function"),
    (lambda: Dispatcher([1]), r"handlers is \[1\], accepted: a dict"),
    (lambda: Dispatcher({"a": 5}), "handlers has 'a': 5, accepted: a name and a function"),
    (lambda: Dispatcher({5: print}), "handlers has 5: .*accepted: a name and a function"),
    (lambda: Dispatcher({}, slots=-1), "slots is -1, accepted"),
    (lambda: Dispatcher({}, slot_size=1e3), "slot_size is 1000.0, accepted: a whole number"),
])
def test_an_argument_out_of_its_range_is_named_with_what_is_accepted(call, text):
    with pytest.raises((TypeError, ValueError), match=text):
        call()


def test_the_largest_number_of_threads_works():
    assert DECODER.decode_batch(np.zeros((2000, 3), bool), threads=1024).sum() == 0


def test_threads_that_the_system_does_not_start_are_named():
    script = f"""
import resource
import numpy as np
from cudaq_realtime import Decoder
decoder = Decoder("lookup", {CHAIN!r})
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (256 << 20), resource.RLIM_INFINITY))  # a stack has some megabytes
try:
    decoder.decode_batch(np.zeros((2000, 3), bool), threads=1024)
except RuntimeError as error:
    print(error)
print(decoder.decode_batch(np.zeros((2000, 3), bool), threads=2).sum())
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert re.match(r"threads is 1024, but the system starts no more than \d+ .*: use fewer\n0\n", ended.stdout), ended


@pytest.fixture(scope="module")
def dispatcher():
    results = {"bytes": b"ab", "bytearray": bytearray(b"ab"), "memoryview": memoryview(b"xaxb")[1::2],
               "array": np.array([97, 98], np.uint8), "answer": Answer(3, b"ab"), "status": (np.int64(3), b"ab"),
               "str": "ab", "None": None, "int": 5, "list": [1], "float": (0.5, b"ab"), "long": (2**31, b"ab"),
               "three": (1, b"a", b"b"), "objects": np.array([None])}
    handlers = {name: lambda payload, result=result: result for name, result in results.items()}
    with Dispatcher({**handlers, "echo": lambda payload: payload}) as running:
        yield running


def test_results_of_handlers_are_bytes_or_refused_by_the_name_of_the_handler(dispatcher):
    for name in ("bytes", "bytearray", "memoryview", "array"):
        assert dispatcher.call(name) == Answer(0, b"ab")
    for name in ("answer", "status"):
        assert dispatcher.call(name) == Answer(3, b"ab")
    for name, text in (("str", "the result of the handler 'str' is 'ab', accepted: bytes"),
                       ("None", "the result of the handler 'None' is None, accepted: bytes"),
                       ("int", "the result of the handler 'int' is 5, accepted: bytes"),
                       ("list", "the result of the handler 'list' is [1], accepted: bytes"),
                       ("three", "the result of the handler 'three' is (1, b'a', b'b'), accepted: bytes"),
                       ("objects", "the result of the handler 'objects' is an array of Python objects"),
                       ("float", "the status of the handler 'float' is 0.5, accepted: a whole number"),
                       ("long", "the status of the handler 'long' is 2147483648, accepted: -2147483648 to")):
        assert dispatcher.call(name).status == -1005
        assert any(text in error for error in dispatcher.errors), (text, dispatcher.errors)


def test_payloads_are_bytes_or_refused(dispatcher):
    for payload in (b"ab", bytearray(b"ab"), memoryview(b"ab"), np.array([97, 98], np.uint8)):
        assert dispatcher.call("echo", payload).result == b"ab"
    for payload in (5, "ab", None, [1, 2], 0.5):
        with pytest.raises(TypeError, match="payload is .*, accepted: bytes"):
            dispatcher.call("echo", payload)
    with pytest.raises(TypeError, match="name is 5, accepted: the name of a handler"):
        dispatcher.call(5)
    for timeout in (float("nan"), -1, "5", None):
        with pytest.raises(ValueError, match="timeout is .*, accepted: a number of 0 or more"):
            dispatcher.call("echo", timeout=timeout)


def test_what_is_longer_than_a_length_of_32_bits_is_refused(dispatcher):
    long = np.broadcast_to(np.uint8(0), 2**32 + 3)  # one byte of memory
    with pytest.raises(ValueError, match="payload has 4294967299 bytes, accepted: 4294967295 at most"):
        dispatcher.call("echo", long)
    with Dispatcher({"long": lambda payload: long}) as answering:
        assert answering.call("long").status == -1005
        assert "the result of the handler 'long' has 4294967299 bytes" in answering.errors[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        with Client("udp", silent.getsockname()) as client, pytest.raises(ValueError, match="payload has 4294967299"):
            client.call("anything", long)


def test_a_call_that_cannot_be_answered_ends_at_once():
    begin = time.monotonic()
    holder = []
    handlers = {"echo": lambda payload: payload, "self": lambda payload: holder[0].call("echo", timeout=300).result}
    dispatcher = Dispatcher(handlers)
    holder.append(dispatcher)
    with pytest.raises(RuntimeError, match=r"does not run: call start\(\)"):
        dispatcher.call("echo", timeout=300)
    with dispatcher:
        assert dispatcher.call("self", timeout=300).status == -1005
        assert "cannot call its own dispatcher" in dispatcher.errors[0]
        assert dispatcher.call("echo", b"x").result == b"x"
    with pytest.raises(RuntimeError, match="does not run"):
        dispatcher.call("echo", timeout=300)
    assert time.monotonic() - begin < 200
    del holder[:]


def test_a_call_that_waits_ends_when_the_dispatcher_stops():
    go_on, entered, texts = threading.Event(), threading.Event(), []

    def wait(payload):
        entered.set()
        go_on.wait(60)
        return payload

    dispatcher = Dispatcher({"wait": wait}, slots=1)

    def second():  # waits for the only slot, and gets it too late or not at all
        try:
            texts.append(dispatcher.call("wait", b"2", timeout=300).result.decode())
        except RuntimeError as error:
            texts.append(str(error))

    dispatcher.start()
    callers = [threading.Thread(target=second) for _ in range(2)]
    for caller in callers:
        caller.start()
    assert entered.wait(60)
    threading.Timer(0.05, go_on.set).start()
    dispatcher.stop()
    for caller in callers:
        caller.join(60)
    assert len(texts) == 2 and all(text == "2" or "does not run" in text for text in texts), texts
