# SPDX-License-Identifier: Apache-2.0
"""Decoders with numpy arrays in and out."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Sequence, overload

import numpy as np
import numpy.typing as npt

from . import _native

if TYPE_CHECKING:
    import stim

Bits = npt.NDArray[np.uint8]


class DecodeError(RuntimeError):
    """A shot could not be decoded. `status` is the number of docs/guide/errors.md, `shot` the row of a batch."""

    def __init__(self, status: int, shot: int | None = None):
        self.status, self.shot = status, shot
        where = "" if shot is None else f"shot {shot}: "
        super().__init__(f"{where}{_native.status_text(status)} (status {status})")


def packed_rows(shots: npt.ArrayLike, bits: int, bit_packed: bool) -> Bits:
    """Rows of bytes with bit k in bit k % 8 of byte k // 8, from rows of bits or of such bytes."""
    shots = np.asarray(shots)
    width, what = ((bits + 7) // 8, "bytes") if bit_packed else (bits, "bits")
    if shots.ndim != 2 or shots.shape[1] != width:
        raise ValueError(f"shots has the shape {shots.shape}, accepted: rows of {width} {what}")
    if bit_packed:
        if shots.dtype != np.uint8:
            raise ValueError(f"shots has the type {shots.dtype}, accepted for packed bits: uint8")
        return np.ascontiguousarray(shots)
    if shots.dtype != np.bool_:
        if not np.issubdtype(shots.dtype, np.integer):
            raise ValueError(f"shots has the type {shots.dtype}, accepted: bool and whole numbers")
        if shots.size and (shots.min() < 0 or shots.max() > 1):
            raise ValueError("shots has values other than 0 and 1; packed bits need bit_packed_shots=True")
    return np.ascontiguousarray(np.packbits(shots.astype(np.uint8, copy=False), axis=1, bitorder="little"))


def unpacked_rows(rows: Bits, bits: int) -> Bits:
    return np.unpackbits(rows, axis=1, count=bits, bitorder="little")


class Decoder:
    """A decoder for one detector error model.

    name: a name of decoder_names(), "auto", or the path of a plug-in, with settings: "bp-osd:osd_order=7".
    dem: the text of a model in Stim's format, or a stim.DetectorErrorModel.
    Raises ValueError with the reason if the decoder does not take the model.

    Threads: any may call; the calls of one object run one after another. No call holds the GIL while it decodes.
    """

    def __init__(self, name: str, dem: str | stim.DetectorErrorModel):
        self._name, self._dem = name, str(dem)
        self._native = _native.NativeDecoder(self._name, self._dem)

    def __reduce__(self) -> tuple[type[Decoder], tuple[str, str]]:
        return Decoder, (self._name, self._dem)

    def __repr__(self) -> str:
        return (f"Decoder({self._name!r}, {self.num_detectors} detectors, {self.num_observables} observables)")

    @property
    def name(self) -> str:
        """The decoder that was made: not "auto", and without settings."""
        return self._native.name

    @property
    def num_detectors(self) -> int:
        return self._native.num_detectors

    @property
    def num_observables(self) -> int:
        return self._native.num_observables

    def _one(self, events: npt.ArrayLike) -> tuple[Bits, float]:
        events = np.asarray(events)
        if events.size and not np.issubdtype(events.dtype, np.integer):
            raise ValueError(f"events has the type {events.dtype}, accepted: indices of detectors")
        if events.size and events.min() < 0:
            raise ValueError(f"events contains {events.min()}, accepted: 0 to {self.num_detectors - 1}")
        packed = np.zeros(self._native.observable_bytes, dtype=np.uint8)
        status, weight = self._native.decode(np.ascontiguousarray(events, dtype=np.uint64).reshape(-1), packed)
        if status:
            raise DecodeError(status)
        return np.unpackbits(packed, count=self.num_observables, bitorder="little"), weight

    @overload
    def decode(self, events: Sequence[int] | npt.NDArray[Any], *, return_weight: Literal[False] = False) -> Bits: ...

    @overload
    def decode(self, events: Sequence[int] | npt.NDArray[Any], *,
               return_weight: Literal[True]) -> tuple[Bits, float]: ...

    def decode(self, events: Sequence[int] | npt.NDArray[Any], *, return_weight: bool = False) -> Any:
        """Decodes one shot.

        events: the indices of the detectors that fired, each once, in any order.
        Returns uint8[num_observables], 1 for each flipped observable; with return_weight also the weight of the
        correction, NaN if the decoder does not give it. Raises DecodeError.
        """
        observables, weight = self._one(events)
        return (observables, weight) if return_weight else observables

    def decode_to_edges_array(self, events: Sequence[int] | npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The edges of the correction: int64[edges, 2], two detectors each, -1 for the boundary.

        Only of decoders that give edges ("pymatching:edges=1"); of others NotImplementedError. Raises DecodeError.
        """
        if not self._native.gives_edges:
            raise NotImplementedError(f"the decoder {self._name} gives no edges; 'pymatching:edges=1' does")
        indices = np.ascontiguousarray(events, dtype=np.uint64).reshape(-1)
        edges = np.empty((max(1, self.num_detectors), 2), dtype=np.int64)
        status, count = self._native.decode_edges(indices, edges)
        if status:
            raise DecodeError(status)
        return edges[:count].copy()

    def decode_batch(self, shots: npt.ArrayLike, *, bit_packed_shots: bool = False,
                     bit_packed_predictions: bool = False, threads: int = 1,
                     statuses: npt.NDArray[np.int32] | None = None) -> Bits:
        """Decodes many shots.

        shots: bool or 0/1 [shots, num_detectors]; with bit_packed_shots uint8 [shots, (num_detectors + 7) // 8].
        threads: each has a decoder of its own and decodes a part of the shots; 0: one for each core.
        statuses: int32 [shots] that gets the status of each shot. Without it the first shot that could not be decoded
            raises DecodeError; with it such a shot has the answer 0.
        Returns uint8 [shots, num_observables], with bit_packed_predictions [shots, (num_observables + 7) // 8].
        """
        events = packed_rows(shots, self.num_detectors, bit_packed_shots)
        if threads < 0:
            raise ValueError(f"threads is {threads}, accepted: 0 or more")
        found = np.empty(len(events), dtype=np.int32) if statuses is None else statuses
        if found.shape != (len(events),) or found.dtype != np.int32 or not found.flags.c_contiguous:
            raise ValueError(f"statuses is {found.dtype}{list(found.shape)}, accepted: int32[{len(events)}]")
        out = np.zeros((len(events), self._native.observable_bytes), dtype=np.uint8)
        self._native.decode_batch(events, out, found, threads or len(os.sched_getaffinity(0)))
        if statuses is None and found.any():
            shot = int(np.flatnonzero(found)[0])
            raise DecodeError(int(found[shot]), shot)
        return out if bit_packed_predictions else unpacked_rows(out, self.num_observables)
