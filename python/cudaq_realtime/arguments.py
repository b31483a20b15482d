# SPDX-License-Identifier: Apache-2.0
"""Arguments of the package: one checked conversion for each kind. The text of an error names the argument, what it is,
and what is accepted."""
from __future__ import annotations

import math
import operator
import os
import re
from typing import TYPE_CHECKING, Any, Literal, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import stim

Model = Union[str, "os.PathLike[str]", "stim.DetectorErrorModel"]
# The probability that an error has in one shot: a record of an array of flags.
FLAG = np.dtype([("error", np.uint64), ("probability", np.float64)])
Flags = Union[Sequence[Tuple[int, float]], npt.NDArray[Any]]
SOFT_KINDS = ("f32", "u8", "u4")  # their numbers in readout.h
Form = Literal["indices", "bits", "rows of bits", "rows of packed bits"]

MAX_BYTES = 2**32 - 1  # of a payload or a result: the field of its length has 32 bits
_FIRST_WORD = re.compile(r"(?:\s|#[^\n]*)*(\w+|\S?)")  # after comments; empty in an empty model
_NO_DETECTORS = ": the model has no detectors"
_INSTRUCTIONS = ("", "error", "detector", "logical_observable", "shift_detectors", "repeat")


def to_native(given: npt.ArrayLike, count: int, form: Form, what: str) -> npt.NDArray[Any]:
    """Detection events or observables, as the C++ part takes them.

    given: the indices of those that are 1; or bool or 0/1, [count] or rows of it; or uint8 rows with bit k in bit k % 8
        of byte k // 8.
    Returns uint64 of indices, else uint8 of packed bits: contiguous, maybe the memory of `given`.
    """
    array = _array(given, form, what)
    if form == "indices":
        return _indices(array, count, what)
    packed = form == "rows of packed bits"
    width = (count + 7) // 8 if packed else count
    one = form == "bits"
    if array.shape != (count,) if one else array.ndim != 2 or array.shape[1] != width:
        accepted = f"({count},)" if one else f"rows of {_number_of(width, 'byte' if packed else 'bit')}"
        if form == "rows of bits":
            accepted += f", or packed rows of {_number_of((count + 7) // 8, 'byte')} with bit_packed_shots=True"
        none = "" if one or count else _NO_DETECTORS
        raise ValueError(f"{what} has the shape {array.shape}, accepted: {accepted}{none}")
    if packed:
        if array.dtype != np.uint8:
            raise ValueError(f"{what} has the type {array.dtype}, accepted for packed bits: uint8")
        return np.ascontiguousarray(array)
    return _packed(array, what, "" if one else "; packed bits need bit_packed_shots=True")


def flag_records(given: Flags | None, what: str = "flags") -> npt.NDArray[Any]:
    """FLAG records of pairs; of an array of FLAG records its own memory."""
    if given is None:
        return np.empty(0, dtype=FLAG)
    if isinstance(given, np.ndarray) and given.dtype == FLAG and given.ndim == 1:
        return np.ascontiguousarray(given)
    accepted = "accepted: pairs of the number of an error and its probability, [(17, 0.5), (18, 0.25)]"
    try:
        pairs = [(operator.index(error), float(probability)) for error, probability in given]
    except (TypeError, ValueError):
        raise ValueError(f"{what} is {given!r:.60}, {accepted}") from None
    for error, _ in pairs:
        if not 0 <= error < 2**64:
            raise ValueError(f"{what} has the error {error}, {accepted}")
    return np.array(pairs, dtype=FLAG)


