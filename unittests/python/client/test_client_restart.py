# SPDX-License-Identifier: Apache-2.0
"""The client of the decoding server, when the server is restarted, is not there, or answers late."""
import contextlib
import pickle
import random
import shutil
import socket
import struct
import subprocess
import threading
import time

import pytest
from cudaq_realtime import Client, ServerError, ServerRestarted, _links
from test_client import MODEL, SLOT_SIZE, Peer, response

DESCRIBE, ENQUEUE = 0xD546EA57, 0x7ED8BE82


def function_of(request):
    return struct.unpack_from("<I", request, 4)[0]


def test_a_restart_is_distinguished_from_a_lost_request_by_the_boot_id():
    boot = [11]

    def answers(request):
        if function_of(request) == DESCRIBE:
            return [response(request, 0, struct.pack("<6Q", 2, 2, 1, 77, boot[0], 0))]
        return [response(request, 6 if function_of(request) == ENQUEUE else 0)]

    with Peer(answers) as peer, Client("udp", peer.address, slot_size=SLOT_SIZE, timeout=60) as client:
        with pytest.raises(ServerError) as unknown:
            client.enqueue(0, [1])  # the client has never asked for the boot id
        assert client.describe(0) == (2, 2, 1, 77)
        with pytest.raises(ServerError) as lost:
            client.enqueue(0, [1])
        boot[0] = 12
        with pytest.raises(ServerRestarted, match="SYNDROMES_DROPPED.*the server was restarted") as restarted:
            client.enqueue(0, [1])
        assert {type(unknown.value), type(lost.value)} == {ServerError}
        copy = pickle.loads(pickle.dumps(restarted.value))
        assert type(copy) is ServerRestarted and str(copy) == str(restarted.value)
        with pytest.raises(ServerError) as again:
            client.enqueue(0, [1])
        assert type(again.value) is ServerError, "it is said once"


def test_an_older_server_is_described_without_a_boot_id():
    def answers(request):
        return [response(request, 0, bytes(32)) if len(request) == 32 else response(request, 2)]

    with Peer(answers) as peer, Client("udp", peer.address, timeout=60) as client:
        assert client.describe(3) == (0, 0, 0, 0)
        assert [len(one) for one in peer.requests] == [40, 32]


def unused_address():
    """Nothing listens there. The system gives the port to no socket by itself: those ports begin at 32768."""
    while True:
        address = ("127.0.0.1", random.randrange(10000, 30000))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free, contextlib.suppress(OSError):
            free.bind(address)
            return address


def test_a_wait_may_be_longer_than_the_system_takes():
    with Peer(lambda request: [response(request, 0)]) as peer, Client("udp", peer.address, timeout=1e10) as client:
        assert client.call("anything").status == 0
    for seconds in (2e10, 1e300):
        assert 0 < _links.nanoseconds(seconds) <= 10**18


def test_repeats_end_early_if_nothing_listens():
    address = unused_address()
    begin = time.monotonic()
    with Client("udp", address, timeout=300, resend_after=0.02) as client, \
            pytest.raises(ConnectionRefusedError, match="no server"):
        client.reset(0)
    assert time.monotonic() - begin < 250


def test_a_repeat_reaches_a_server_that_starts_late():
    address, peers = unused_address(), []
    late = threading.Timer(0.2, lambda: peers.append(Peer(lambda request: [response(request, 0)], address)))
    late.start()
    try:
        with Client("udp", address, timeout=60, resend_after=1) as client:
            client.reset(0)
    finally:
        late.join()
        for peer in peers:
            peer.__exit__()
    assert len(peers[0].requests) == 1


def start(program, folder, port):
    process = subprocess.Popen([program, "serve", "--config", folder / "decoders.yaml", "--timeout", "100",
                                "--transport", "udp", "--", "--unified", f"--port={port}"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    line = process.stdout.readline()
    if "yaml-cpp" in line:
        process.wait(60)
        pytest.skip(line)
    assert "SERVER_READY" in line, line
    return process, int(line.split("port=")[1].split()[0])


def test_a_server_that_was_killed_in_the_middle_of_a_shot_is_not_taken_for_the_same(tmp_path):
    program = shutil.which("cudaq-realtime")
    if program is None:
        pytest.skip("the program cudaq-realtime is not in PATH")
    (tmp_path / "model.dem").write_text(MODEL)
    (tmp_path / "decoders.yaml").write_text("decoders:\n  - {id: 0, type: lookup, dem_file: model.dem}\n")
    process, port = start(program, tmp_path, unused_address()[1])
    try:
        with Client("udp", f"127.0.0.1:{port}", timeout=60) as client:
            client.reset(0)
            client.enqueue(0, [1, 0])
            assert client.corrections(0, clear=True).tolist() == [1, 0]
            client.enqueue(0, [1])
            process.kill()
            process.wait(60)
            process, port = start(program, tmp_path, port)
            with pytest.raises(ServerRestarted):
                client.enqueue(0, [1])
            with pytest.raises(ServerError):
                client.corrections(0, clear=True)
            client.reset(0)
            client.enqueue(0, [0, 1])
            assert client.corrections(0, clear=True).tolist() == [0, 1]
    finally:
        process.kill()
        process.wait(60)
