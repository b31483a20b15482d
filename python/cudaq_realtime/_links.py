# SPDX-License-Identifier: Apache-2.0
"""The way of requests to a server and of its answers back, by the project's client library, libcudaq-qec-client:
decoding_client.h is its contract."""
from __future__ import annotations

import ctypes
import functools
import os
import time

from . import _native
from .dispatcher import Answer

REQUEST_BYTES = 24  # of the header of a request
LONGEST_WAIT = 0.1  # seconds in a library, where Ctrl-C is not seen
LONGEST_LIMIT = 1e9  # seconds, which fit as nanoseconds into 64 bits
MAX_REFUSALS = 5  # in a row, if requests are sent again: a server may just start
NEVER = 2**64 - 1
OK, INVALID_ARG, UNSUPPORTED, TIMEOUT, STATE = 0, 1, 4, 5, 6  # cudaq_status_t
ANSWERED, NO_ANSWER = 0, 1  # cudaq_qec_client_event_t
BUSY_IS_AN_ANSWER = 1  # cudaq_qec_client_flag_t


class _Options(ctypes.Structure):  # cudaq_qec_client_options_t
    _fields_ = [("struct_size", ctypes.c_uint32), ("slot_size", ctypes.c_uint32), ("max_open", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32), ("repeat_after_ns", ctypes.c_uint64),
                ("start_patience_ns", ctypes.c_uint64)]


class _Request(ctypes.Structure):  # cudaq_qec_client_request_t
    _fields_ = [("function_id", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("head", ctypes.c_char_p),
                ("head_bytes", ctypes.c_uint64), ("body", ctypes.c_char_p), ("body_bytes", ctypes.c_uint64),
                ("timeout_ns", ctypes.c_uint64)]


class _Reply(ctypes.Structure):  # cudaq_qec_client_answer_t
    _fields_ = [("request", ctypes.c_uint32), ("event", ctypes.c_uint32), ("status", ctypes.c_int32),
                ("attempts", ctypes.c_uint32), ("result", ctypes.c_void_p), ("result_bytes", ctypes.c_uint64)]


class _Counts(ctypes.Structure):  # cudaq_qec_client_counts_t
    _fields_ = [("repeated", ctypes.c_uint64), ("busy", ctypes.c_uint64), ("unexpected", ctypes.c_uint64),
                ("slot_size", ctypes.c_uint64)]


def library(name: str) -> ctypes.CDLL:
    """Of the wheel; without one, of the system."""
    name += ".so." + _native.version.split(".")[0]
    beside = os.path.join(os.path.dirname(__file__), "lib", name)
    return ctypes.CDLL(beside if os.path.exists(beside) else name)


def nanoseconds(seconds: float) -> int:
    return max(0, int(min(seconds, LONGEST_LIMIT) * 1e9))


@functools.lru_cache(maxsize=None)
def client_library() -> ctypes.CDLL:
    for needed in ("libcudaq-realtime", "libcudaq-realtime-shm-client"):  # it may not search in its folder
        library(needed)
    loaded = library("libcudaq-qec-client")
    for function in (loaded.cudaq_qec_client_error, loaded.cudaq_qec_server_status_string):
        function.restype = ctypes.c_char_p
    loaded.cudaq_qec_client_close.restype = None
    return loaded


def status_text(status: int) -> str:
    """What a status of the server or of the library means."""
    text: bytes = client_library().cudaq_qec_server_status_string(ctypes.c_int32(status))
    return text.decode()


class Link:
    """One client of the library. One thread uses it at a time."""
    _client = ctypes.c_void_p()

    def __init__(self) -> None:
        self._library = client_library()
        self._client = ctypes.c_void_p()

    @classmethod
    def udp(cls, host: str, port: int, resend_after: float | None) -> Link:
        """resend_after: seconds; None: a request is sent once."""
        link, again = cls(), NEVER if resend_after is None else max(1, nanoseconds(resend_after))
        options = _Options(ctypes.sizeof(_Options), 0, 0, 0, again, min((MAX_REFUSALS - 1) * again, NEVER))
        status = link._library.cudaq_qec_client_open_udp(ctypes.byref(link._client), host.encode(),
                                                         ctypes.c_uint16(port), ctypes.byref(options))
        if status != OK:
            raise OSError(link._text())
        return link

    @classmethod
    def shm(cls, name: str, seconds: float) -> Link:
        link = cls()
        status = link._library.cudaq_qec_client_open_shm(ctypes.byref(link._client), name.encode(),
                                                         ctypes.c_uint64(nanoseconds(seconds)), None)
        if status != OK:
            raise TimeoutError(link._text()) if status == TIMEOUT else ConnectionError(link._text())
        return link

    def close(self) -> None:
        if self._client:
            client, self._client = self._client, ctypes.c_void_p()
            self._library.cudaq_qec_client_close(client)

    __del__ = close  # a server of shared memory has few rings

    def slot_size(self) -> int | None:
        """Bytes of a slot of the server; None: not known yet."""
        self._check_open()
        counts = _Counts()
        self._check(self._library.cudaq_qec_client_get_counts(self._client, ctypes.byref(counts)))
        return counts.slot_size or None

    def exchange(self, function: int, payload: bytes, seconds: float, flags: int) -> Answer:
        self._check_open()
        number, reply, deadline = ctypes.c_uint32(), _Reply(), time.monotonic() + min(seconds, LONGEST_LIMIT)
        request = _Request(function, flags, None, 0, payload, len(payload), nanoseconds(seconds))
        try:
            self._check(self._library.cudaq_qec_client_send(self._client, ctypes.byref(request), ctypes.byref(number)))
            status = TIMEOUT
            while status == TIMEOUT:  # the request has a limit of its own
                limit = min(LONGEST_WAIT, max(deadline - time.monotonic(), 0.001))
                status = self._library.cudaq_qec_client_wait(self._client, ctypes.c_uint64(nanoseconds(limit)),
                                                             ctypes.byref(reply))
            self._check(status)
        except BaseException:  # Ctrl-C, too: the next request would find this one open. Number 0 is that of none
            self._library.cudaq_qec_client_give_up(self._client, number)
            raise
        if reply.event == NO_ANSWER:
            raise TimeoutError
        if reply.event != ANSWERED:
            raise ConnectionError("the server dropped the request: it has no function of this name")
        return Answer(reply.status, ctypes.string_at(reply.result, reply.result_bytes) if reply.result else b"")

    def _check_open(self) -> None:
        if not self._client:
            raise ConnectionError("the client is closed")

    def _check(self, status: int) -> None:
        if status == STATE:
            refused = b"no server listens" in self._library.cudaq_qec_client_error()
            raise ConnectionRefusedError(self._text()) if refused else ConnectionError(self._text())
        if status == INVALID_ARG:
            raise ValueError(self._text())
        if status != OK:
            raise OSError(self._text())

    def _text(self) -> str:
        text: bytes = self._library.cudaq_qec_client_error()
        return text.decode(errors="replace")
