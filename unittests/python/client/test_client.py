# SPDX-License-Identifier: Apache-2.0
"""The client of the decoding server: golden frames, lost and repeated datagrams, limits, and a server that runs."""
import contextlib
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import threading
import time

import numpy as np
import pytest
from cudaq_realtime import Answer, Client, DecodeError, ServerError

GOLDEN = pathlib.Path(__file__).parents[2] / "qec/server/golden"
SLOT_SIZE = 128
MODEL = "error(0.01) D0 L0\nerror(0.02) D0 D1\nerror(0.01) D1 L1"
LOOP = """repeat 9 {
    detector(0) D0
    detector(0) D1
    error(0.1) D0 L0
    error(0.1) D1 L1
    shift_detectors(1) 2
}
detector(0) D0
detector(0) D1
error(0.1) D0 L0
error(0.1) D1 L1"""


def bits(text):
    return np.array([int(one) for one in text], np.uint8)


class Peer:
    """A server of one socket. `answers`: called with each request, returns the datagrams to send."""

    def __init__(self, answers, address=("127.0.0.1", 0), slot_size=SLOT_SIZE):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.address = self.socket.getsockname()
        self.answers, self.requests, self.slot_size = answers, [], slot_size
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            request, sender = self.socket.recvfrom(65536)
            if not request:
                return
            self.requests.append(request)
            for answer in self.answers(request):
                self.socket.sendto(answer.ljust(self.slot_size, b"\0"), sender)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self.address)
        self.thread.join(10)
        self.socket.close()


def response(request, status, result=b""):
    return struct.pack("<IiI", 0x43555153, status, len(result)) + request[12:24] + result


def golden_lines(name):
    lines = (GOLDEN / name).read_text().splitlines()
    return {name: (bytes.fromhex(request), bytes.fromhex(answer))
            for name, request, answer in (line.split() for line in lines if not line.startswith("#"))}


FRAMES, STREAM_FRAMES = golden_lines("frames.txt"), golden_lines("stream_frames.txt")
READOUT_FRAMES, GAPS_FRAMES = golden_lines("readout_frames.txt"), golden_lines("gaps_frames.txt")
DESCRIBE = 0xD546EA57


def frame(committed, pushed, observables):
    return committed, pushed, bits(observables).tolist()


