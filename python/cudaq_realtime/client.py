# SPDX-License-Identifier: Apache-2.0
"""A client of the decoding server (cudaq-realtime serve), and of other servers of this protocol.
docs/packages/python_client.md is the guide, docs/transport/server_wire.md has the bytes."""
from __future__ import annotations

import functools
import os
import struct
import threading
from typing import Any, Literal, NamedTuple, Union, overload

import numpy as np
import numpy.typing as npt

from . import _native
from ._links import BUSY_IS_AN_ANSWER, REQUEST_BYTES, Link, status_text
from .arguments import (MAX_BYTES, SOFT_KINDS, bytes_of, leakage_bytes, next_values, positive_number, soft_bytes,
                        stream_bits, whole_number)
from .decoders import Bits, DecodeError
from .dispatcher import Answer

Address = Union[str, "tuple[str, int]"]
Gaps = npt.NDArray[np.float32]

UINT64_MAX = 2**64 - 1
MAX_BITS = 65536  # of one request of a stream
MAX_VALUE_BYTES = 8192  # soft values and flags of one
HEAD_BYTES, READOUT_HEAD_BYTES = 32, 48  # of enqueue requests before their arrays
READOUT_BYTES = 96  # of the answer to describe_decoder that ends with the readout
GAPS_BYTES = 104  # and with the bytes of a gap
GAP_BYTES = 4
BAD_REQUEST, BUSY = 2, 5
BUFFER_TOO_SMALL = 4  # of qec_decode: a status of a decode
SYNDROMES_DROPPED = 6
NOT_EXECUTED = (1, 4, BUSY)  # and each status of the library
QEC_DECODE = "qec_decode"
NO_GAPS = "confidence: the decoder gives no gaps; those with the setting confidence=1 do"
OF_STREAMS = "begin_tail", "get_committed"


class ServerError(RuntimeError):
    """The server answered with an error. `status` is the number of docs/transport/server_wire.md, a status of
    the library (-1000 and below), or of the server's own function; `function` is the name of the function."""

    def __init__(self, status: int, function: str):
        self.status, self.function = status, function
        hint = "; is the decoder a stream?" if status == 2 and function in OF_STREAMS else ""
        text = status_text(status) if status > 0 else _native.rpc_status_text(status)
        super().__init__(f"{function}: {text}{hint} (status {status})")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.function), self.__dict__


class ServerRestarted(ServerError):
    """The same, and the server was restarted since this client has described the decoder: its shots, streams and
    corrections are gone. reset() begins anew."""

    def __init__(self, status: int, function: str):
        super().__init__(status, function)
        self.args = (f"{self.args[0]}; the server was restarted",)


class Description(NamedTuple):
    """The model of a decoder. Of a stream: `detectors` of one repetition, and `shot_bits` is 0."""
    detectors: int
    shot_bits: int
    observables: int
    digest: int


class Readout(NamedTuple):
    """What a decoder needs with each shot, or a stream with each repetition: docs/decoders/soft.md. All 0: nothing."""
    measurements: int  #: soft values
    flags: int  #: flags of leakage
    kinds: tuple[str, ...]  #: of soft values, that the decoder takes: "f32", "u8", "u4"


class Committed(NamedTuple):
    committed_rounds: int  #: the rounds that are final
    pushed_rounds: int  #: the rounds that have come
    observables: Bits  #: uint8: 1 for each one that the errors found in the committed rounds flip


def function_id(name: str) -> int:
    """FNV-1a, 32 bits."""
    number = 2166136261
    for byte in name.encode():
        number = (number ^ byte) * 16777619 % 2**32
    return number


def _split(address: Address) -> tuple[str, int]:
    accepted = "accepted: 'HOST:PORT', or (host, port)"
    try:
        host, port = address.rsplit(":", 1) if isinstance(address, str) else address
        number = int(port)
    except (TypeError, ValueError):
        raise ValueError(f"address is {address!r:.60}, {accepted}") from None
    if not isinstance(host, str):
        raise ValueError(f"address is {address!r:.60}, {accepted}")
    return host.strip("[]"), whole_number(number, "the port", 1, 65535)


