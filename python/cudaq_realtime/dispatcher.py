# SPDX-License-Identifier: Apache-2.0
"""A ring and a dispatcher with handlers in Python: to try protocols and handlers out, not to measure.

Each call of a handler takes the GIL: tens of microseconds, and as long as other Python code keeps it.
"""
from __future__ import annotations

from typing import Callable, Mapping, NamedTuple, Union

from . import _native

Handler = Callable[[bytes], Union[bytes, "tuple[int, bytes]"]]


class Answer(NamedTuple):
    status: int  #: 0, the handler's own, or one of docs/guide/errors.md
    result: bytes

    @property
    def text(self) -> str:
        return _native.rpc_status_text(self.status)


def _with_status(handler: Handler) -> Callable[[bytes], tuple[int, bytes]]:
    def call(payload: bytes) -> tuple[int, bytes]:
        answer = handler(payload)
        return answer if isinstance(answer, tuple) else (0, answer)
    return call


class Dispatcher:
    """Serves functions by name, on a thread of its own.

    handlers: name: function(payload: bytes) -> result, or (status, result). A handler that raises is answered -1005;
        `errors` has the text. It runs on the dispatcher's thread, one call at a time.
    slots, slot_size: of the ring; a slot holds 24 bytes of header and the payload or result.

    >>> with Dispatcher({"count": lambda payload: bytes([len(payload)])}) as dispatcher:
    ...     dispatcher.call("count", b"abc")
    Answer(status=0, result=b'\\x03')
    """

    def __init__(self, handlers: Mapping[str, Handler], *, slots: int = 8, slot_size: int = 4096):
        self._native = _native.NativeDispatcher(slots, slot_size)
        for name, handler in handlers.items():
            self._native.add(name, _with_status(handler))

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
        """Sends a request and waits for its answer, without the GIL. RuntimeError after `timeout` seconds."""
        return Answer(*self._native.call(name, bytes(payload), timeout))

    @property
    def errors(self) -> list[str]:
        """The last exception of each handler that has raised one."""
        return self._native.errors()

    def stats(self) -> dict[str, int]:
        return self._native.stats()

    def dump(self) -> str:
        """State, options, counters, and what the dispatcher's thread does."""
        return self._native.dump()
