# SPDX-License-Identifier: Apache-2.0
"""Decoders with numpy arrays in and out."""
from __future__ import annotations

import os
import re
from typing import Any, Literal, NamedTuple, Sequence, overload

import numpy as np
import numpy.typing as npt

from . import _native
from .arguments import (FLAG, Flags, Form, Model, decoder_name, file_text, flag_records, leakage_bytes, model_text,
                        soft_bytes, to_native, whole_number)
from .matrix import Matrix, errors_of_edges, text_of_matrices

Bits = npt.NDArray[np.uint8]
MAX_THREADS = 1024
OUT_OF_RANGE, REPEATED, INTERNAL_ERROR, DEADLINE = 1, 2, 5, 9  # statuses
_INT64 = np.dtype(np.int64)


class Deadlines(NamedTuple):
    """Decodes that had a deadline: met; missed; and late: missed by a decoder that went on after it."""
    met: int
    missed: int
    late: int


class DecodeError(RuntimeError):
    """A shot could not be decoded. `status` is the number of docs/guide/errors.md, `shot` the row of a batch.
    `best` is None, or, at a deadline, the observables of the best solution so far. `fault` says what was wrong if the
    decoder knows it: of a plug-in the promise that it broke."""

    def __init__(self, status: int, shot: int | None = None, best: Bits | None = None, fault: str = "",
                 reason: str | None = None):
        self.status, self.shot, self.best, self.fault = status, shot, best, fault
        self._reason = reason or _native.status_text(status)
        where = "" if shot is None else f"shot {shot}: "
        why = f": {fault}" if fault else ""
        super().__init__(f"{where}{self._reason} (status {status}){why}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.shot, self.best, self.fault, self._reason), self.__dict__


def unpacked_rows(rows: Bits, bits: int) -> Bits:
    return np.unpackbits(rows, axis=1, count=bits, bitorder="little")


def result_array(given: npt.NDArray[Any] | None, name: str, shape: int | tuple[int, ...],
                 kind: type[np.generic]) -> npt.NDArray[Any]:
    """A value, or a row, for each shot: the caller's array after a check, or a new one."""
    sizes = (shape,) if isinstance(shape, int) else shape
    if given is None:
        return np.empty(sizes, dtype=kind)
    accepted = f"{np.dtype(kind)}{list(sizes)}"
    if not isinstance(given, np.ndarray):
        raise ValueError(f"{name} is {given!r:.60}, accepted: an array {accepted}")
    if given.shape != sizes or given.dtype != kind:
        raise ValueError(f"{name} is {given.dtype}{list(given.shape)}, accepted: {accepted}")
    if not given.flags.writeable or not given.flags.c_contiguous:
        why = "not contiguous" if given.flags.writeable else "read only"
        raise ValueError(f"{name} is {why}, accepted: an array of its own, as np.empty makes it")
    return given


class Decoder:
    """A decoder for one detector error model.

    name: a name of decoder_names(), "auto", or the path of a plug-in, with settings: "bp-osd:osd_order=7".
    dem: a stim.DetectorErrorModel, its text, or the path of a file with it.
    heralds: the text of a file of heralds for this model, or its path (docs/decoders/heralds.md). The detectors of
        shots are then those of the circuit, with the heralds.
    readout: the text of a table for this model, or its path (docs/decoders/soft.md). Each shot then needs `soft`, if
        the table has measurements, and `leakage`, if it has flags.
    Raises ValueError with the reason if the decoder does not take the model, the heralds or the table.

    Threads: any may call; the calls of one object run one after another. No call holds the GIL while it decodes.
    """

    def __init__(self, name: str | os.PathLike[str], dem: Model, heralds: str | os.PathLike[str] | None = None,
                 readout: str | os.PathLike[str] | None = None):
        self._name, self._dem, self._heralds = decoder_name(name), model_text(dem), file_text(heralds, "heralds")
        self._readout = file_text(readout, "readout")
        self._native = _native.NativeDecoder(self._name, self._dem, self._heralds, self._readout)
        self._observables = self._native.num_observables
        self._edges: tuple[dict[tuple[int, int], int], int] | None = None  # errors_of_edges of the model

    @classmethod
    def from_matrix(cls, check_matrix: Matrix, priors: npt.ArrayLike, observables: Matrix | None = None, *,
                    name: str | os.PathLike[str] = "auto") -> Decoder:
        """A decoder for errors that are columns of matrices: check k is detector k, column k is error k.

        check_matrix: bool or 0/1 [checks, columns], a numpy array or a sparse matrix of scipy. Each column has a check,
            and no two are equal with equal observables.
        priors: the probability of each error: one number for all, or float [columns].
        observables: as check_matrix [observables, columns]; None: there are none, and the answer is decode_to_vector.
        name: as of Decoder. "auto" without observables tries "pymatching:edges=1" first: matching that gives vectors.
        Raises ValueError with the column that does not fit, or the reason of the decoder.
        """
        text = text_of_matrices(check_matrix, priors, observables)
        if name == "auto" and observables is None:
            try:
                return cls("pymatching:edges=1", text)
            except ValueError:  # not for matching, or a build without it; another reason is that of "auto", too
                pass
        return cls(name, text)

    def __reduce__(self) -> tuple[type[Decoder], tuple[str, str, str | None, str | None]]:
        return type(self), (self._name, self._dem, self._heralds, self._readout)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Decoder) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self._name, self._dem, self._heralds, self._readout))

    def __repr__(self) -> str:
        name = re.sub("^auto(?=:|$)", self.name.rpartition("+")[2], self._name)  # without the predecoder
        return f"Decoder({name!r}, {self.num_detectors} detectors, {self.num_observables} observables)"

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

    @property
    def obeys_deadline(self) -> bool:
        """Whether decodes end at their deadline."""
        return self._native.obeys_deadline

    @property
    def deadlines(self) -> Deadlines:
        """Counts of all decodes so far that had a deadline (deadline_us of the name or of a call)."""
        return Deadlines(*self._native.deadlines)

    @property
    def wins(self) -> dict[str, int]:
        """Of a race: how many answers each member has given so far. Else empty."""
        return dict(self._native.wins)

    @property
    def member_faults(self) -> tuple[int, str]:
        """Of a race: how many decodes of its members were internal errors, and what was wrong in one of the last."""
        return self._native.member_faults

    @property
    def takes_flags(self) -> bool:
        """Whether a shot may replace the probabilities of errors (docs/decoders/shot_probabilities.md)."""
        return not self._native.refuses_flags

    def _flags(self, given: Flags | None, what: str = "flags") -> npt.NDArray[np.uint8]:
        if given is not None and not self.takes_flags:
            raise NotImplementedError(f"{what}: {self._native.refuses_flags}")
        return flag_records(given, what).view(np.uint8)

    @property
    def num_measurements(self) -> int:
        """Soft values of a shot; 0 without a table of the readout that has any."""
        return self._native.num_measurements

    @property
    def num_flags(self) -> int:
        """Flags of leakage of a shot; 0 without a table of the readout that has any."""
        return self._native.num_flags

    @property
    def gives_gaps(self) -> bool:
        """Whether decode gives the confidence in each observable (docs/decoders/confidence.md)."""
        return not self.refuses_gaps

    @property
    def refuses_gaps(self) -> str:
        """Why decode does not give it; "" if it does."""
        return self._native.refuses_gaps

    def _room_for_gaps(self, wanted: bool, shape: tuple[int, ...],
                       given: npt.NDArray[np.float64] | None = None) -> npt.NDArray[np.float64]:
        """Rows of gaps, the caller's if there are any, or nothing. A decode fills them first."""
        if wanted and not self.gives_gaps:
            raise NotImplementedError(f"confidence: {self.refuses_gaps}")
        return result_array(given, "gaps", (*shape, self._observables if wanted else 0), np.float64)

    def _readout_rows(self, soft: npt.NDArray[Any] | None, soft_kind: str | None, leakage: npt.ArrayLike | None,
                      shots: int | None) -> tuple[Bits, int, Bits]:
        for what, given in (("soft", soft), ("leakage", leakage)):
            if given is not None and self._readout is None:
                raise ValueError(f"{what}: the decoder has no table of a readout")
        values, kind = soft_bytes(soft, shots, self.num_measurements, soft_kind)
        return values, kind, leakage_bytes(leakage, shots, self.num_flags)

    def _known(self, flags: Flags | None, soft: npt.NDArray[Any] | None, soft_kind: str | None,
               leakage: npt.ArrayLike | None) -> npt.NDArray[np.uint8]:
        """What one shot knows, as records of an array of FLAG."""
        records = self._flags(flags)
        values, kind, of_flags = self._readout_rows(soft, soft_kind, leakage, None)
        if self._readout is None:
            return records
        return np.frombuffer(self._native.with_readout(records, values, kind, of_flags), dtype=np.uint8)

    @overload
    def decode(self, events: Sequence[int] | npt.NDArray[Any], *, return_weight: Literal[False] = False,
               return_late: Literal[False] = False, confidence: Literal[False] = False,
               deadline_us: float | None = None, flags: Flags | None = None,
               soft: npt.NDArray[Any] | None = None, soft_kind: str | None = None,
               leakage: npt.ArrayLike | None = None) -> Bits: ...

    @overload
    def decode(self, events: Sequence[int] | npt.NDArray[Any], *, return_weight: Literal[True],
               return_late: Literal[False] = False, confidence: Literal[False] = False,
               deadline_us: float | None = None, flags: Flags | None = None,
               soft: npt.NDArray[Any] | None = None, soft_kind: str | None = None,
               leakage: npt.ArrayLike | None = None) -> tuple[Bits, float]: ...

    @overload
    def decode(self, events: Sequence[int] | npt.NDArray[Any], *, return_weight: Literal[False] = False,
               return_late: Literal[True], confidence: Literal[False] = False, deadline_us: float | None = None,
               flags: Flags | None = None, soft: npt.NDArray[Any] | None = None, soft_kind: str | None = None,
               leakage: npt.ArrayLike | None = None) -> tuple[Bits, bool]: ...

    @overload
    def decode(self, events: Sequence[int] | npt.NDArray[Any], *, return_weight: Literal[True],
               return_late: Literal[True], confidence: Literal[False] = False, deadline_us: float | None = None,
               flags: Flags | None = None, soft: npt.NDArray[Any] | None = None, soft_kind: str | None = None,
               leakage: npt.ArrayLike | None = None) -> tuple[Bits, float, bool]: ...

    @overload
    def decode(self, events: Sequence[int] | npt.NDArray[Any], *, return_weight: Literal[False] = False,
               return_late: Literal[False] = False, confidence: Literal[True], deadline_us: float | None = None,
               flags: Flags | None = None, soft: npt.NDArray[Any] | None = None, soft_kind: str | None = None,
               leakage: npt.ArrayLike | None = None) -> tuple[Bits, npt.NDArray[np.float64]]: ...

    @overload
    def decode(self, events: Sequence[int] | npt.NDArray[Any], *, return_weight: bool = False,
               return_late: bool = False, confidence: bool = False, deadline_us: float | None = None,
               flags: Flags | None = None, soft: npt.NDArray[Any] | None = None, soft_kind: str | None = None,
               leakage: npt.ArrayLike | None = None) -> Any: ...

    def decode(self, events: Sequence[int] | npt.NDArray[Any], *, return_weight: bool = False,
               return_late: bool = False, confidence: bool = False, deadline_us: float | None = None,
               flags: Flags | None = None, soft: npt.NDArray[Any] | None = None, soft_kind: str | None = None,
               leakage: npt.ArrayLike | None = None) -> Any:
        """Decodes one shot.

        events: the indices of the detectors that fired, each once, in any order; np.flatnonzero(bits) of bits.
        Returns uint8[num_observables], 1 for each flipped observable; with return_weight also the weight of the
        correction; NaN of decoders that give none. With return_late then whether the answer came after its deadline,
        as each one of a decoder that ignores deadlines may. With confidence last float64[num_observables]: the gap of
        each observable, by which the lightest correction with its other value is heavier; inf if there is none, NaN if
        it is not known. Of decoders with the setting confidence=1; of others NotImplementedError. Matching then gives
        no weight (NaN) if a part of the model flips no observable.
        deadline_us: microseconds from now, above 0 and at most 1e9. A decoder with obeys_deadline that needs longer
            raises DecodeError with the status 9, and with `best` if there is a solution so far.
        flags: errors that have another probability in this shot, each at most once: pairs of the number of an error
            instruction of dem.flattened() and its probability, or an array with the type arguments.FLAG. Of decoders
            with takes_flags; of others NotImplementedError.
        soft: with a table of the readout: a value of each measurement, float32 or uint8 [num_measurements]; with
            soft_kind="u4" uint8 with two values in a byte, the first in its low half. uint8 are levels of the table,
            or numbers in the unit of its means: a table in another unit, as volts, takes only float32. They are not
            copied. `events` are those of the hard bits.
        leakage: with a table of the readout: 0, 1 or 2 of each flag, whole numbers [num_flags].
        Raises DecodeError, and ValueError for a value that is not finite.
        """
        if (deadline_us is None and flags is None and self._readout is None and soft is None and leakage is None
                and not (return_weight or return_late or confidence)
                and type(events) is np.ndarray and events.dtype is _INT64 and events.ndim == 1):
            answer = np.zeros(self._observables, np.uint8)
            failure: Any = self._native.decode_plain(events, answer)
            if failure is None:
                return answer
            if failure:
                raise DecodeError(failure[0], best=answer if failure[1] else None, fault=failure[2])
        if deadline_us is not None and not (isinstance(deadline_us, (int, float)) and 0 < deadline_us <= 1e9):
            raise ValueError(f"deadline_us is {deadline_us!r:.60}, accepted: microseconds, above 0 and at most 1e9")
        indices = to_native(events, self.num_detectors, "indices", "events")
        gaps = self._room_for_gaps(confidence, ())
        packed = np.zeros(self._native.observable_bytes, dtype=np.uint8)
        status, weight, has_solution, is_late, fault = self._native.decode(
            indices, packed, return_weight, deadline_us or 0, self._known(flags, soft, soft_kind, leakage),
            gaps)
        observables = np.unpackbits(packed, count=self.num_observables, bitorder="little")
        if status:
            raise DecodeError(status, best=observables if has_solution else None, fault=fault)
        found = (observables, *[weight][:return_weight], *[is_late][:return_late], *[gaps][:confidence])
        return found if len(found) > 1 else observables

    def decode_to_edges_array(self, events: Sequence[int] | npt.NDArray[Any], *,
                              flags: Flags | None = None) -> npt.NDArray[np.int64]:
        """The edges of the correction: int64[edges, 2], two detectors each, -1 for the boundary. With heralds they are
        detectors of the shot.

        flags: as of decode. Only of decoders that give edges ("pymatching:edges=1"); of others NotImplementedError.
        Raises DecodeError.
        """
        if not self._native.gives_edges:
            raise NotImplementedError(f"the decoder {self._name} gives no edges; 'pymatching:edges=1' does")
        indices = to_native(events, self.num_detectors, "indices", "events")
        edges = np.empty((max(1, self.num_detectors), 2), dtype=np.int64)
        status, count, fault = self._native.decode_edges(indices, edges, self._known(flags, None, None, None))
        if status:
            raise DecodeError(status, fault=fault)
        return edges[:count].copy()

    def decode_to_errors_array(self, events: Sequence[int] | npt.NDArray[Any], *,
                               flags: Flags | None = None) -> npt.NDArray[np.uint64]:
        """The errors of the correction: uint64[errors], ascending, numbers of error instructions of dem.flattened().

        flags: as of decode. Only of decoders that give errors (bp-osd, relay-bp); of others NotImplementedError.
        Raises DecodeError.
        """
        if not self._native.num_errors:
            raise NotImplementedError(f"the decoder {self._name} gives no errors; 'relay-bp' does")
        indices = to_native(events, self.num_detectors, "indices", "events")
        errors = np.empty(self._native.num_errors, dtype=np.uint64)
        status, count, fault = self._native.decode_errors(indices, errors, self._known(flags, None, None, None))
        if status:
            raise DecodeError(status, fault=fault)
        return errors[:count].copy()

    def _error_numbers(self) -> tuple[dict[tuple[int, int], int], int] | None:
        """None of a decoder that gives errors itself. Of one that gives edges: errors_of_edges."""
        if self._native.num_errors:
            return None
        if not self._native.gives_edges:
            raise NotImplementedError(f"the decoder {self._name} knows no errors of its correction; 'bp-osd', "
                                      "'relay-bp' and 'pymatching:edges=1' do")
        if self.name.startswith("heralds+"):  # edges have detectors of the shot, and the model has others
            raise NotImplementedError(f"the decoder {self._name} knows no errors of its correction with heralds; "
                                      "'bp-osd' and 'relay-bp' do")
        if self._edges is None:
            try:
                self._edges = errors_of_edges(self._dem)
            except ValueError as error:
                raise NotImplementedError(f"the errors of edges: {error}") from None
        return self._edges

    def decode_to_vector(self, events: Sequence[int] | npt.NDArray[Any], *, flags: Flags | None = None) -> Bits:
        """The errors of the correction of one shot, as a vector: uint8[errors], of from_matrix [columns].

        events: as of decode: indices, np.flatnonzero(syndrome). The vector has this syndrome:
            check_matrix @ vector % 2. Errors are counted as in decode_to_errors_array.
        flags: as of decode. Of decoders that give errors (bp-osd, relay-bp), or edges ("pymatching:edges=1") of a model
            without loops and heralds whose edges are errors, each of one; of others NotImplementedError.
        Raises DecodeError.
        """
        numbers = self._error_numbers()
        if numbers is None:
            vector = np.zeros(self._native.num_errors, np.uint8)
            vector[self.decode_to_errors_array(events, flags=flags)] = 1
            return vector
        of_edge, count = numbers
        vector = np.zeros(count, np.uint8)
        for first, second in self.decode_to_edges_array(events, flags=flags).tolist():
            edge = (min(first, second), max(first, second))
            if edge not in of_edge:
                raise NotImplementedError(f"the edge {edge} of the correction is not one error of the model; 'bp-osd' "
                                          "gives errors of such models")
            vector[of_edge[edge]] ^= 1
        return vector

    def decode_batch_to_vectors(self, shots: npt.ArrayLike, *, bit_packed_shots: bool = False, threads: int = 1,
                                statuses: npt.NDArray[np.int32] | None = None) -> Bits:
        """The same for many shots: uint8 [shots, errors].

        shots, threads, statuses: as of decode_batch, but without statuses a shot that has no solution at its deadline
        raises, too; with them it has the vector 0. Decoders that give edges use one thread.
        """
        numbers = self._error_numbers()
        form: Form = "rows of packed bits" if bit_packed_shots else "rows of bits"
        packed = to_native(shots, self.num_detectors, form, "shots")
        if numbers is None:
            vectors = np.zeros((len(packed), self._native.num_errors), np.uint8)
            self._decode_rows(packed, threads=threads, statuses=statuses, vectors=vectors)
            return vectors
        whole_number(threads, "threads", 0, MAX_THREADS)
        rows = unpacked_rows(packed, self.num_detectors)
        found = result_array(statuses, "statuses", len(rows), np.int32)
        vectors = np.zeros((len(rows), numbers[1]), np.uint8)
        for shot, row in enumerate(rows):
            found[shot] = 0
            try:
                vectors[shot] = self.decode_to_vector(np.flatnonzero(row))
            except DecodeError as error:
                if statuses is None:
                    raise DecodeError(error.status, shot, fault=error.fault) from None
                found[shot] = error.status
        return vectors

    def decode_batch(self, shots: npt.ArrayLike, *, bit_packed_shots: bool = False,
                     bit_packed_predictions: bool = False, threads: int = 1,
                     statuses: npt.NDArray[np.int32] | None = None,
                     solved: npt.NDArray[np.bool_] | None = None,
                     late: npt.NDArray[np.bool_] | None = None,
                     weights: npt.NDArray[np.float64] | None = None,
                     gaps: npt.NDArray[np.float64] | None = None,
                     flags: Sequence[Flags | None] | None = None, soft: npt.NDArray[Any] | None = None,
                     soft_kind: str | None = None, leakage: npt.ArrayLike | None = None) -> Bits:
        """Decodes many shots.

        shots: bool or 0/1 [shots, num_detectors]; with bit_packed_shots uint8 [shots, (num_detectors + 7) // 8].
        threads: 0 to 1024; each has a decoder of its own and decodes a part of the shots; 0: one for each core.
        statuses: writeable int32 [shots] that gets the status of each shot. Without it the first shot that could not be
            decoded raises DecodeError; with it such a shot has the answer 0. A missed deadline raises nothing: the
            answer is the best solution so far, or 0 without one, and `deadlines` counts it.
        solved: writeable bool [shots] that gets whether the answer of each shot is a solution, late ones too.
        late: writeable bool [shots] that gets whether each shot ended after its deadline, and not with the status 9.
        weights: writeable float64 [shots] that gets the weight of each correction, NaN without one, as of decode.
        gaps: writeable float64 [shots, num_observables] that gets the gap of each observable, as of decode.
        flags: for each shot what decode takes, or None.
        soft, leakage: rows of what decode takes. A shot with a value that is not finite has the status 12.
        Returns uint8 [shots, num_observables], with bit_packed_predictions [shots, (num_observables + 7) // 8].
        """
        form: Form = "rows of packed bits" if bit_packed_shots else "rows of bits"
        events = to_native(shots, self.num_detectors, form, "shots")
        out = self._decode_rows(events, threads=threads, statuses=statuses, solved=solved, late=late, weights=weights,
                                gaps=gaps, flags=flags,
                                readout=self._readout_rows(soft, soft_kind, leakage, len(events)))
        return out if bit_packed_predictions else unpacked_rows(out, self.num_observables)

    def _decode_rows(self, events: Bits, *, threads: int, statuses: npt.NDArray[np.int32] | None,
                     solved: npt.NDArray[np.bool_] | None = None, late: npt.NDArray[np.bool_] | None = None,
                     weights: npt.NDArray[np.float64] | None = None, vectors: Bits | None = None,
                     gaps: npt.NDArray[np.float64] | None = None,
                     flags: Sequence[Flags | None] | None = None,
                     readout: tuple[Bits, int, Bits] | None = None) -> Bits:
        """decode_batch of packed rows, which are checked. `vectors`: zeros, or None."""
        threads = whole_number(threads, "threads", 0, MAX_THREADS)
        found = result_array(statuses, "statuses", len(events), np.int32)
        has_solution = result_array(solved, "solved", len(events), np.bool_)
        is_late = result_array(late, "late", len(events), np.bool_)
        weighed = np.empty(0) if weights is None else result_array(weights, "weights", len(events), np.float64)
        room = self._room_for_gaps(gaps is not None, (len(events),), gaps)
        corrections = np.empty((0, 0), np.uint8) if vectors is None else vectors
        of_shots = [] if flags is None else [self._flags(given, f"flags[{k}]") for k, given in enumerate(flags)]
        if flags is not None and len(of_shots) != len(events):
            raise ValueError(f"flags has {len(of_shots)} entries, accepted: one for each of the {len(events)} shots")
        all_flags = np.concatenate([np.empty(0, dtype=np.uint8), *of_shots])
        ends = np.cumsum([one.size // FLAG.itemsize for one in of_shots], dtype=np.uint64)
        out = np.zeros((len(events), self._native.observable_bytes), dtype=np.uint8)
        soft, kind, leakage = readout or self._readout_rows(None, None, None, len(events))
        faulty, fault = self._native.decode_batch(events, out, found, has_solution.view(np.uint8),
                                                  is_late.view(np.uint8), weighed, corrections,
                                                  threads or len(os.sched_getaffinity(0)), all_flags, ends, soft, kind,
                                                  leakage, room)
        is_answered = (found == 0) | (found == DEADLINE)
        if vectors is not None:  # 0 would be a correction that has no syndrome
            is_answered &= has_solution
        failed = np.flatnonzero(~is_answered)
        if statuses is None and failed.size:
            shot = int(failed[0])
            raise DecodeError(int(found[shot]), shot, fault=fault if shot == faulty else "")
        return out
