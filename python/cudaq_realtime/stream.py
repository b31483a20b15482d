# SPDX-License-Identifier: Apache-2.0
"""Decoding without an end: rounds as they come, by windows. docs/decoders/streaming.md explains windows."""
from __future__ import annotations

import functools
import os
from typing import Any, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from . import _native
from .arguments import Model, decoder_name, file_text, model_text, next_values, stream_bits, whole_number
from .decoders import Bits, DecodeError

MAX_ROUNDS = 2**20  # of a window
MAX_WORKERS = 1024
MISALIGNED = 8  # status: bits after the end, or a tail in the middle of a repetition


class StreamDecoder:
    """Decodes an experiment of any length while it runs.

    dem: a model with a loop (repeat), as of Decoder. The loop repeats until the stream ends, however often the text
        says.
    decoder: of each window: a name as of Decoder; or the whole form of a stream, such as
        "sliding-window:inner=pymatching,commit=5,mode=parallel".
    commit: rounds that a window makes final; buffer: later rounds that it looks at; 0: the distance of the code.
    rounds: "time": a round is a value of the last coordinate of the detectors; "index:N": N successive detectors.
    workers: threads that decode windows while the caller goes on; from 2 on windows are parallel unless the name has
        a mode. 0: each call decodes the windows that it completes.
    heralds: the path of a file of heralds for this model (heralds.heralded_model with fold_loops): the bits have the
        heralds, too, and a window knows those that have fired.
    readout: the text of a table for this model (readout.readout_model with fold_loops), or its path: rounds then come
        with `soft` and `leakage`.
    Raises ValueError with the reason if there are no such windows.

    Threads: any may call; the calls of one object run one after another. No call holds the GIL while it decodes.
    A copy, also a pickled one, is a new stream with the same arguments; two objects are equal if these are.
    """

    def __init__(self, dem: Model, decoder: str | os.PathLike[str] = "auto", *, commit: int = 0, buffer: int = 0,
                 rounds: str = "time", workers: int = 0, heralds: str | os.PathLike[str] | None = None,
                 readout: str | os.PathLike[str] | None = None):
        if not isinstance(rounds, str):
            raise TypeError(f"rounds is {rounds!r:.60}, accepted: 'time', or 'index:N' with N detectors a round")
        text, name = model_text(dem), decoder_name(decoder)
        commit, buffer = (whole_number(value, what, 0, MAX_ROUNDS)
                          for value, what in ((commit, "commit"), (buffer, "buffer")))
        workers = whole_number(workers, "workers", 0, MAX_WORKERS)
        file = "" if heralds is None else os.fspath(heralds)
        table = file_text(readout, "readout")
        self._arguments = text, name, commit, buffer, rounds, workers, file, table
        self._native = _native.NativeStream(name, text, commit, buffer, rounds, workers, file, table)
        self._has_ended = False

    def __reduce__(self) -> tuple[Any, ...]:
        dem, decoder, commit, buffer, rounds, workers, heralds, readout = self._arguments
        options: dict[str, Any] = {"commit": commit, "buffer": buffer, "rounds": rounds, "workers": workers,
                                   "heralds": heralds or None, "readout": readout}
        return functools.partial(type(self), **options), (dem, decoder)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamDecoder) and self._arguments == other._arguments

    def __hash__(self) -> int:
        return hash(self._arguments)

    def __repr__(self) -> str:
        final = f"{self.committed_rounds} of {self.pushed_rounds} rounds are final"
        return f"StreamDecoder({self.description!r}, {final})"

    def push(self, bits: npt.ArrayLike, *, count: int | None = None, soft: npt.NDArray[Any] | None = None,
             soft_kind: str | None = None, soft_count: int | None = None,
             leakage: npt.ArrayLike | None = None) -> bool:
        """Takes the next bits, one for each detector in ascending order: any number of them, also parts of rounds.

        bits: bool or 0/1 of any shape, such as [rounds, detectors], read row by row; or with `count` uint8 of packed
            bits, `count` of them, bit k in bit k % 8 of byte k // 8.
        soft: with a table of the readout: the next soft values, of any number of measurements, float32 or uint8
            [values]; with soft_kind "u4" uint8 with two in a byte, `soft_count` of them. All values of an experiment
            are of one kind.
        leakage: with a table: the next flags, whole numbers 0, 1 or 2 [flags].
        Values and flags may come before the bits of their round or with them, not later: DecodeError says how many are
        missing, or too early, and nothing was taken then.
        Returns True if further rounds have become final since the last push. Raises DecodeError if a window cannot be
        decoded, and then from every call until reset(); what was final stays final. With workers it waits only while
        their queue is full, and a later call raises the error.
        """
        packed, count = stream_bits(bits, count, "bits")
        status, is_final = self._native.push(packed, count, self._values(soft, soft_kind, soft_count, leakage))
        self._check(status, ended=status == MISALIGNED)
        return is_final

    def finish(self, tail: npt.ArrayLike, *, count: int | None = None, soft: npt.NDArray[Any] | None = None,
               soft_kind: str | None = None, soft_count: int | None = None,
               leakage: npt.ArrayLike | None = None) -> Bits:
        """Takes the bits of the tail, as push does, with the last values and flags. All rounds become final.

        Returns the observables of the whole experiment. Raises ValueError unless there are tail_detectors bits;
        DecodeError with status 8, and takes nothing, in the middle of a repetition of the loop. After Ctrl-C the tail
        was taken: a further call goes on to wait.
        """
        packed, count = stream_bits(tail, count, "tail")
        if count != self.tail_detectors:
            raise ValueError(f"tail has {count} bits, accepted: {self.tail_detectors}, the detectors after the loop")
        status = self._native.finish(packed, count, self._values(soft, soft_kind, soft_count, leakage))
        self._check(status, ended=status == MISALIGNED and self._has_ended)
        self._has_ended = True
        return self.observables

    def reset(self) -> None:
        """Back to the beginning: the next stream."""
        self._native.reset()
        self._has_ended = False

    def frames(self, bits: Iterable[npt.ArrayLike]) -> Iterator[tuple[int, Bits]]:
        """Decodes a whole stream, from reset() to finish(): yields (committed_rounds, observables) whenever further
        rounds were final after an element of `bits`, and at the end.

        bits: the elements are as `bits` of push. The last tail_detectors bits of all are the tail. So the newest bits
            are held back until others come after them.
        """
        self.reset()
        tail, held, last = self.tail_detectors, np.empty(0, dtype=np.uint8), 0
        for given in bits:
            packed, count = stream_bits(given, None, "an element of bits")
            held = np.concatenate([held, np.unpackbits(packed, count=count, bitorder="little")])
            now, held = held[:max(0, len(held) - tail)], held[max(0, len(held) - tail):]
            if self.push(now):
                frame = self._frame()
                if frame[0] != last:  # not yielded yet: it may have more rounds than push has seen
                    last = frame[0]
                    yield frame
        observables = self.finish(held)
        yield self.committed_rounds, observables

    @property
    def observables(self) -> Bits:
        """uint8[num_observables]: 1 for each one that the errors found in the first committed_rounds rounds flip."""
        return self._frame()[1]

    @property
    def committed_rounds(self) -> int:
        return self._native.committed_rounds

    @property
    def pushed_rounds(self) -> int:
        """Rounds of which all bits have come."""
        return self._native.pushed_rounds

    @property
    def pushed_bits(self) -> int:
        return self._native.pushed_bits

    @property
    def windows(self) -> int:
        """Windows that were decoded."""
        return self._native.windows

    @property
    def head_detectors(self) -> int:
        """Detectors before the loop of the model."""
        return self._native.head_detectors

    @property
    def body_detectors(self) -> int:
        """Detectors of one repetition of the loop, which may have several rounds."""
        return self._native.body_detectors

    @property
    def tail_detectors(self) -> int:
        """Detectors after the loop."""
        return self._native.tail_detectors

    @property
    def num_observables(self) -> int:
        return self._native.num_observables

    @property
    def description(self) -> str:
        """Windows and decoder, in words."""
        return self._native.description

    @property
    def num_measurements(self) -> tuple[int, int]:
        """Soft values of a repetition of the loop, and of what is before and after all repetitions together; (0, 0)
        without a table of the readout that has any."""
        body, others, *_ = self._native.values_info
        return body, others

    @property
    def num_flags(self) -> tuple[int, int]:
        """The same of flags of leakage."""
        _, _, body, others, _ = self._native.values_info
        return body, others

    def _values(self, soft: npt.NDArray[Any] | None, kind: str | None, soft_count: int | None,
                leakage: npt.ArrayLike | None) -> Any:
        return _native.StreamValues(*next_values(soft, kind, soft_count, leakage))

    def _frame(self) -> tuple[int, Bits]:
        packed = np.zeros((self.num_observables + 7) // 8, dtype=np.uint8)
        rounds = self._native.observables(packed)
        return rounds, np.unpackbits(packed, count=self.num_observables, bitorder="little")

    def _check(self, status: int, ended: bool) -> None:
        if status:
            raise DecodeError(status, fault=self._native.fault,
                              reason="the stream has ended: reset() begins the next one" if ended else None)
