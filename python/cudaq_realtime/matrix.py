# SPDX-License-Identifier: Apache-2.0
"""Models that are given as matrices: a column for each error."""
from __future__ import annotations

import math
import re
from typing import Any, Union

import numpy as np
import numpy.typing as npt

Matrix = Union[npt.ArrayLike, Any]  # or a sparse matrix of scipy
_TYPES = "accepted: bool and whole numbers, as matrix.astype(np.uint8) has them"


def text_of_matrices(check_matrix: Matrix, priors: npt.ArrayLike, observables: Matrix | None) -> str:
    """The model in Stim's format: column k is its error instruction k. ValueError if the arguments make no model."""
    checks, rows = _columns(check_matrix, "check_matrix")
    flips, flipped_rows = ([()] * len(checks), 0) if observables is None else _columns(observables, "observables")
    if not rows or not checks:
        raise ValueError(f"check_matrix has the shape ({rows}, {len(checks)}), accepted: checks and columns")
    if len(flips) != len(checks):
        raise ValueError(f"observables has {len(flips)} columns, accepted: {len(checks)}, those of check_matrix")
    probabilities = _probabilities(priors, len(checks))
    seen: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    lines = []
    for k, effect in enumerate(zip(checks, flips)):
        if not effect[0]:
            raise ValueError(f"column {k} of check_matrix is empty: no check sees this error; leave the column out")
        first = seen.setdefault(effect, k)
        if first != k:
            same = "and their observables are equal" if observables is not None else "are equal"
            raise ValueError(f"columns {first} and {k} of check_matrix {same}, so no decoder can tell these errors "
                             "apart: make one column of them, with p * (1 - q) + q * (1 - p)")
        targets = [f"D{row}" for row in effect[0]] + [f"L{row}" for row in effect[1]]
        lines.append(f"error({probabilities[k]!r}) {' '.join(targets)}\n")
    lines.append(f"detector D{rows - 1}\n")
    if flipped_rows:
        lines.append(f"logical_observable L{flipped_rows - 1}\n")
    return "".join(lines)


def _columns(matrix: Matrix, what: str) -> tuple[list[tuple[int, ...]], int]:
    """The rows of the ones of each column, ascending, and the number of rows."""
    is_sparse = hasattr(matrix, "tocsc")
    array: Any = matrix if is_sparse else _dense(matrix, what)
    if len(array.shape) != 2:
        raise ValueError(f"{what} has the shape {tuple(array.shape)}, accepted: (rows, columns)")
    if array.dtype.kind not in "biu":
        raise ValueError(f"{what} has the type {array.dtype}, {_TYPES}")
    if is_sparse:
        array = array.tocsc()
        if not array.has_canonical_format:
            array = array.copy()
            array.sum_duplicates()  # sorts, too
        values, of_row = np.asarray(array.data), np.asarray(array.indices)
        of_column = np.repeat(np.arange(array.shape[1]), np.diff(array.indptr))
    else:
        of_column, of_row = np.nonzero(array.T)
        values = array[of_row, of_column]
    wrong = np.flatnonzero((values != 0) & (values != 1))
    if wrong.size:
        at = wrong[0]
        raise ValueError(f"{what}[{of_row[at]}, {of_column[at]}] is {values[at]}, accepted: 0 and 1")
    of_column, of_row = of_column[values != 0], of_row[values != 0]  # a sparse matrix may store zeros
    ends = np.searchsorted(of_column, np.arange(array.shape[1] + 1))
    listed = of_row.tolist()
    return [tuple(listed[begin:end]) for begin, end in zip(ends[:-1], ends[1:])], int(array.shape[0])


def _dense(matrix: Any, what: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(matrix)
    except (TypeError, ValueError) as error:  # rows of several lengths
        raise ValueError(f"{what} is no matrix ({error}), accepted: rows of equal length") from None


def _probabilities(priors: npt.ArrayLike, count: int) -> list[float]:
    accepted = f"accepted: one probability, or {count}, one for each column"
    array = np.asarray(priors)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"priors has the type {array.dtype}, {accepted}")
    if array.shape not in ((), (count,)):
        raise ValueError(f"priors has the shape {array.shape}, {accepted}")
    found: list[float] = np.broadcast_to(array.astype(np.float64), (count,)).tolist()
    for k, p in enumerate(found):
        if math.isnan(p) or not 0 <= p <= 1:
            where = f"priors[{k}]" if array.ndim else "priors"
            raise ValueError(f"{where} is {p}, accepted: 0 to 1")
    return found


_ERROR = re.compile(r"\s*error(?:\[.*?\])?\([^)]*\)([^#]*)", re.IGNORECASE)


def errors_of_edges(text: str) -> tuple[dict[tuple[int, int], int], int]:
    """Of a model without loops: the number of the error with these detectors, the lower one first and -1 for none, and
    how many errors there are. Errors with equal detectors have no number, and neither do components. ValueError: the
    model has loops."""
    numbers: dict[tuple[int, int], int] = {}
    twice = set()
    count = 0
    for line in text.splitlines():
        word = line.split(maxsplit=1)[0].lower() if line.strip() else ""
        if word.startswith(("repeat", "shift_detectors")):
            raise ValueError("the model has loops or shifts: take model.flattened()")
        match = _ERROR.match(line)
        if match is None:
            continue
        ends = sorted(int(target[1:]) for target in match.group(1).split() if target[0] in "dD")
        if len(ends) in (1, 2) and "^" not in match.group(1):
            edge = (-1, ends[0]) if len(ends) == 1 else (ends[0], ends[1])
            if numbers.setdefault(edge, count) != count:
                twice.add(edge)
        count += 1
    for edge in twice:
        del numbers[edge]
    return numbers, count
