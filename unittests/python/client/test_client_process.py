# SPDX-License-Identifier: Apache-2.0
"""A client over a fork, and one of a host with several addresses."""
import os
import socket
import struct
import threading

import pytest
from cudaq_realtime import Client

RESPONSE = struct.Struct("<IiIIQ")


@pytest.fixture
def echo():
    """A server at 127.0.0.1 that answers each request with its payload: its address, and the requests."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        requests = []

        def serve():
            while True:
                request, sender = server.recvfrom(65536)
                if not request:
                    return
                requests.append(request)
                _, _, length, number, timestamp = struct.unpack_from("<IIIIQ", request)
                server.sendto(RESPONSE.pack(0x43555153, 0, length, number, timestamp) + request[24:24 + length], sender)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname(), requests
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", server.getsockname())
        thread.join(20)


def status_in_child(body):
    """0: `body` has returned true in a child of fork."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if body() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refuses(call):
    try:
        call()
    except RuntimeError as error:
        return "Make another Client after fork" in str(error)
    return False


def test_a_child_of_fork_cannot_use_the_client_of_its_parent(echo):
    address, requests = echo
    with Client("udp", address) as client:
        assert client.call("echo", b"1").result == b"1"
        calls = (lambda: client.call("echo", b"2"), lambda: client.enqueue(0, [1]), lambda: client.reset(0),
                 lambda: client.describe(0), lambda: client.corrections(0), lambda: client.begin_tail(0))
        assert status_in_child(lambda: all(refuses(call) for call in calls)) == 0
        assert client.call("echo", b"3").result == b"3"
    assert len(requests) == 2


def test_a_child_ends_also_if_a_thread_of_its_parent_had_the_client_at_the_fork(echo):
    with Client("udp", echo[0]) as client:
        held, done = threading.Event(), threading.Event()

        def hold():
            with client._lock:
                held.set()
                done.wait(20)

        thread = threading.Thread(target=hold)
        thread.start()
        assert held.wait(20)
        assert status_in_child(lambda: refuses(lambda: client.enqueue(0, [1])) and client.close() is None) == 0
        done.set()
        thread.join(20)


def test_a_child_makes_a_client_of_its_own(echo):
    with Client("udp", echo[0]) as client:
        def own():
            function, arguments = client.__reduce__()
            return function(*arguments).call("echo", b"4").result == b"4"
        assert status_in_child(own) == 0


def test_a_name_has_addresses(echo):
    with Client("udp", ("localhost", echo[0][1]), timeout=60) as client:  # ::1 may be its first one
        assert client.call("echo", b"5").result == b"5"
    with pytest.raises(OSError, match="has no address"):
        Client("udp", ("no name of a host", 7000))


def test_no_server_answers_if_nothing_listens():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with Client("udp", ("127.0.0.1", port), timeout=5) as client:
        with pytest.raises(ConnectionRefusedError, match="no server answers"):
            client.call("echo")


def test_ctrl_c_while_a_request_is_sent_gives_it_up(echo, monkeypatch):
    with Client("udp", echo[0], timeout=60) as client:
        library = client._link._library
        send = library.cudaq_qec_client_send

        def interrupted(*arguments):
            send(*arguments)
            raise KeyboardInterrupt

        with monkeypatch.context() as during, pytest.raises(KeyboardInterrupt):
            during.setattr(library, "cudaq_qec_client_send", interrupted)
            client.call("echo", b"6")
        assert client.call("echo", b"7").result == b"7"