# In the order of the files: the call, and its result, the status of its ServerError, or None. The others of the files
# are requests that this client does not send.
EXCHANGES = [
    ("enqueue_whole_shot", lambda c: c.enqueue(3, bits("1100000001")), None),
    ("get_and_clear", lambda c: c.corrections(3, observables=10, clear=True), "1100000001"),
    ("get_after_clear", lambda c: c.corrections(3, observables=10), "0000000000"),
    ("enqueue_first_part", lambda c: c.enqueue(3, [True, False, True]), None),
    ("enqueue_second_part", lambda c: c.enqueue(3, np.array([0x60], np.uint8), count=7), None),
    ("get_first_four", lambda c: c.corrections(3, observables=4), "1010"),
    ("get_too_many", lambda c: c.corrections(3, observables=11), 2),
    ("enqueue_unknown_decoder", lambda c: c.enqueue(99, [1]), 1),
    ("lost", lambda c: c.enqueue(3, [0]), TimeoutError),
    ("enqueue_after_a_gap", lambda c: c.enqueue(3, [1]), 6),
    ("get_after_a_gap", lambda c: c.corrections(3, observables=10), 6),
    ("reset", lambda c: c.reset(3), None),
    ("lost", lambda c: c.enqueue(3, [0]), TimeoutError),
    ("enqueue_latched", lambda c: c.enqueue(3, [1]), 2),
    ("reset_unknown_decoder", lambda c: c.reset(2**63), 1),
    ("one_shot", lambda c: c.decode(bits("0100000010"), observables=10), "0100000010"),
    ("enqueue_not_converged", lambda c: c.enqueue(5, bits("1100000000")), 9),
    ("enqueue_after_it", lambda c: c.enqueue(5, bits("0010000000")), 9),
    ("get_after_it", lambda c: c.corrections(5, observables=10), 9),
    ("enqueue_two_rounds", lambda c: c.enqueue(4, [[1, 0, 0], [0, 1, 0]]), None),
    ("nothing_is_final", lambda c: c.committed(4, observables=3), frame(0, 2, "000")),
    ("wait_without_a_queue", lambda c: c.committed(4, observables=3, wait_for_round=2, timeout=0.2), 5),
    ("enqueue_part_of_a_round", lambda c: c.enqueue(4, [1]), None),
    ("enqueue_the_rest", lambda c: c.enqueue(4, [0, 0]), None),
    ("two_rounds_are_final", lambda c: c.committed(4, observables=3, wait_for_round=2), frame(2, 3, "110")),
    ("get_corrections_of_a_stream", lambda c: c.corrections(4, observables=2, clear=True), "11"),
    ("enqueue_two_more", lambda c: c.enqueue(4, [[0, 0, 1], [1, 0, 0]]), None),
    ("later_rounds_after_clear", lambda c: c.committed(4, observables=3, clear=True, wait_for_round=4),
     frame(4, 5, "101")),
    ("begin_tail", lambda c: c.begin_tail(4), None),
    ("enqueue_the_tail", lambda c: c.enqueue(4, [1, 1, 1]), None),
    ("all_is_final", lambda c: c.committed(4, observables=3, wait_for_round=1000), frame(6, 6, "011")),
    ("enqueue_after_the_end", lambda c: c.enqueue(4, [1]), 7),
    ("get_committed_latched", lambda c: c.committed(4, observables=3), 7),
    ("reset_stream", lambda c: c.reset(4), None),
    ("begin_tail_before_the_head", lambda c: c.begin_tail(4), 7),
    ("reset_third_time", lambda c: c.reset(4), None),
    ("enqueue_the_head", lambda c: c.enqueue(4, [0, 0, 0]), None),
    ("lost", lambda c: c.begin_tail(4), TimeoutError),
    ("begin_tail_after_a_gap", lambda c: c.begin_tail(4), 6),
    ("get_committed_unknown_decoder", lambda c: c.committed(5, observables=3), 1),
    ("one_shot_of_a_stream", lambda c: c.decode([1, 1, 1], observables=3), 2),
]


def test_calls_make_the_golden_requests_and_read_the_golden_answers():
    present, wrong, lost = [None, None], [], threading.Semaphore(0)  # present: this name, and the one before

    def answers(request):
        if present[0] == "lost":
            lost.release()
            return []

        def is_golden(name):  # id and time are those of the requester
            expected = {**FRAMES, **STREAM_FRAMES}[name][0]
            return request[:12] + request[24:] == expected[:12] + expected[24:]

        now, before = present
        if before == "wait_without_a_queue" and not is_golden(now) and is_golden(before):
            return []  # its last request, for whose answer the client has not waited
        answer = {**FRAMES, **STREAM_FRAMES}[now][1]
        if not is_golden(now):
            wrong.append((now, request))
        return [answer[:12] + request[12:24] + answer[24:]]

    with Peer(answers) as peer, Client("udp", peer.address, slot_size=SLOT_SIZE, timeout=60) as client:
        for name, call, expected in EXCHANGES:
            present[:] = name, present[0]
            if expected is TimeoutError:
                client._seconds, usual = 0.05, client._seconds
                with pytest.raises(TimeoutError, match="no answer"):
                    call(client)
                client._seconds = usual
                assert lost.acquire(timeout=60)  # the peer's thread has had it: the next name is for the next request
            elif isinstance(expected, int):
                with pytest.raises((ServerError, TimeoutError) if expected == 5 else ServerError) as raised:
                    call(client)  # one that is busy for so long may wait for its last answer at the end
                assert getattr(raised.value, "status", 5) == expected, name
            else:
                got = call(client)
                if isinstance(expected, tuple):
                    got = (got.committed_rounds, got.pushed_rounds, got.observables.tolist())
                elif expected is not None:
                    got, expected = got.tolist(), bits(expected).tolist()
                assert got == expected, name
            assert not wrong


def gaps_description(gap_bytes):
    return bytes(96) + struct.pack("<Q", gap_bytes)