def stream_bits(given: npt.ArrayLike, count: int | None, what: str) -> tuple[npt.NDArray[np.uint8], int]:
    """Packed bits and their number.

    given: bool or 0/1 of any shape, read row by row; with `count` uint8 of packed bits.
    """
    array = _array(given, "bits", what)
    if count is None:
        if array.ndim == 0:
            raise ValueError(f"{what} is {given!r:.60}, accepted: an array of bits")
        flat = array.reshape(-1) if array.size else np.empty(0, dtype=bool)  # an empty list has no type
        return _packed(flat, what, "; packed bits need count=N"), array.size
    count = whole_number(count, "count", 0, 2**62)
    if array.dtype != np.uint8 or array.shape != ((count + 7) // 8,):
        raise ValueError(f"{what} is {array.dtype}{list(array.shape)}, accepted for {count} packed bits: "
                         f"uint8[{(count + 7) // 8}]")
    return np.ascontiguousarray(array), count


def _number_of(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _array(given: npt.ArrayLike, form: str, what: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(given)
    except (TypeError, ValueError) as error:  # rows of several lengths
        raise ValueError(f"{what} is no array ({error}), accepted: {form}") from None


def _packed(array: npt.NDArray[Any], what: str, hint: str) -> npt.NDArray[np.uint8]:
    """Of the last axis. `hint`: for bytes with other values."""
    if array.dtype.kind not in "biu":
        raise ValueError(f"{what} has the type {array.dtype}, accepted: bool and whole numbers")
    if array.dtype.kind != "b" and array.size and (array.min() < 0 or array.max() > 1):
        raise ValueError(f"{what} has values other than 0 and 1{hint}")
    return np.ascontiguousarray(np.packbits(array.astype(np.uint8, copy=False), axis=-1, bitorder="little"))


def _indices(array: npt.NDArray[Any], count: int, what: str) -> npt.NDArray[np.uint64]:
    accepted = ("accepted: a list of the detectors that fired, as np.flatnonzero(bits) makes it from bits; "
                "decode_batch takes rows of bits")
    if array.ndim == 1 and array.size == 0:
        return np.empty(0, dtype=np.uint64)
    whole = array.dtype.kind in "iu" and array.dtype.itemsize > 1  # numbers of one byte are bits
    if not whole:
        raise ValueError(f"{what} has the type {array.dtype}, {accepted}")
    if array.ndim != 1:
        raise ValueError(f"{what} has the shape {array.shape}, {accepted}")
    if array.min() < 0:
        raise ValueError(f"{what} contains {array.min()}, accepted: 0 to {count - 1}")
    if count == 0:
        raise ValueError(f"{what} contains {array.max()}, accepted: an empty list{_NO_DETECTORS}")
    if array.size == count > 2 and array.max() <= 1:  # as indices, some would be there twice
        raise ValueError(f"{what} has {count} values, all of them 0 or 1, as bits have; {accepted}")
    return np.ascontiguousarray(array, dtype=np.uint64)


def model_text(dem: Model) -> str:
    """The text of a model that is given as a stim.DetectorErrorModel, as text, or as the path of a file."""
    remedy = "a circuit has its model in circuit.detector_error_model()"
    if hasattr(dem, "detector_error_model"):
        raise ValueError(f"dem is a {type(dem).__name__}, accepted: a detector error model; {remedy}")
    if not isinstance(dem, (str, os.PathLike)):
        if type(dem).__name__ != "DetectorErrorModel":
            raise TypeError(f"dem is {dem!r:.60}, accepted: a stim.DetectorErrorModel, its text, or the path of a file")
        return str(dem)
    text, where = dem, "dem"
    if not isinstance(dem, str) or ("\n" not in dem and (os.path.isfile(dem) or os.path.isdir(dem))):
        where = f"the file {os.fspath(dem)}"
        with open(dem, encoding="utf-8", errors="replace") as file:
            text = file.read()
    assert isinstance(text, str)
    found = _FIRST_WORD.match(text)
    word = found.group(1) if found else ""
    if word.lower() not in _INSTRUCTIONS:
        if text is dem and "\n" not in text:
            raise ValueError(f"dem is {dem!r:.300}: no such file, and no model in Stim's format")
        raise ValueError(f"{where} begins with {word[:60]!r}, which a detector error model does not have; {remedy}")
    return text


def file_text(given: str | os.PathLike[str] | None, what: str) -> str | None:
    """The text of a file about a model, heralds or readout, that is given as text, or as a path."""
    if given is None or (isinstance(given, str) and "\n" in given):
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"{what} is {given!r:.60}, accepted: the text of a file of {what}, or its path")
    with open(given, encoding="utf-8", errors="replace") as file:
        return file.read()


def soft_bytes(given: npt.NDArray[Any] | None, shots: int | None, measurements: int,
               kind: str | None) -> tuple[npt.NDArray[np.uint8], int]:
    """Soft values as bytes of a shot, or of rows of them, and the number of their kind.

    shots: None: of one shot. kind: None: float32 is "f32", uint8 "u8". The bytes are the memory of `given` if it is
    contiguous."""
    where = () if shots is None else (shots,)
    if given is None:
        if measurements:
            raise ValueError(f"soft is missing: the table of the readout has {measurements} measurements")
        return np.empty((*where, 0), dtype=np.uint8), 0
    array = np.asarray(given)
    named = kind if kind is not None else {"float32": "f32", "uint8": "u8"}.get(str(array.dtype))
    if named not in SOFT_KINDS or array.dtype != (np.float32 if named == "f32" else np.uint8):
        raise ValueError(f"soft has the type {array.dtype} and the kind {kind!r:.20}, accepted: float32 (f32), uint8 "
                         "(u8), and uint8 with soft_kind='u4', two values in a byte")
    shape = (*where, (measurements + 1) // 2 if named == "u4" else measurements)
    if array.shape != shape:
        raise ValueError(f"soft has the shape {array.shape}, accepted for {measurements} measurements of {named}: "
                         f"{shape}")
    if array.size == 0:
        return np.empty((*where, 0), dtype=np.uint8), 0
    return np.ascontiguousarray(array).view(np.uint8), SOFT_KINDS.index(named)


def leakage_bytes(given: npt.ArrayLike | None, shots: int | None, flags: int) -> npt.NDArray[np.uint8]:
    """Flags of leakage, 0, 1 or 2 each, as bytes with four of them, of a shot or of rows."""
    where = () if shots is None else (shots,)
    if given is None:
        if flags:
            raise ValueError(f"leakage is missing: the table of the readout has {flags} flags")
        return np.empty((*where, 0), dtype=np.uint8)
    array = _array(given, "values 0, 1 and 2", "leakage")
    shape = (*where, flags)
    if array.shape != shape or array.dtype.kind not in "iu":  # True would be 1, which is no leaked qubit
        raise ValueError(f"leakage is {array.dtype}{list(array.shape)}, accepted: whole numbers {list(shape)}, 0, 1 "
                         "or 2")
    if array.size and (array.min() < 0 or array.max() > 2):
        raise ValueError("leakage has values other than 0, 1 and 2")
    padded = np.zeros((*where, (flags + 3) // 4 * 4), dtype=np.uint8)
    padded[..., :flags] = array
    of_four = padded.reshape(*where, (flags + 3) // 4, 4) << np.array([0, 2, 4, 6], dtype=np.uint8)
    return np.ascontiguousarray(np.bitwise_or.reduce(of_four, axis=-1))


def next_values(soft: npt.NDArray[Any] | None, kind: str | None, soft_count: int | None,
                leakage: npt.ArrayLike | None) -> tuple[npt.NDArray[np.uint8], int, int, npt.NDArray[np.uint8], int]:
    """The next soft values and flags of a stream, of any number: the bytes of the values, how many, the number of their
    kind; the bytes of the flags, and how many."""
    in_byte = 2 if kind == "u4" else 1
    room = 0 if soft is None else in_byte * np.size(soft)
    number = room
    if soft_count is not None:
        number = whole_number(soft_count, "soft_count", max(0, room - in_byte + 1), room)
    values, of_kind = soft_bytes(soft, None, number, kind)
    flags = 0 if leakage is None else np.size(leakage)
    return values, number, of_kind, leakage_bytes(leakage, None, flags), flags


def decoder_name(name: str | os.PathLike[str]) -> str:
    if not isinstance(name, (str, os.PathLike)):
        raise TypeError(f"the name of the decoder is {name!r:.60}, accepted: one of decoder_names(), 'auto', or the "
                        "path of a plug-in")
    return os.fspath(name)


def whole_number(value: int, what: str, min_value: int, max_value: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r:.60}, accepted: a whole number from {min_value} to {max_value}") from None
    if not min_value <= number <= max_value:
        raise ValueError(f"{what} is {number}, accepted: {min_value} to {max_value}")
    return number


def positive_number(value: float, what: str) -> float:
    """0 or more, and finite."""
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"{what} is {value!r:.60}, accepted: a number of 0 or more")
    return number


def bytes_of(value: Any, what: str) -> bytes:
    """A copy of bytes, a bytearray, a memoryview, or an array of numbers."""
    try:
        view = memoryview(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r:.60}, accepted: bytes") from None
    if "O" in view.format:
        raise TypeError(f"{what} is an array of Python objects, accepted: bytes")
    if view.nbytes > MAX_BYTES:
        raise ValueError(f"{what} has {view.nbytes} bytes, accepted: {MAX_BYTES} at most")
    return view.tobytes()