class Client:
    """A connection to a decoding server.

    transport: "udp", or "shm" for shared memory (a server on the same machine).
    address: "127.0.0.1:7000" or ("127.0.0.1", 7000); of shm the name of the server.
    timeout: seconds that a request waits at most; then TimeoutError. A request that the server refuses as BUSY is sent
        again within this time; then ServerError.
    resend_after: seconds after which a request without an answer is sent again, equal in all its bytes, for 30 s at
        most. Only for udp. The server executes it once; an older one only with --replay-window. None: each request is
        sent once.
    slot_size: bytes of a slot of the server, for udp; None: an answer of the server shows it.

    Raises OSError if the address cannot be used; of shm TimeoutError if there is no such server. A call raises
    ServerError if the server answers with an error, and ConnectionError if there is no server (any more).
    Threads: any may call; the calls of one object run one after another. A thread that waits in committed() needs a
    client of its own. A copy, also a pickled one, is a new connection with the same arguments and new counters.
    Processes: a client belongs to the process that made it. In a child of fork each call raises RuntimeError and sends
    nothing, except close(); the child makes its own client, or uses a copy.
    """

    def __init__(self, transport: str, address: Address, *, timeout: float = 10.0, resend_after: float | None = None,
                 slot_size: int | None = None):
        self._seconds = positive_number(timeout, "timeout")
        again = None if resend_after is None else positive_number(resend_after, "resend_after")
        size = None if slot_size is None else whole_number(slot_size, "slot_size", REQUEST_BYTES + 40, 2**24)
        self._arguments = transport, address, timeout, resend_after, slot_size
        self._lock, self._process = threading.RLock(), os.getpid()
        self._counters: dict[int, int] = {}  # of the last request with one, for each decoder
        self._described: dict[int | None, Description] = {}
        self._readouts: dict[int, tuple[Readout, int]] = {}
        self._with_gaps: dict[int, bool] = {}
        self._boots: dict[int, int] = {}  # of the server, for each decoder: a router has several servers
        if transport == "udp":
            self._link = Link.udp(*_split(address), again)
        elif transport == "shm":
            if again is not None or not isinstance(address, str):
                raise ValueError("shm has the name of the server as address, and no resend_after: it loses nothing")
            self._link = Link.shm(address, self._seconds)
        else:
            raise ValueError(f"transport is {transport!r:.60}, accepted: 'udp', 'shm'")
        self._given_size = size

    def __reduce__(self) -> tuple[Any, ...]:
        transport, address, timeout, resend_after, slot_size = self._arguments
        return functools.partial(type(self), timeout=timeout, resend_after=resend_after,
                                 slot_size=slot_size), (transport, address)

    def __repr__(self) -> str:
        return f"Client({self._arguments[0]!r}, {self._arguments[1]!r}, timeout={self._arguments[2]})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if os.getpid() != self._process:  # a thread of the parent may have had the lock at the fork
            self._link.close()
            return
        with self._lock:
            self._link.close()

    def _locked(self) -> threading.RLock:
        """The lock, in the process that made the client: a child has the same socket and the same next request id, so
        that one would take the answers of the other."""
        if os.getpid() != self._process:
            raise RuntimeError(f"process {self._process} made {self!r}, and only that one may use it: its answers and "
                               "those of a child would be mixed. Make another Client after fork")
        return self._lock

    def enqueue(self, decoder_id: int, bits: npt.ArrayLike, *, count: int | None = None,
                soft: npt.NDArray[Any] | None = None, soft_kind: str | None = None, soft_count: int | None = None,
                leakage: npt.ArrayLike | None = None) -> None:
        """Sends the next bits of a decoder: measurements or detection events of shots, or of the rounds of a stream.

        bits: bool or 0/1 of any shape, read row by row; or with `count` uint8 of packed bits, bit k in bit k % 8 of
            byte k // 8. More than a slot holds go in several requests.
        soft, soft_kind, leakage: of a decoder with a table of a readout, all values and flags of the shot that these
            bits begin or end: as of Decoder.decode. Of a stream the next ones, of any number, also with soft_count: as
            of StreamDecoder.push. They are sent before the bits if a slot does not hold both; of a stream only if the
            bits are at most those of its longest part, else ValueError, and nothing is sent.
        The client counts the requests of each decoder; the counter begins anew with reset(). So reset a decoder before
        its first bits if another client has used it. After a TimeoutError the request may have been executed or not:
        if it was not, the next call raises SYNDROMES_DROPPED. An error that loses bits stays until reset().
        """
        packed, count = stream_bits(bits, count, "bits")
        with self._locked():
            slot_bytes = self._slot_size(decoder_id)
            room = slot_bytes - REQUEST_BYTES - HEAD_BYTES
            if room < 1:
                raise ValueError(f"the server's slots have {slot_bytes} bytes, too few for a request with bits: "
                                 f"at least {REQUEST_BYTES + HEAD_BYTES + 1} (--slot-size of the server)")
            if soft is not None or leakage is not None:
                whole = self._send_readout(decoder_id, packed, count, soft, soft_kind, soft_count, leakage,
                                           slot_bytes - REQUEST_BYTES - READOUT_HEAD_BYTES)
                if whole:
                    return
            max_bits = min(MAX_BITS, 8 * room)
            for first in range(0, count, max_bits):
                part = min(max_bits, count - first)
                self._counted("enqueue_syndromes", decoder_id, struct.pack("<QQ", 0, part)
                              + packed[first // 8:(first + part + 7) // 8].tobytes())

    def _send_readout(self, decoder_id: int, packed: npt.NDArray[np.uint8], count: int,
                      soft: npt.NDArray[Any] | None, soft_kind: str | None, soft_count: int | None,
                      leakage: npt.ArrayLike | None, room: int) -> bool:
        """Sends values and flags, with the bits if a slot holds all: then True."""
        if decoder_id not in self._readouts:
            self._readouts[decoder_id] = self._readout_of(decoder_id)
        (measurements, flags, _), longest_part = self._readouts[decoder_id]
        if longest_part:
            values, measurements, kind, of_flags, flags = next_values(soft, soft_kind, soft_count, leakage)
        elif soft_count is not None:
            raise ValueError("soft_count is for streams: a shot has a value of each measurement")
        else:
            values, kind = soft_bytes(soft, None, measurements, soft_kind)
            of_flags = leakage_bytes(leakage, None, flags)
        width = (32, 8, 4)[kind]

        def send(bits: bytes, num_bits: int, part: bytes, num_values: int, more: bytes, num_flags: int) -> None:
            self._counted("enqueue_readout", decoder_id, struct.pack("<QQQII", num_bits, num_values, num_flags, kind, 0)
                          + bits + part + more)

        num_bytes = values.nbytes + of_flags.nbytes
        if packed.nbytes + num_bytes <= room and count <= MAX_BITS and (
                not longest_part or num_bytes <= MAX_VALUE_BYTES):
            send(packed.tobytes(), count, values.tobytes(), measurements, of_flags.tobytes(), flags)
            return True
        if count > longest_part > 0:  # values that come long before their bits are refused, and the stream is lost
            raise ValueError(f"one request does not hold these {count} bits with their values: send at most "
                             f"{longest_part} bits at a time, or use larger slots (--slot-size of the server)")
        step = min(room, MAX_VALUE_BYTES if longest_part else room) // 4 * 4  # whole values
        if step <= 0:
            raise ValueError(f"the server's slots have room for {max(room, 0)} bytes of soft values, accepted: "
                             "4 or more (--slot-size of the server)")
        for first in range(0, values.nbytes, step):
            last = min(first + step, values.nbytes)
            number = measurements - 8 * first // width if last == values.nbytes else 8 * step // width
            send(b"", 0, values[first:last].tobytes(), number, b"", 0)
        for first in range(0, of_flags.nbytes, step):
            last = min(first + step, of_flags.nbytes)
            number = flags - 4 * first if last == of_flags.nbytes else 4 * step
            send(b"", 0, b"", 0, of_flags[first:last].tobytes(), number)
        return False

    def readout(self, decoder_id: int) -> Readout:
        """What a decoder needs with each shot, or with each repetition. Of a server of an earlier version: nothing.
        Raises ValueError if the server's slots are too small for the answer."""
        return self._readout_of(decoder_id)[0]

    def _readout_of(self, decoder_id: int) -> tuple[Readout, int]:
        """The same, and of a stream the detectors of its longest part: head, repetition or tail; else 0."""
        result = self._long_description(decoder_id, 3, READOUT_BYTES, "what the decoder needs")
        if result is None:
            return Readout(0, 0, ()), 0
        detectors, shot_bits, *_, head, tail = struct.unpack_from("<QQQQQQQQ", result)
        measurements, flags, kinds = struct.unpack_from("<QQQ", result, 72)
        return (Readout(measurements, flags, tuple(name for k, name in enumerate(SOFT_KINDS) if kinds >> k & 1)),
                0 if shot_bits else max(detectors, head, tail, 1))

    def gives_gaps(self, decoder_id: int) -> bool:
        """Whether the answers of a decoder have gaps (docs/decoders/confidence.md): of a server of an earlier version
        they have none. Raises ValueError if the server's slots are too small for the answer."""
        result = self._long_description(decoder_id, 4, GAPS_BYTES, "whether answers have gaps")
        gap_bytes, = (0,) if result is None else struct.unpack_from("<Q", result, 96)
        if gap_bytes not in (0, GAP_BYTES):
            raise RuntimeError(f"describe_decoder: gaps have {gap_bytes} bytes, this client knows {GAP_BYTES}")
        return bool(gap_bytes)

    def _long_description(self, decoder_id: int, form: int, size: int, what: str) -> bytes | None:
        """The answer to a form of describe_decoder; None: the server is of an earlier version."""
        payload = struct.pack("<QQ", whole_number(decoder_id, "decoder_id", 0, UINT64_MAX), form)
        answer = self._patient("describe_decoder", payload)
        if answer.status == BAD_REQUEST:
            slot = self._link.slot_size() or self._given_size
            if slot is not None and slot < REQUEST_BYTES + size:
                raise ValueError(f"the server's slots have {slot} bytes, too few to tell {what}: at least "
                                 f"{REQUEST_BYTES + size} (--slot-size of the server)")
            return None
        if answer.status:
            raise ServerError(answer.status, "describe_decoder")
        if len(answer.result) != size:
            raise self._malformed("describe_decoder", answer.result)
        return answer.result

    def begin_tail(self, decoder_id: int) -> None:
        """Of a stream: the bits that are sent after this are the tail."""
        self._counted("begin_tail", decoder_id, b"")

    @overload
    def corrections(self, decoder_id: int, *, clear: bool = False, observables: int | None = None,
                    confidence: Literal[False] = False) -> Bits: ...

    @overload
    def corrections(self, decoder_id: int, *, clear: bool = False, observables: int | None = None,
                    confidence: Literal[True]) -> tuple[Bits, Gaps]: ...

    @overload
    def corrections(self, decoder_id: int, *, clear: bool = False, observables: int | None = None,
                    confidence: bool = False) -> Any: ...

    def corrections(self, decoder_id: int, *, clear: bool = False, observables: int | None = None,
                    confidence: bool = False) -> Any:
        """The observables to flip, of all shots since the last clear: uint8 of 0 and 1.

        observables: how many; None: all of the decoder. clear: sets all of them to 0 afterwards.
        confidence: returns a float32 gap of each observable, too: the smallest one of these shots, inf if there are
            none, NaN if one is not known. Of decoders with gives_gaps(); of others NotImplementedError, and nothing is
            read.
        """
        decoder, wanted = self._wanted(decoder_id, observables)
        if confidence and not self._with_gaps.get(decoder):
            self._with_gaps[decoder] = self.gives_gaps(decoder)
            if not self._with_gaps[decoder]:
                raise NotImplementedError(NO_GAPS)
        result = self._call("get_corrections", struct.pack("<QQB", decoder, wanted, bool(clear)))
        return self._bits_and_gaps("get_corrections", result, wanted, confidence)

    def committed(self, decoder_id: int, *, wait_for_round: int = 0, clear: bool = False,
                  observables: int | None = None, timeout: float | None = None) -> Committed:
        """Of a stream: the corrections of the rounds that are final.

        wait_for_round: waits until this number of rounds is final, or the stream ends; 0: does not wait. If they are
            not final after `timeout` seconds (None: that of the client): ServerError with the status 5 (BUSY), or
            TimeoutError. Other arguments as of corrections().
        """
        decoder, wanted = self._wanted(decoder_id, observables)
        wait = whole_number(wait_for_round, "wait_for_round", 0, UINT64_MAX)
        result = self._call("get_committed", struct.pack("<QQB7xQ", decoder, wanted, bool(clear), wait), timeout)
        if len(result) < 16:
            raise self._malformed("get_committed", result)
        committed, pushed = struct.unpack_from("<QQ", result)
        return Committed(committed, pushed, self._bits("get_committed", result[16:], wanted))

    def reset(self, decoder_id: int) -> None:
        """Empties the decoder: its shot or stream, the corrections, an error that stays, and the counter."""
        decoder = whole_number(decoder_id, "decoder_id", 0, UINT64_MAX)
        with self._locked():
            self._call("reset_decoder", struct.pack("<Q", decoder))
            self._counters.pop(decoder, None)
            self._described.pop(decoder, None)
            self._readouts.pop(decoder, None)
            self._with_gaps.pop(decoder, None)

    def describe(self, decoder_id: int | None = None) -> Description:
        """The model of a decoder; None: of the decoder of decode()."""
        if decoder_id is None:
            return self._description(self._call("describe_decoder", b""))
        payload = struct.pack("<Q", whole_number(decoder_id, "decoder_id", 0, UINT64_MAX))
        answer = self._patient("describe_decoder", payload + struct.pack("<Q", 1))  # with the server's boot id
        if answer.status == BAD_REQUEST:  # an older server
            return self._description(self._call("describe_decoder", payload))
        if answer.status:
            raise ServerError(answer.status, "describe_decoder")
        if len(answer.result) != 48:
            raise self._malformed("describe_decoder", answer.result)
        self._boots[decoder_id], = struct.unpack_from("<Q", answer.result, 32)
        return self._description(answer.result[:32])

    def _description(self, result: bytes) -> Description:
        if len(result) != 32:
            raise self._malformed("describe_decoder", result)
        return Description(*struct.unpack("<QQQQ", result))

    def _was_restarted(self, decoder_id: int) -> bool:
        """Of the server, since the decoder was described last."""
        before = self._boots.get(decoder_id)
        if before is None:
            return False
        try:
            self.describe(decoder_id)
        except (OSError, ServerError, RuntimeError):
            return False
        return self._boots[decoder_id] != before

    @overload
    def decode(self, bits: npt.ArrayLike, *, count: int | None = None, observables: int | None = None,
               soft: npt.NDArray[Any] | None = None, leakage: npt.ArrayLike | None = None,
               confidence: Literal[False] = False) -> Bits: ...

    @overload
    def decode(self, bits: npt.ArrayLike, *, count: int | None = None, observables: int | None = None,
               soft: npt.NDArray[Any] | None = None, leakage: npt.ArrayLike | None = None,
               confidence: Literal[True]) -> tuple[Bits, Gaps]: ...

    @overload
    def decode(self, bits: npt.ArrayLike, *, count: int | None = None, observables: int | None = None,
               soft: npt.NDArray[Any] | None = None, leakage: npt.ArrayLike | None = None,
               confidence: bool = False) -> Any: ...

    def decode(self, bits: npt.ArrayLike, *, count: int | None = None, observables: int | None = None,
               soft: npt.NDArray[Any] | None = None, leakage: npt.ArrayLike | None = None,
               confidence: bool = False) -> Any:
        """Decodes one shot, without an effect on the decoder's shots.

        bits: its detection events, one bit for each detector, as of enqueue(). observables: as of corrections();
            with it the number of bits is not compared with the model before the request.
        soft, leakage: of a decoder with a table of a readout, all values and flags of the shot: float32 or uint8, with
            u4 two in a byte; and uint8 of 0, 1, 2. The server knows the kind of soft by its length.
        confidence: returns a float32 gap of each observable, too, as Decoder.decode does. NotImplementedError: the
            decoder gives none.
        Returns the observables to flip: uint8 of 0 and 1. Raises DecodeError if the shot cannot be decoded.
        """
        packed, given = stream_bits(bits, count, "bits")
        if observables is None:
            if self._described_once(None).detectors != given:
                self._described.pop(None, None)  # the server may have another model now
            if self._described_once(None).detectors != given:
                raise ValueError(f"bits has {given} bits, accepted: {self._described_once(None).detectors}, the "
                                 "detectors of the server's first decoder")
            wanted = self._described_once(None).observables
        else:
            wanted = whole_number(observables, "observables", 0, UINT64_MAX)
        payload = packed.tobytes()
        if soft is not None:
            values = np.ascontiguousarray(soft)
            if values.dtype not in (np.float32, np.uint8):
                raise ValueError(f"soft has the type {values.dtype}, accepted: float32, uint8")
            payload += values.tobytes()
        if leakage is not None:
            payload += leakage_bytes(leakage, None, np.size(leakage)).tobytes()
        answer = self._patient(QEC_DECODE, payload)
        if answer.status == BUFFER_TOO_SMALL:
            parts = f"{given} bits, " + ", ".join(
                f"no {name}" if part is None else f"{name} of {np.size(part)} {np.asarray(part).dtype}"
                for part, name in ((soft, "soft"), (leakage, "leakage")))
            raise DecodeError(answer.status, fault=f"the request had {parts}; the decoder needs all of its detectors, "
                                                   "and the soft values and flags that readout() names; or the answer "
                                                   "does not fit into a slot")
        if answer.status > 0:
            raise DecodeError(answer.status)
        if answer.status < 0:  # above -1000 the negative of a status of the server
            raise ServerError(-answer.status if answer.status > -1000 else answer.status, QEC_DECODE)
        return self._bits_and_gaps(QEC_DECODE, answer.result, wanted, confidence)

    def call(self, function: str, payload: Any = b"", *, timeout: float | None = None) -> Answer:
        """Sends one request to any function of the server, and returns its answer with any status.

        payload: bytes, a bytearray, a memoryview or an array. timeout: None: that of the client.
        """
        if not isinstance(function, str):
            raise TypeError(f"function is {function!r:.60}, accepted: the name of a function")
        seconds = self._seconds if timeout is None else positive_number(timeout, "timeout")
        return self._exchange(function, bytes_of(payload, "payload"), seconds, BUSY_IS_AN_ANSWER)

    def _exchange(self, function: str, payload: bytes, seconds: float, flags: int) -> Answer:
        if len(payload) > MAX_BYTES:
            raise ValueError(f"{function}: the request has {len(payload)} bytes, accepted: {MAX_BYTES} at most")
        with self._locked():
            try:
                return self._link.exchange(function_id(function), payload, seconds, flags)
            except TimeoutError:
                raise TimeoutError(f"{function}: no answer from {self!r} in time") from None
            except ConnectionRefusedError:
                raise ConnectionRefusedError(f"{function}: no server answers at {self._arguments[1]!r}") from None

    def _patient(self, function: str, payload: bytes, timeout: float | None = None) -> Answer:
        """A request that is sent again while the server is busy. As another request: it has answered this one."""
        seconds = self._seconds if timeout is None else positive_number(timeout, "timeout")
        return self._exchange(function, payload, seconds, 0)

    def _call(self, function: str, payload: bytes, timeout: float | None = None) -> bytes:
        answer = self._patient(function, payload, timeout)
        if answer.status == SYNDROMES_DROPPED and self._was_restarted(int.from_bytes(payload[:8], "little")):
            raise ServerRestarted(answer.status, function)
        if answer.status:
            raise ServerError(answer.status, function)
        return answer.result

    def _counted(self, function: str, decoder_id: int, after: bytes) -> None:
        """A request with a counter, which counts also if it is not known whether the request was executed."""
        decoder = whole_number(decoder_id, "decoder_id", 0, UINT64_MAX)
        with self._locked():
            last = self._counters.get(decoder, 0)
            self._counters[decoder] = (last + 1) % 2**64
            try:
                self._call(function, struct.pack("<QQ", decoder, self._counters[decoder]) + after)
            except ServerError as error:
                if error.status in NOT_EXECUTED or error.status <= -1000:
                    self._counters[decoder] = last
                raise

    def _slot_size(self, decoder_id: int) -> int:
        if self._link.slot_size() is None and self._given_size is None:
            try:
                self._described_once(whole_number(decoder_id, "decoder_id", 0, UINT64_MAX))
            except RuntimeError:  # also ServerError: any answer shows the size
                pass
        size = self._link.slot_size() or self._given_size
        assert size is not None
        return size

    def _wanted(self, decoder_id: int, observables: int | None) -> tuple[int, int]:
        decoder = whole_number(decoder_id, "decoder_id", 0, UINT64_MAX)
        return decoder, (self._described_once(decoder).observables if observables is None
                         else whole_number(observables, "observables", 0, UINT64_MAX))

    def _described_once(self, decoder: int | None) -> Description:
        found = self._described.get(decoder)
        if found is None:
            found = self._described[decoder] = self.describe(decoder)
        return found

    @staticmethod
    def _malformed(function: str, result: bytes) -> RuntimeError:
        return RuntimeError(f"{function}: the answer has {len(result)} bytes, which its length does not allow")

    def _bits_and_gaps(self, function: str, result: bytes, count: int, confidence: bool) -> Any:
        """Of an answer that may have gaps after its bits, which are dropped without `confidence`."""
        bits, gaps = result[:(count + 7) // 8], result[(count + 7) // 8:]
        if len(gaps) not in (0, GAP_BYTES * count):
            raise self._malformed(function, result)
        observables = self._bits(function, bits, count)
        if not confidence:
            return observables
        if not gaps and count:
            raise NotImplementedError(NO_GAPS)
        return observables, np.frombuffer(gaps, "<f4").astype(np.float32)

    def _bits(self, function: str, result: bytes, count: int) -> Bits:
        if len(result) != (count + 7) // 8:
            raise self._malformed(function, result)
        return np.unpackbits(np.frombuffer(result, np.uint8), count=count, bitorder="little")