def test_answers_with_gaps_are_read_as_the_golden_ones():
    sure, unknown = [np.inf] * 9, [k / 4 for k in range(8)] + [np.nan]
    calls = [
        ("reset_with_gaps", lambda c: c.reset(8), None),
        ("no_shot_is_sure", lambda c: c.corrections(8, observables=9, confidence=True), ("000000000", sure)),
        ("a_shot_without_events", lambda c: c.enqueue(8, [0, 0]), None),
        ("its_gaps", lambda c: c.corrections(8, observables=9, confidence=True), ("000000000", [8.0] * 9)),
        ("a_shot_with_an_event", lambda c: c.enqueue(8, [1, 0]), None),
        ("the_least_gaps_of_both", lambda c: (c.corrections(8, observables=9), []), ("100000001", [])),
        ("a_gap_is_not_known", lambda c: c.enqueue(8, [0, 1]), None),
        ("nor_is_that_of_the_sum", lambda c: c.corrections(8, observables=9, confidence=True),
         ("110000001", unknown)),
        ("gaps_of_the_first_three", lambda c: c.corrections(8, observables=3, clear=True, confidence=True),
         ("110", [0, 0.25, 0.5])),
        ("sure_after_clear", lambda c: c.corrections(8, observables=9, confidence=True), ("000000000", sure)),
        ("one_shot_with_gaps", lambda c: c.decode([0, 1], observables=9, confidence=True), ("010000000", unknown)),
        ("one_shot_with_gaps", lambda c: (c.decode([0, 1], observables=9), []), ("010000000", [])),
    ]
    wrong = []

    def answers(request):
        if request[4:8] == struct.pack("<I", DESCRIBE):
            return [response(request, 0, gaps_description(4))]
        expected, answer = GAPS_FRAMES[name]
        if request[:12] + request[24:] != expected[:12] + expected[24:]:
            wrong.append((name, request))
        return [answer[:12] + request[12:24] + answer[24:]]

    with Peer(answers) as peer, Client("udp", peer.address, slot_size=SLOT_SIZE, timeout=60) as client:
        assert client.gives_gaps(8)
        for name, call, expected in calls:
            got = call(client)
            if expected is not None:
                assert got[0].tolist() == bits(expected[0]).tolist(), name
                np.testing.assert_array_equal(got[1], np.array(expected[1], np.float32), name)
        assert not wrong


@pytest.mark.parametrize("description", [(2, b""), (0, gaps_description(0))])
def test_corrections_without_gaps_are_not_cleared_by_who_wants_gaps(description):
    functions = []

    def answers(request):
        functions.append(request[4:8])
        return [response(request, *(description if functions[-1] == struct.pack("<I", DESCRIBE) else (0, b"\1")))]

    with Peer(answers) as peer, Client("udp", peer.address, slot_size=SLOT_SIZE, timeout=60) as client:
        with pytest.raises(NotImplementedError, match="confidence=1"):
            client.corrections(8, observables=1, clear=True, confidence=True)
        assert functions == [struct.pack("<I", DESCRIBE)]
        with pytest.raises(NotImplementedError, match="confidence=1"):
            client.decode([1], observables=1, confidence=True)
        assert client.corrections(8, observables=1).tolist() == [1]


def test_gaps_of_another_length_are_refused():
    answer = b"\1" + bytes(8)  # of one observable: a number of 8 bytes

    def answers(request):
        is_describe = request[4:8] == struct.pack("<I", DESCRIBE)
        return [response(request, 0, gaps_description(8) if is_describe else answer)]

    with Peer(answers) as peer, Client("udp", peer.address, slot_size=SLOT_SIZE, timeout=60) as client:
        with pytest.raises(RuntimeError, match="gaps have 8 bytes, this client knows 4"):
            client.gives_gaps(8)
        with pytest.raises(RuntimeError, match="the answer has 9 bytes"):
            client.corrections(8, observables=1)
    with Peer(lambda request: [response(request, 2)], slot_size=127) as peer, \
            Client("udp", peer.address, slot_size=127, timeout=60) as client:
        with pytest.raises(ValueError, match="slots have 127 bytes, too few to tell whether answers have gaps: .* 128"):
            client.gives_gaps(8)


