# SPDX-License-Identifier: Apache-2.0
"""A function in Python in the place of a decoder."""
from __future__ import annotations

import atexit
import os
import queue
import threading
import time
import weakref
from typing import Any, Callable, Sequence

import numpy as np
import numpy.typing as npt

from . import _native
from .arguments import Form, Model, model_text, positive_number, to_native
from .decoders import (DEADLINE, INTERNAL_ERROR, OUT_OF_RANGE, REPEATED, Bits, Deadlines, DecodeError, result_array,
                       unpacked_rows)

Function = Callable[[Bits], npt.ArrayLike]
MAX_STUCK = 4  # calls that have not returned
EXIT_S = 0.5  # how long the interpreter's end waits for calls


class _Call:
    def __init__(self, shot: Bits):
        self.shot, self.done = shot, threading.Event()
        self.answer: Any = None
        self.error: BaseException | None = None

    def run(self, function: Function) -> None:
        try:
            self.answer = function(self.shot)
        except BaseException as error:  # also SystemExit: it is not the thread's end
            self.error = error
        self.done.set()


class _Worker:
    """A thread that calls the function. One whose call was given up ends when the call returns."""

    def __init__(self, function: Function):
        self.calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._serve, args=(function, self.calls), daemon=True)
        self.thread.start()
        _calls_of[self.thread] = self.calls

    @staticmethod  # it does not keep its owner alive
    def _serve(function: Function, calls: queue.SimpleQueue[_Call | None]) -> None:
        while (call := calls.get()) is not None:
            call.run(function)
            del call

    def end(self) -> None:
        self.calls.put(None)


_calls_of: weakref.WeakKeyDictionary[threading.Thread, queue.SimpleQueue[_Call | None]] = weakref.WeakKeyDictionary()


@atexit.register
def _end_workers() -> None:
    """A thread that waits for calls at the interpreter's end would keep its function, and what that holds."""
    workers, until = list(_calls_of.items()), time.monotonic() + EXIT_S
    for _, calls in workers:
        calls.put(None)
    for thread, _ in workers:
        if thread is not threading.current_thread():  # which a function is on after a fork of its own
            thread.join(max(0.0, until - time.monotonic()))


