# SPDX-License-Identifier: Apache-2.0
"""The ways of a request to a server and of its answer back: one request at a time. docs/message_protocol.md has the
frames, docs/transport/transport_udp.md and transport_shm.md the rules."""
from __future__ import annotations

import ctypes
import math
import os
import socket
import struct
import time

from .dispatcher import Answer

REQUEST, RESPONSE = struct.Struct("<IIIIQ"), struct.Struct("<IiIIQ")
REQUEST_MAGIC, RESPONSE_MAGIC = 0x43555152, 0x43555153
TRANSPORT_BUSY = -1011  # this frame was not executed: to be sent again with the same id
REPEAT_SECONDS = 30  # a request is not repeated later than this after its first attempt
MAX_REFUSALS = 5  # in one call, if requests are sent again: a server may just start
PAUSE = 0.0005  # seconds before a request that was refused as busy is sent again
LAST_ATTEMPT = 0.005  # seconds before the end: a request that is sent later would have no answer in time
LONGEST_WAIT = 0.1  # seconds in a library, where Ctrl-C is not seen
LONGEST_RECEIVE = 3600.0  # seconds; a socket takes no more than some weeks, and the loop looks again
LONGEST_LIMIT = 1e9  # seconds, which fit as nanoseconds into 64 bits


def answer_of(frame: bytes, request_id: int) -> Answer | None:
    """The answer to this request, or None: a late one, or no frame."""
    if len(frame) < RESPONSE.size:
        return None
    magic, status, length, echoed, _ = RESPONSE.unpack_from(frame)
    if magic != RESPONSE_MAGIC or echoed != request_id or length > len(frame) - RESPONSE.size:
        return None
    return Answer(status, frame[RESPONSE.size:RESPONSE.size + length])


def paused(deadline: float) -> bool:
    """Waits before a busy server gets the request again. False: it is too late for that, also after the wait, and the
    answer says that the request was not executed; an attempt without an answer would not."""
    if time.monotonic() + PAUSE + LAST_ATTEMPT >= deadline:
        return False
    time.sleep(PAUSE)
    return time.monotonic() + LAST_ATTEMPT < deadline


class UdpLink:
    """A socket for each address of the server; one is used at a time, and the next one after it was refused.
    resend_after: seconds; None: a request is sent once."""

    def __init__(self, host: str, port: int, resend_after: float | None):
        self.slot_size: int | None = None  # each answer has this size
        self._resend_after = resend_after
        self._sockets: list[socket.socket] = []
        reason = None
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM):
            try:
                made = socket.socket(family, kind, protocol)
            except OSError as error:  # a machine without this family
                reason = error
                continue
            try:
                made.connect(address)  # then only answers of the server arrive
                self._sockets.append(made)
            except OSError as error:
                made.close()
                reason = error
        if not self._sockets:
            raise reason or OSError(f"{host!r} has no address")

    def close(self) -> None:
        for one in self._sockets:
            one.close()

    def exchange(self, function: int, payload: bytes, request_id: int, deadline: float) -> Answer:
        # By its time the server knows a request that is sent again, which is equal in all its bytes.
        frame = REQUEST.pack(REQUEST_MAGIC, function, len(payload), request_id, time.monotonic_ns()) + payload
        again = 0.0  # when to send
        last, refusals, sent, busy = time.monotonic() + REPEAT_SECONDS, 0, 0, 0
        while (now := time.monotonic()) < deadline:
            try:
                if now >= again:
                    again = math.inf if self._resend_after is None or now > last else now + self._resend_after
                    self._sockets[0].send(frame)
                    sent += 1
                self._sockets[0].settimeout(min(max(min(again, deadline) - now, 1e-6), LONGEST_RECEIVE))
                received = self._sockets[0].recv(65536)
            except socket.timeout:
                continue
            except ConnectionRefusedError:  # nothing listens there; a server may just start
                refusals += 1
                self._sockets.append(self._sockets.pop(0))
                if refusals % len(self._sockets):  # at another address, such as 127.0.0.1 after ::1
                    again = 0.0
                    continue
                if self._resend_after is None or refusals == MAX_REFUSALS * len(self._sockets):
                    raise
                time.sleep(max(0.0, min(again, deadline) - time.monotonic()))
                continue
            answer = answer_of(received, request_id)
            if answer is None:
                continue
            self.slot_size = len(received)
            busy += answer.status == TRANSPORT_BUSY
            goes_on = answer.status == TRANSPORT_BUSY and paused(deadline) and time.monotonic() <= last
            # An earlier frame without an answer may be executed: then the end of the time says nothing.
            if answer.status != TRANSPORT_BUSY or (not goes_on and busy == sent):
                return answer
            again = 0.0 if goes_on else math.inf
        raise TimeoutError


OK, UNSUPPORTED, TIMEOUT = 0, 4, 5  # cudaq_status_t
WAIT_BLOCK = 2  # cudaq_wait_policy_t