def test_all_golden_frames_are_there():
    assert len(FRAMES) == 22 and len(STREAM_FRAMES) == 28 and len(READOUT_FRAMES) == 56
    assert len(GAPS_FRAMES) == 11
    assert {name for name, _, _ in EXCHANGES} - {"lost"} <= set(FRAMES) | set(STREAM_FRAMES)


def test_a_request_is_sent_again_with_its_id_only_if_the_user_says_so():
    def answers(request):  # the third datagram of the second client
        return [response(request, 0)] if len(peer.requests) == 4 else []

    with Peer(answers) as peer:
        with Client("udp", peer.address, timeout=0.3) as once, pytest.raises(TimeoutError):
            once.reset(1)
        while not peer.requests:  # its thread may come later than the end of the wait
            time.sleep(0.01)
        assert len(peer.requests) == 1
        with Client("udp", peer.address, timeout=30, resend_after=0.02) as again:
            again.reset(1)
        assert peer.requests[1:4] == [peer.requests[1]] * 3


def test_late_and_malformed_datagrams_are_no_answers():
    def answers(request):
        late = request[:12] + struct.pack("<I", struct.unpack_from("<I", request, 12)[0] - 1) + request[16:]
        return [response(late, 3), b"", b"RUSC", request, struct.pack("<IiI", 0x43555153, 0, 4000) + request[12:24],
                response(request, 0, b"ok")]

    with Peer(answers) as peer, Client("udp", peer.address, timeout=60) as client:
        assert client.call("anything") == Answer(0, b"ok")
        assert client.call("anything", timeout=60) == Answer(0, b"ok")


def test_a_busy_transport_gets_the_same_id_and_a_busy_decoder_another_one():
    statuses = [-1011, -1011, 0, 5, 5, 0]

    def answers(request):
        return [response(request, statuses[len(peer.requests) - 1])]

    with Peer(answers) as peer, Client("udp", peer.address, slot_size=SLOT_SIZE, timeout=60) as client:
        client.enqueue(0, [1])
        client.enqueue(0, [1])
    ids = [struct.unpack_from("<I", one, 12)[0] for one in peer.requests]
    assert [(one - ids[0]) % 2**32 for one in ids] == [0, 0, 0, 1, 2, 3]
    assert [struct.unpack_from("<Q", one, 32)[0] for one in peer.requests] == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("slot_size", [24, 48, 56])
def test_bits_for_slots_without_room_for_one_are_refused(slot_size):
    with Peer(lambda request: [response(request, 1)], slot_size=slot_size) as peer:
        with Client("udp", peer.address, timeout=60) as client:
            with pytest.raises(ValueError, match=f"slots have {slot_size} bytes, too few for a request with bits"):
                client.enqueue(0, [1])


def test_a_repetition_without_room_says_nothing_of_the_frame_before_it():
    def answers(request):
        return [response(request, -1011)] if len(peer.requests) > 1 else []

    with Peer(answers) as peer, Client("udp", peer.address, slot_size=SLOT_SIZE, timeout=0.3,
                                       resend_after=0.02) as client:
        with pytest.raises(TimeoutError):
            client.begin_tail(0)
        with pytest.raises((ServerError, TimeoutError)):
            client.begin_tail(0)
    assert {struct.unpack_from("<Q", one, 32)[0] for one in peer.requests} == {1, 2}


@pytest.mark.parametrize("busy", [5, -1011])
def test_a_request_is_not_executed_if_the_server_is_busy_until_the_end_of_the_wait(busy):
    status = [busy]
    with Peer(lambda request: [response(request, status[0])]) as peer:
        for _ in range(20):  # on a busy machine the last attempt may have no answer
            client, status[0] = Client("udp", peer.address, slot_size=SLOT_SIZE, timeout=0.2), busy
            with client, contextlib.suppress(TimeoutError):
                with pytest.raises(ServerError) as refused:
                    client.enqueue(0, [1])
                assert refused.value.status == busy
                status[0], client._seconds = 0, 60
                client.enqueue(0, [1])
                break
        else:
            pytest.fail("no answer in time")
    assert {struct.unpack_from("<Q", one, 32)[0] for one in peer.requests} == {1}