class FunctionDecoder:
    """A function that decodes one shot, with the calls of a Decoder: for sinter, Pipeline, Dispatcher and by itself.

    function: events -> observables: 0 or 1, uint8[num_detectors] and [num_observables].
    dem: the model, as of Decoder. deadline_us: microseconds that a shot may take; None: any time.

    With a deadline the function runs on a thread of this object, and a shot that has no answer in time has the status
    9; its call goes on, and its answer is dropped. While 4 such calls have not returned, all shots have the status 9 at
    once. The time ends late, by some milliseconds, while other threads of Python run, and not before a function of C
    that keeps the GIL returns. Without a deadline the function runs on the calling thread, which waits for it.
    A shot whose function raises, or returns what does not fit, has the status 5, and `fault` of the error says why.
    Threads: any may call; the calls of one object run one after another. The wait for it is a part of the deadline. The
    function may call its own decoder only without a deadline; with one it gets a RuntimeError.
    """

    def __init__(self, function: Function, dem: Model, *, deadline_us: float | None = None):
        if not callable(function):
            raise TypeError(f"function is {function!r:.60}, accepted: a function of one shot")
        if deadline_us is not None:
            deadline_us = positive_number(deadline_us, "deadline_us")
            if not 0 < deadline_us <= 1e9:
                raise ValueError(f"deadline_us is {deadline_us}, accepted: microseconds, above 0 and at most 1e9")
        self._arguments = function, model_text(dem), deadline_us
        # bp-osd takes every model; it only tells how many detectors and observables there are.
        sizes = _native.NativeDecoder("bp-osd", self._arguments[1], None)
        self.num_detectors: int = sizes.num_detectors
        self.num_observables: int = sizes.num_observables
        self._deadlines = Deadlines(0, 0, 0)
        self._renew()

    def _renew(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()  # without a deadline the function may call its own decoder
        self._counting = threading.Lock()
        self._worker: _Worker | None = None
        self._stuck: list[threading.Thread] = []  # written with the lock

    def __del__(self) -> None:
        worker = getattr(self, "_worker", None)
        if worker is not None:
            worker.end()

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, self._arguments

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionDecoder) and self._arguments == other._arguments

    def __hash__(self) -> int:
        return hash(self._arguments)

    def __repr__(self) -> str:
        return f"FunctionDecoder({self.name!r}, {self.num_detectors} detectors, {self.num_observables} observables)"

    @property
    def name(self) -> str:
        function = self._arguments[0]
        return getattr(function, "__name__", type(function).__name__)

    @property
    def deadlines(self) -> Deadlines:
        """As of Decoder."""
        return self._deadlines

    @property
    def stuck_calls(self) -> int:
        """Calls that were given up at their deadline and have not returned."""
        return sum(thread.is_alive() for thread in self._stuck)

    def __call__(self, shot: npt.ArrayLike) -> Bits:
        """The function itself, with its deadline: bits in, bits out. Raises DecodeError."""
        packed = to_native(np.asarray(shot).reshape(-1), self.num_detectors, "bits", "shot")
        return self._decode(np.unpackbits(packed, count=self.num_detectors, bitorder="little"))[0]

    def decode(self, events: Sequence[int] | npt.NDArray[Any]) -> Bits:
        """As of Decoder: indices in, observables out. Raises DecodeError."""
        shot = np.zeros(self.num_detectors, np.uint8)
        indices = to_native(events, self.num_detectors, "indices", "events")
        if indices.size and indices.max() >= self.num_detectors:
            raise DecodeError(OUT_OF_RANGE)
        if np.unique(indices).size != indices.size:
            raise DecodeError(REPEATED)
        shot[indices.astype(np.intp)] = 1
        return self._decode(shot)[0]

    def decode_batch(self, shots: npt.ArrayLike, *, bit_packed_shots: bool = False,
                     bit_packed_predictions: bool = False, statuses: npt.NDArray[np.int32] | None = None,
                     solved: npt.NDArray[np.bool_] | None = None,
                     late: npt.NDArray[np.bool_] | None = None) -> Bits:
        """As of Decoder: one shot after another. With `statuses` nothing is raised; without it a missed deadline is
        not, either, and has the answer 0."""
        form: Form = "rows of packed bits" if bit_packed_shots else "rows of bits"
        rows = unpacked_rows(to_native(shots, self.num_detectors, form, "shots"), self.num_detectors)
        found = result_array(statuses, "statuses", len(rows), np.int32)
        has_solution = result_array(solved, "solved", len(rows), np.bool_)
        is_late = result_array(late, "late", len(rows), np.bool_)
        out = np.zeros((len(rows), self.num_observables), np.uint8)
        for shot, row in enumerate(rows):
            found[shot], is_late[shot] = 0, False
            try:
                out[shot], is_late[shot] = self._decode(row)
            except DecodeError as error:
                found[shot] = error.status
                if statuses is None and error.status != DEADLINE:
                    raise DecodeError(error.status, shot, fault=error.fault) from error.__cause__
            has_solution[shot] = found[shot] == 0
        return np.packbits(out, axis=1, bitorder="little") if bit_packed_predictions else out

    def serve(self, payload: bytes) -> tuple[int, bytes]:
        """A handler for Dispatcher: packed bits of a shot in; its status, and packed observables with the status 0.
        A payload of another size, or a function that raises, is an error of the handler."""
        row = np.frombuffer(payload, np.uint8).reshape(1, -1)
        shot = unpacked_rows(to_native(row, self.num_detectors, "rows of packed bits", "payload"), self.num_detectors)
        try:
            answer, _ = self._decode(shot[0])
        except DecodeError as error:
            if error.status != DEADLINE:
                raise
            return DEADLINE, b""
        return 0, np.packbits(answer, bitorder="little").tobytes()

    def _decode(self, shot: Bits) -> tuple[Bits, bool]:
        """The answer, and whether it is late."""
        function, _, deadline_us = self._arguments
        if deadline_us is None:
            if self._pid != os.getpid():  # a lock of the parent may stay held
                self._renew()
            call = _Call(shot)
            with self._lock:
                call.run(function)
            return self._answer_of(call), False
        until = time.monotonic() + deadline_us / 1e6
        call = self._call_until(shot, until)
        if not call.done.is_set():
            self._count(Deadlines(0, 1, 0))
            raise DecodeError(DEADLINE)
        is_late = time.monotonic() > until
        self._count(Deadlines(not is_late, is_late, is_late))
        return self._answer_of(call), is_late

    def _count(self, more: Deadlines) -> None:
        with self._counting:
            self._deadlines = Deadlines(*(int(a + b) for a, b in zip(self._deadlines, more)))

    def _call_until(self, shot: Bits, until: float) -> _Call:
        """A call that is done, or was given up."""
        if self._pid != os.getpid():  # threads of the parent are not here
            self._renew()
        self._refuse_own_threads()
        call = _Call(shot)
        if not self._lock.acquire(timeout=max(0.0, until - time.monotonic())):
            return call
        try:
            if self._worker is None:
                self._stuck = [thread for thread in self._stuck if thread.is_alive()]
                if len(self._stuck) >= MAX_STUCK:
                    return call
                self._worker = _Worker(self._arguments[0])
            worker = self._worker
            try:
                worker.calls.put(call)
                call.done.wait(max(0.0, until - time.monotonic()))
            finally:  # also after Ctrl-C
                if not call.done.is_set():
                    worker.end()
                    self._stuck = [*self._stuck, worker.thread]  # first: _refuse_own_threads reads both unlocked
                    self._worker = None
        finally:
            self._lock.release()
        return call

    def _refuse_own_threads(self) -> None:
        """The caller of the function holds the lock, and waits for this thread."""
        worker, this = self._worker, threading.current_thread()
        if (worker is not None and worker.thread is this) or this in self._stuck:
            raise RuntimeError("the function has called its own decoder, which has a deadline: the call would wait for "
                               "itself. Call the function, or make a decoder of its own for the inner call")

    def _answer_of(self, call: _Call) -> Bits:
        if call.error is not None and not isinstance(call.error, Exception):
            raise call.error  # KeyboardInterrupt
        if call.error is None:
            try:
                packed = to_native(call.answer, self.num_observables, "bits", f"the answer of {self.name}")
                return np.unpackbits(packed, count=self.num_observables, bitorder="little")
            except (TypeError, ValueError) as error:
                call.error = error
        text = str(call.error)
        raise DecodeError(INTERNAL_ERROR, fault=f"{type(call.error).__name__}: {text}" if text else
                          type(call.error).__name__) from call.error


def _again(function: Function, dem: str, deadline_us: float | None) -> FunctionDecoder:
    return FunctionDecoder(function, dem, deadline_us=deadline_us)
