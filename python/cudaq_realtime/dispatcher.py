# SPDX-License-Identifier: Apache-2.0
"""A ring and a dispatcher with handlers in Python: to try protocols and handlers out, not to measure.

Each call of a handler takes the GIL: tens of microseconds, and as long as other Python code keeps it.
"""
from __future__ import annotations

import functools
import threading
from typing import Any, Callable, Mapping, NamedTuple, Union

from . import _native
from .arguments import bytes_of, positive_number, whole_number

UINT32_MAX = 2**32 - 1
Handler = Callable[[bytes], Union[bytes, "tuple[int, bytes]"]]


class Answer(NamedTuple):
    status: int  #: 0, the handler's own, or one of docs/guide/errors.md
    result: bytes

    @property
    def text(self) -> str:
        return _native.rpc_status_text(self.status)


def _with_status(name: str, handler: Handler, serving: list[int]) -> Callable[[bytes], tuple[int, bytes]]:
    """Checks what the handler returns. `serving` has the thread that runs a handler."""
    def call(payload: bytes) -> tuple[int, bytes]:
        serving.append(threading.get_ident())
        try:
            answer = handler(payload)
        finally:
            serving.pop()
        status, result = answer if isinstance(answer, tuple) and len(answer) == 2 else (0, answer)
        return (whole_number(status, f"the status of the handler {name!r}", -2**31, 2**31 - 1),
                bytes_of(result, f"the result of the handler {name!r}"))
    return call


class Dispatcher:
    """Serves functions by name, on a thread of its own.

    handlers: name: function(payload: bytes) -> result, or (status, result); a result is bytes, a bytearray, a
        memoryview or an array. A handler that raises, or returns something else, is answered -1005; `errors` has the
        text. It runs on the dispatcher's thread, one call at a time.
    slots, slot_size: of the ring; a slot holds 24 bytes of header and the payload or result.
    A copy, also a pickled one, is a new dispatcher with the same arguments, and does not run.

    >>> with Dispatcher({"count": lambda payload: bytes([len(payload)])}) as dispatcher:
    ...     dispatcher.call("count", b"abc")
    Answer(status=0, result=b'\\x03')
    """

    def __init__(self, handlers: Mapping[str, Handler], *, slots: int = 8, slot_size: int = 4096):
        if not isinstance(handlers, Mapping):
            raise TypeError(f"handlers is {handlers!r:.60}, accepted: a dict of names and functions")
        for name, handler in handlers.items():
            if not isinstance(name, str) or not callable(handler):
                raise TypeError(f"handlers has {name!r:.60}: {handler!r:.60}, accepted: a name and a function")
        self._handlers = dict(handlers)
        self._slots = whole_number(slots, "slots", 0, UINT32_MAX)
        self._slot_size = whole_number(slot_size, "slot_size", 0, UINT32_MAX)
        self._serving: list[int] = []
        self._native = _native.NativeDispatcher(self._slots, self._slot_size)
        for name, handler in self._handlers.items():
            self._native.add(name, _with_status(name, handler, self._serving))

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), slots=self._slots, slot_size=self._slot_size), (self._handlers,)

    def __repr__(self) -> str:
        return f"Dispatcher({list(self._handlers)}, slots={self._slots}, slot_size={self._slot_size})"

    def start(self) -> None:
        self._native.start()

    def stop(self) -> None:
        """Accepted requests are answered first."""
        self._native.stop()

    def __enter__(self) -> Dispatcher:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def call(self, name: str, payload: bytes = b"", *, timeout: float = 10.0) -> Answer:
        """Sends a request and waits for its answer, without the GIL. Ctrl-C ends the wait.

        payload: bytes, a bytearray, a memoryview or an array. RuntimeError: `timeout` seconds have passed, the
        dispatcher does not run, or a handler calls the dispatcher that waits for it.
        """
        if not isinstance(name, str):
            raise TypeError(f"name is {name!r:.60}, accepted: the name of a handler")
        if threading.get_ident() in self._serving:
            raise RuntimeError("a handler cannot call its own dispatcher, which serves one call at a time")
        seconds = positive_number(timeout, "timeout")
        return Answer(*self._native.call(name, bytes_of(payload, "payload"), seconds))

    @property
    def errors(self) -> list[str]:
        """The last exception of each handler that has raised one."""
        return self._native.errors()

    def stats(self) -> dict[str, int]:
        return self._native.stats()

    def dump(self) -> str:
        """State, options, counters, and what the dispatcher's thread does."""
        return self._native.dump()