def test_what_was_not_executed_does_not_count():
    statuses = [4, 1, -1012, 0, 3]

    def answers(request):
        return [response(request, statuses[len(peer.requests) - 1])]

    with Peer(answers) as peer, Client("udp", peer.address, slot_size=SLOT_SIZE, timeout=60) as client:
        for status in statuses[:3]:
            with pytest.raises(ServerError) as raised:
                client.begin_tail(0)
            assert raised.value.status == status and raised.value.function == "begin_tail"
        client.enqueue(0, [1])
        with pytest.raises(ServerError, match="INTERNAL"):
            client.enqueue(0, [1])
    assert [struct.unpack_from("<Q", one, 32)[0] for one in peer.requests] == [1, 1, 1, 1, 2]


def test_more_bits_than_a_slot_holds_go_in_several_requests():
    def answers(request):
        return [response(request, 0, bytes(48) if len(request) == 40 else b"")]

    sent = np.random.default_rng(1).integers(0, 2, 1500)
    with Peer(answers) as peer, Client("udp", peer.address, timeout=60) as client:  # the size is that of an answer
        client.enqueue(2, sent)
    assert len(peer.requests[0]) == 40 and all(len(one) <= SLOT_SIZE for one in peer.requests)
    heads = [struct.unpack_from("<QQQQ", one, 24) for one in peer.requests[1:]]
    assert [head[:3] for head in heads] == [(2, 1, 0), (2, 2, 0), (2, 3, 0)]
    parts = [np.unpackbits(np.frombuffer(one[56:], np.uint8), count=head[3], bitorder="little")
             for one, head in zip(peer.requests[1:], heads)]
    assert np.array_equal(np.concatenate(parts), sent)


def test_every_wait_has_a_limit_and_every_error_a_text():
    with Peer(lambda request: []) as peer, Client("udp", peer.address, timeout=0.1) as client:
        begin = time.monotonic()
        for call in (client.describe, lambda: client.enqueue(0, [1]), lambda: client.decode([1]),
                     lambda: client.corrections(0), lambda: client.committed(0, wait_for_round=5)):
            with pytest.raises(TimeoutError, match="no answer from Client"):
                call()
        assert 0.4 < time.monotonic() - begin < 60
    with Client("udp", peer.address, timeout=60) as client, pytest.raises(ConnectionRefusedError, match="no server"):
        client.describe()  # the peer has closed its port
    with Peer(lambda request: [response(request, 0, b"abc")]) as peer, \
            Client("udp", peer.address, timeout=60) as client:
        with pytest.raises(RuntimeError, match="3 bytes"):
            client.corrections(0, observables=1)
        with pytest.raises(RuntimeError, match="describe_decoder: the answer has 3 bytes"):
            client.describe()
    for address in ("nowhere", "127.0.0.1:0", ("127.0.0.1", "x"), 5, "127.0.0.1:99999", (1, 2)):
        with pytest.raises(ValueError, match="accepted"):
            Client("udp", address)
    with pytest.raises(ValueError, match="'udp', 'shm'"):
        Client("tcp", "127.0.0.1:7000")
    with pytest.raises(ValueError, match="no resend_after"):
        Client("shm", "name", resend_after=1)
    with pytest.raises(ValueError, match="timeout is -1"):
        Client("udp", "127.0.0.1:7000", timeout=-1)
    assert "(status 10)" in str(ServerError(10, "f")), "of a later server"
    assert "SYNDROMES_DROPPED" in str(ServerError(6, "f")) and "window" in str(ServerError(-1012, "f"))