class _WaitOptions(ctypes.Structure):  # cudaq_shm_client_options_t
    _fields_ = [("struct_size", ctypes.c_uint32), ("wait_policy", ctypes.c_uint32), ("spin_ns", ctypes.c_uint64),
                ("sleep_ns", ctypes.c_uint64)]


class _Ring(ctypes.Structure):  # cudaq_ringbuffer_t
    _fields_ = [("words", ctypes.c_uint64 * 10)]


def library(name: str) -> ctypes.CDLL:
    """Of the wheel; without one, of the system."""
    beside = os.path.join(os.path.dirname(__file__), name)
    return ctypes.CDLL(beside if os.path.exists(beside) else name)


class ShmLink:
    """A ring of its own in shared memory, through the project's client library."""
    _client = ctypes.c_void_p()

    def __init__(self, name: str, deadline: float):
        self._process = os.getpid()
        self._client_library = library("libcudaq-realtime-shm-client.so.0")
        self._slot_library = library("libcudaq-realtime.so.0")
        self._client_library.cudaq_shm_client_error.restype = ctypes.c_char_p
        self._client, self._ring, slots, size = ctypes.c_void_p(), _Ring(), ctypes.c_uint32(), ctypes.c_uint32()
        options = _WaitOptions(ctypes.sizeof(_WaitOptions), WAIT_BLOCK, 0, 0)
        self._check(self._client_library.cudaq_shm_client_attach(
            ctypes.byref(self._client), name.encode(), self._limit(deadline), ctypes.byref(options)))
        self._client_library.cudaq_shm_client_ring(self._client, ctypes.byref(self._ring), ctypes.byref(slots),
                                                   ctypes.byref(size))
        self.slot_size: int | None = size.value
        self._slots, self._sent = slots.value, 0
        self._late: set[int] = set()  # slots whose answer was not awaited to its end

    def close(self) -> None:
        if self._client:
            if self._process == os.getpid():  # a child of fork has the connection of its parent, which goes on
                self._client_library.cudaq_shm_client_detach(self._client)
            self._client = ctypes.c_void_p()

    __del__ = close  # the server has few rings

    def exchange(self, function: int, payload: bytes, request_id: int, deadline: float) -> Answer:
        if not self._client:
            raise ConnectionError("the client is closed")
        slot, ring = ctypes.c_uint32(self._sent % self._slots), ctypes.byref(self._ring)
        if slot.value in self._late:
            if self._wait(slot, deadline) == OK:
                self._slot_library.cudaq_host_ringbuffer_clear_slot(ring, slot)
            self._late.discard(slot.value)
        while not self._slot_library.cudaq_host_ringbuffer_slot_available(ring, slot):  # shortly after an answer
            if time.monotonic() >= deadline:
                raise TimeoutError
            time.sleep(0)
        self._check(self._slot_library.cudaq_host_ringbuffer_write_rpc_request(
            ring, slot, ctypes.c_uint32(function), payload, ctypes.c_uint32(len(payload)),
            ctypes.c_uint32(request_id), ctypes.c_uint64(0)))
        self._late.add(slot.value)
        self._sent += 1
        self._client_library.cudaq_shm_client_signal(self._client, slot)
        dropped = self._wait(slot, deadline) == UNSUPPORTED
        self._late.discard(slot.value)
        if dropped:
            raise ConnectionError(f"the server dropped the request: {self._text()}")
        header, result = (ctypes.c_uint8 * RESPONSE.size)(), ctypes.c_void_p()
        try:
            self._check(self._slot_library.cudaq_host_ringbuffer_read_rpc_response(
                ring, slot, ctypes.byref(header), ctypes.byref(result)))
            _, status, length, _, _ = RESPONSE.unpack_from(header)
            return Answer(status, ctypes.string_at(result.value, length) if result.value and length else b"")
        finally:
            self._slot_library.cudaq_host_ringbuffer_clear_slot(ring, slot)

    def _wait(self, slot: ctypes.c_uint32, deadline: float) -> int:
        """OK: there is an answer; UNSUPPORTED: the slot is free."""
        while True:
            status: int = self._client_library.cudaq_shm_client_wait(self._client, slot, self._limit(
                min(deadline, time.monotonic() + LONGEST_WAIT)))
            if status in (OK, UNSUPPORTED):
                return status
            if status != TIMEOUT or time.monotonic() >= deadline:
                self._check(status)

    def _check(self, status: int) -> None:
        if status == TIMEOUT:
            raise TimeoutError(self._text())
        if status != OK:
            raise ConnectionError(self._text())

    def _text(self) -> str:
        text: bytes = self._client_library.cudaq_shm_client_error()
        return text.decode(errors="replace")

    @staticmethod
    def _limit(deadline: float) -> ctypes.c_uint64:
        return ctypes.c_uint64(max(0, int(min(deadline - time.monotonic(), LONGEST_LIMIT) * 1e9)))
