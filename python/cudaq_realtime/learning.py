# SPDX-License-Identifier: Apache-2.0
"""The rates of a model's errors, learned from detection events: docs/decoders/learn.md has the method."""
from __future__ import annotations

import operator
import os
import zlib
from typing import Any, NamedTuple, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _native
from .arguments import Model, file_text, model_text, to_native

Tied = Union[str, "os.PathLike[str]", Sequence[Sequence[int]]]
_PIECE = 65536  # shots between two looks at Ctrl-C


class Score(NamedTuple):
    """The learned model beside the given one, on the held-out shots. per_shot: by how many nats a shot its
    log-likelihood is larger; sigma: of that; blocks: of shots, from which sigma was drawn; better_by_sigmas: 0 with too
    few blocks to say."""
    per_shot: float
    sigma: float
    blocks: int
    better_by_sigmas: float


class Learned(NamedTuple):
    """What learn() returns. The arrays have a row for each error that flips something, in the order of the text, or
    for each detector.

    dem: the text of the model with the learned rates; of refused shots the given text.
    errors: numbers of the error instructions, of `model.flattened()`; lines: of the text, from 1.
    model_rates, rates, sigmas: before, learned, and the standard error of the learned ones.
    intervals: [errors, 2], each holds the true rate with 95 %. Errors with the same detectors, and tied ones, have one
        factor: theirs hold it if the true rates have the ratio of the model's.
    resolved: False: the shots say little of this error, and its rate stays near the model's.
    detector_rates, detector_model_rates: the share of the shots in which each fires, counted and by the model;
    detector_sigmas: how far they differ.
    score: None without held-out shots.
    shots, held_out_shots: that were learned from, that were scored.
    variation: of the rates between the shots, as a share of their mean.
    """
    dem: str
    errors: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    model_rates: npt.NDArray[np.float64]
    rates: npt.NDArray[np.float64]
    sigmas: npt.NDArray[np.float64]
    intervals: npt.NDArray[np.float64]
    resolved: npt.NDArray[np.bool_]
    detector_rates: npt.NDArray[np.float64]
    detector_model_rates: npt.NDArray[np.float64]
    detector_sigmas: npt.NDArray[np.float64]
    score: Score | None
    shots: int
    held_out_shots: int
    variation: float


class ShotsRefused(ValueError):
    """The shots must not change a model: a stuck detector, a burst, detectors in another order, too few shots, or a
    learned model that is worse. `refusals` are the reasons; `learned` has what was learned all the same, to look for
    the cause."""

    def __init__(self, refusals: Sequence[str], learned: Learned):
        self.refusals, self.learned = list(refusals), learned
        super().__init__("the model stays as it is: " + "; ".join(self.refusals))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.refusals, self.learned), self.__dict__


def learn(dem: Model, events: npt.ArrayLike, tied: Tied | None = None, *, held_out: float = 0.1, prior: float = 4.0,
          bit_packed_shots: bool = False) -> Learned:
    """Learns how often each error of a model happens, from detection events alone: `cudaq-realtime learn`.

    dem: the model, whose rates are the first guess.
    events: bool or 0/1 [shots, detectors]; with bit_packed_shots uint8 rows with bit k in bit k % 8 of byte k // 8.
    tied: groups of errors that change by one factor: lists of the numbers of `model.flattened()`'s error instructions;
        or the text, or the path, of a file of tied errors for this model.
    held_out: the share of the shots that only score the learned model, 0 to 0.9; 0: no score.
    prior: the factor by which rates are expected to differ from the model's, 1.01 to 1e6. Where the shots say little,
        a smaller one keeps them closer to it.
    Raises ShotsRefused if the shots must not change the model, ValueError for other arguments that cannot be used. Any
    thread may call; other threads go on meanwhile. Ctrl-C is seen while shots are counted.
    """
    text = model_text(dem)
    native = _native.NativeLearner(text, _tied_text(tied, text), _number(held_out, "held_out", "0 to 0.9"),
                                   _number(prior, "prior", "1.01 to 1e6"))
    rows = to_native(events, native.num_detectors, "rows of packed bits" if bit_packed_shots else "rows of bits",
                     "events")
    for begin in range(0, len(rows), _PIECE):
        native.add(rows[begin:begin + _PIECE], begin)
    native.finish()
    columns = list(zip(*native.errors)) or [()] * 8
    numbers, lines, model_rates, rates, sigmas, low, high, resolved = columns
    seen = np.array(native.detectors, dtype=np.float64).reshape(-1, 3)
    learned = Learned(
        native.dem, np.array(numbers, dtype=np.int64), np.array(lines, dtype=np.int64), np.array(model_rates, float),
        np.array(rates, float), np.array(sigmas, float), np.array([low, high], float).T, np.array(resolved, bool),
        seen[:, 0], seen[:, 1], seen[:, 2], None if native.score is None else Score(*native.score), native.shots,
        native.held_out_shots, native.variation)
    if native.refusals:
        raise ShotsRefused(native.refusals, learned)
    return learned


def _number(value: float, what: str, accepted: str) -> float:
    """The library has the limits."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{what} is {value!r:.60}, accepted: {accepted}") from None


def _tied_text(given: Tied | None, dem: str) -> str:
    if given is None or isinstance(given, (str, os.PathLike)):
        text = file_text(given, "tied errors")
        if text is not None and not text.strip():
            raise ValueError("tied is an empty text, accepted: that of a file of tied errors, or None")
        return text or ""
    try:
        groups = [[operator.index(error) for error in group] for group in given]
    except TypeError:
        raise TypeError(f"tied is {given!r:.60}, accepted: lists of numbers of errors, [[0, 1], [2, 5]]; or the text "
                        "of a file of tied errors, or its path") from None
    named: dict[int, int] = {}
    for name, group in enumerate(groups):
        for error in group:
            if error < 0:
                raise ValueError(f"tied has the error {error}, accepted: 0 or more")
            if error in named:
                where = f"in group {name} twice" if named[error] == name else f"in the groups {named[error]} and {name}"
                raise ValueError(f"tied has error {error} {where}, accepted: each error once")
            named[error] = name
    lines = "".join(f"tie group{k} {' '.join(map(str, group))}\n" for k, group in enumerate(groups))
    return f"cudaq-realtime-tied 1\nmodel {zlib.crc32(dem.encode()):08x}\n{lines}"