@pytest.fixture(params=["udp", "udp with a replay window", "shm"])
def server(request, tmp_path):
    program = shutil.which("cudaq-realtime")
    if program is None:
        pytest.skip("the program cudaq-realtime is not in PATH")
    (tmp_path / "model.dem").write_text(MODEL)
    (tmp_path / "loop.dem").write_text(LOOP)
    (tmp_path / "decoders.yaml").write_text("""decoders:
  - {id: 0, type: lookup, dem_file: model.dem}
  - {id: 7, type: sliding-window, stream: true, dem_file: loop.dem,
     decoder_custom_args: {inner: lookup, commit: 2, buffer: 1}}
""")
    name = f"python{os.getpid()}{tmp_path.name}"[:60]
    options = {"udp": [], "udp with a replay window": ["--replay-window=64"],
               "shm": ["--name", name, "--wait-us=1000", "--num-slots=1"]}[request.param]
    with subprocess.Popen([program, "serve", "--config", tmp_path / "decoders.yaml", "--timeout", "100",
                           "--transport", request.param.split()[0], "--", "--unified", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            line = process.stdout.readline()
            if "yaml-cpp" in line:
                pytest.skip(line)
            assert "SERVER_READY" in line, line
            port = int(line.split("port=")[1].split()[0])
            with Client("shm", name) if request.param == "shm" else Client(
                    "udp", f"127.0.0.1:{port}", resend_after=1 if "window" in request.param else None) as client:
                yield client
        finally:
            process.terminate()


def test_a_server_decodes_shots_and_streams_for_the_client(server):
    assert server.describe()[:3] == server.describe(0)[:3] == (2, 2, 2)
    assert server.describe(7)[:3] == (2, 0, 2)
    for shot, flips in (([0, 0], [0, 0]), ([1, 0], [1, 0]), ([0, 1], [0, 1]), ([1, 1], [0, 0])):
        assert server.decode(shot).tolist() == flips
        server.enqueue(0, shot[:1])
        server.enqueue(0, shot[1:])
        assert server.corrections(0, clear=True).tolist() == flips
    with pytest.raises(DecodeError):
        server.decode([0] * 7 + [1], observables=2)
    for bits in ([0], [0] * 8, [0] * 20):
        with pytest.raises(ValueError, match=f"bits has {len(bits)} bits, accepted: 2, the detectors of the server"):
            server.decode(bits)
    with pytest.raises(ServerError, match="get_committed: .*; is the decoder a stream"):
        server.committed(0)
    random = np.random.default_rng(2)
    for rounds in (30, 2000):  # the second one takes several requests
        events = random.integers(0, 2, (rounds, 2))
        server.enqueue(7, events[:-1])
        committed, pushed, observables = server.committed(7, wait_for_round=rounds - 4)
        assert committed >= rounds - 4 and pushed == rounds - 1
        assert observables.tolist() == (events[:committed].sum(axis=0) % 2).tolist()
        server.begin_tail(7)
        server.enqueue(7, events[-1])
        assert server.corrections(7).tolist() == (events.sum(axis=0) % 2).tolist()
        assert server.committed(7, wait_for_round=10**6).committed_rounds == rounds
        with pytest.raises(ServerError, match="MISALIGNED"):
            server.enqueue(7, [1])
        server.reset(7)


def test_the_end_of_a_client_in_a_child_process_leaves_the_connection_of_its_parent(server):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            server.close()  # as the end of the object does
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert server.describe(0)[:3] == (2, 2, 2)


def test_a_thread_waits_for_a_round_while_another_one_sends(server):
    transport, address = server._arguments[:2]
    found = []

    def wait():
        with Client(transport, address, timeout=60) as waiting:
            found.append(waiting.committed(7, wait_for_round=4))

    server.reset(7)
    thread = threading.Thread(target=wait)
    thread.start()
    for _ in range(6):
        server.enqueue(7, [1, 0])
        time.sleep(0.02)
    thread.join(60)
    assert found[0].committed_rounds >= 4 and found[0].observables.tolist() == [0, 0]


def test_a_wait_that_ends_too_early_leaves_the_client_usable(server):
    server.reset(7)
    for _ in range(3):
        with pytest.raises((TimeoutError, ServerError)):
            server.committed(7, wait_for_round=100, timeout=0.05)
    server.enqueue(7, np.ones((3, 2), int))
    assert server.committed(7, wait_for_round=2)[:2] == (2, 3)
    with pytest.raises(ServerError, match="no handler has this function_id|INVALID_DECODER"):
        server.reset(55)
