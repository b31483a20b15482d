# SPDX-License-Identifier: Apache-2.0
"""The model and the table of the readout of a circuit: docs/decoders/soft.md.

    python -m cudaq_realtime.readout circuit.stim --dem model.dem --readout readout.txt --gaussian 1 -1 0.4
"""
from __future__ import annotations

import dataclasses
import functools
import math
import re
import sys
import zlib
from typing import Iterable, Iterator, NamedTuple, Sequence, Union

import numpy as np
import numpy.typing as npt
import stim

from ._circuits import Symptom, circuit_parser, measurements_of, symptom_of, write_model
from ._folding import Part, coordinates_of_rounds, folded

UNLIKELY = 1e-9  # the probability in the model of errors that only a flag or a misread measurement causes
_LEAKAGE = re.compile(r"leakage (\d+)(?: ([012]))?")  # the tag of an instruction: its flag, and the value: 2


class _Gaussian(NamedTuple):
    zero: float
    one: float
    sigma: float
    prior: float = 0.5


class Gaussian(_Gaussian):
    """Values of a measurement whose result is 0 have the mean `zero`, those of 1 `one`; `sigma` is the standard
    deviation of both, and `prior` the share of 1 among the results. Raises ValueError for numbers that calibrate
    nothing."""
    __slots__ = ()

    def __new__(cls, zero: float, one: float, sigma: float, prior: float = 0.5) -> Gaussian:
        of = super().__new__(cls, zero, one, sigma, prior)
        if not (all(map(math.isfinite, of)) and zero != one and sigma > 0 and 0 < prior < 1):
            raise ValueError(f"{of} is no calibration, accepted: two means, a sigma above 0, and a prior between 0 and "
                             "1")
        return of

    # _replace calls it, and a tuple's would check nothing. The ignored error: a tuple's makes any type.
    @classmethod
    def _make(cls, iterable: Iterable[float]) -> Gaussian:  # type: ignore[override]
        return cls(*iterable)

    def log_ratios(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """log(P(0 | value) / P(1 | value)): the hard bit is 1 where it is below 0."""
        given = np.asarray(values, dtype=np.float64)
        slope = (self.zero - self.one) / self.sigma / self.sigma
        return slope * (given - (self.zero / 2 + self.one / 2)) + math.log((1 - self.prior) / self.prior)

    @property
    def misread(self) -> float:
        """The average probability that a hard bit is wrong."""
        sign = 1 if self.zero < self.one else -1
        scale = sign / (self.sigma * math.sqrt(2))
        of_zero, of_one = (math.erfc(scale * side) / 2 for side in (self._threshold() - self.zero,
                                                                    self.one - self._threshold()))
        return (1 - self.prior) * of_zero + self.prior * of_one

    def _threshold(self) -> float:
        offset = math.log((1 - self.prior) / self.prior)
        return self.zero / 2 + self.one / 2 - offset * self.sigma * self.sigma / (self.zero - self.one)


def _between(low: float, high: float) -> float:
    """The share of a Gaussian between two ends, in units of sigma times the root of 2, from the nearer tail."""
    return (math.erfc(low) - math.erfc(high) if low > 0 else math.erfc(-high) - math.erfc(-low)) / 2


@dataclasses.dataclass(frozen=True)
class Levels:
    """A Gaussian whose values are rounded to one of 16 or 256 levels. Level k is between the edges k - 1 and k; the
    first and the last level have no end. One of the edges is where the hard bit changes, so each level has one hard
    bit, and none says nothing.

    reach: how many standard deviations the edges go beyond the two means."""
    gaussian: Gaussian
    levels: int
    reach: float = 2.0

    def __post_init__(self) -> None:
        if self.levels not in (16, 256):
            raise ValueError(f"there are {self.levels} levels, accepted: 16 (two values in a byte) or 256")

    @functools.cached_property
    def edges(self) -> npt.NDArray[np.float64]:
        of, middle = self.gaussian, self.gaussian._threshold()
        half = max(abs(middle - of.zero), abs(middle - of.one)) + self.reach * of.sigma
        steps = np.arange(1 - self.levels // 2, self.levels // 2) / (self.levels // 2)
        return np.asarray(middle + half * steps)

    @functools.cached_property
    def ratios(self) -> npt.NDArray[np.float64]:
        """Of each level log(P(0) / P(1))."""
        of, edges = self.gaussian, self.edges
        ends, scale = np.array([-math.inf, *edges, math.inf]), of.sigma * math.sqrt(2)
        zero, one = (np.array([_between(a, b) for a, b in zip((ends - mean) / scale, (ends[1:] - mean) / scale)])
                     for mean in (of.zero, of.one))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.log(zero * (1 - of.prior)) - np.log(one * of.prior)
        inner = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
        return np.where(np.isfinite(ratios), ratios, of.log_ratios(inner))  # a share is too small for a number

    def of(self, values: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """The levels of values: uint8 of the same shape."""
        return np.searchsorted(self.edges, values).astype(np.uint8)

    def log_ratios(self, levels: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """As of the Gaussian, of levels."""
        return np.asarray(self.ratios[np.asarray(levels)])


def pack_u4(levels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Rows of levels below 16, two in a byte: the first in its low half."""
    even = levels[..., 0::2].copy()
    even[..., :levels.shape[-1] // 2] |= levels[..., 1::2] << 4
    return even


Calibration = Union[Gaussian, Levels]


class ReadoutModel(NamedTuple):
    """dem: the text of a model; readout: the text of a table for it; num_measurements, num_flags: values of a shot;
    unseen: measurements that no detector sees, whose values are not used."""
    dem: str
    readout: str
    num_measurements: int
    num_flags: int
    unseen: int


def is_soft(name: str) -> bool:
    """Whether it is a measurement that has a soft value."""
    return bool(stim.gate_data(name).produces_measurements) and not name.startswith("HERALDED") and name != "MPAD"


class _Circuit:
    def __init__(self, circuit: stim.Circuit):
        self.flat = circuit.flattened()
        self.flags: set[int] = set()
        self.soft: set[int] = set()  # measurements with a soft value
        self.flips: dict[int, set[stim.DemTarget]] = {}  # of each measurement
        detectors = records = 0
        for one in self.flat:
            targets = one.targets_copy()
            of_tag = self._flag_of(one)
            if of_tag:
                self.flags.add(of_tag[0])
            if one.name in ("DETECTOR", "OBSERVABLE_INCLUDE"):
                what = (stim.target_relative_detector_id(detectors) if one.name == "DETECTOR" else
                        stim.target_logical_observable_id(int(one.gate_args_copy()[0])))
                detectors += one.name == "DETECTOR"
                for target in targets:
                    if target.is_measurement_record_target and records + target.value < 0:
                        raise ValueError(f"{what} has rec[{target.value}], and the measurements before it are "
                                         f"{records}")
                    if target.is_measurement_record_target:
                        self.flips[records + target.value] ^= {what}
            elif any(target.is_measurement_record_target for target in targets):
                raise ValueError(f"{one.name} depends on a measurement, so a wrong hard bit flips more than detectors; "
                                 "accepted: circuit.with_inlined_feedback()")
            for record in range(records, records + measurements_of(one)):
                self.flips[record] = set()
                if is_soft(one.name):
                    self.soft.add(record)
            records += measurements_of(one)
        self.num_measurements = records

    @staticmethod
    def _flag_of(one: stim.CircuitInstruction) -> tuple[int, int] | None:
        found = _LEAKAGE.fullmatch(getattr(one, "tag", ""))
        if not found:
            return None
        data = stim.gate_data(one.name)
        if not data.is_noisy_gate or data.produces_measurements:
            raise ValueError(f"{one.name} has the tag {one.tag!r}, accepted: an error such as DEPOLARIZE1")
        return int(found[1]), int(found[2] or 2)

    def with_noise(self, *, misreads: bool = True, alone: tuple[int, int] | None = None) -> stim.Circuit:
        """All noise, with that of flags UNLIKELY; misreads: with errors of measurements. alone: only the noise of this
        flag and value."""
        made = stim.Circuit()
        for one in self.flat:
            flag, args = self._flag_of(one), one.gate_args_copy()
            if flag is not None and flag == alone:
                made.append(one.name, one.targets_copy(), args)
            elif flag is not None and alone is None and sum(args):
                made.append(one.name, one.targets_copy(), [arg * UNLIKELY / sum(args) for arg in args])
            elif flag is not None:
                continue
            elif alone is not None:
                quiet = stim.Circuit()
                quiet.append(one)
                made += quiet.without_noise()
            elif not misreads and is_soft(one.name):
                made.append(one.name, one.targets_copy(), [])
            else:
                made.append(one)
        return made

    def flag_values(self) -> Iterator[tuple[int, int]]:
        return iter(sorted({found for found in map(self._flag_of, self.flat) if found}))


def quiet_circuit(circuit: stim.Circuit) -> stim.Circuit:
    """The circuit whose measurements have no errors: its results are those that the values are spread around."""
    return _Circuit(circuit).with_noise(misreads=False)


def _either(p: float, q: float) -> float:
    return p * (1 - q) + q * (1 - p)


def _errors(model: stim.DetectorErrorModel) -> dict[Symptom, float]:
    """Of each symptom its probability."""
    found: dict[Symptom, float] = {}
    for part in model.flattened():
        if part.type == "error":
            symptom, [p] = symptom_of(part.targets_copy()), part.args_copy()
            found[symptom] = _either(found.get(symptom, 0.0), p)
    return found


def readout_model(circuit: stim.Circuit, calibration: Calibration | Sequence[Calibration] | None = None, *,
                  decompose_errors: bool = True, approximate_disjoint_errors: bool = False,
                  fold_loops: bool = False) -> ReadoutModel:
    """The model of a circuit, and which of its errors a readout means.

    circuit: no gate may depend on a measurement. The argument of a measurement (M(0.01)) is its average probability of
        a wrong hard bit: the soft values replace it, so they say nothing about other errors before it. Noise with the
        tag `leakage F` (DEPOLARIZE1[leakage 3](0.75) 5) is there only in shots whose flag F is 2; with `leakage F V`
        only if it is V, 0 or 1. Flags count from 0.
    calibration: of all measurements, or one for each of them; None: there are no soft values.
    decompose_errors, approximate_disjoint_errors: as of Circuit.detector_error_model. The second one is always True for
        a circuit with flags.
    fold_loops: for streams. The rounds of the circuit become a loop. Values and flags keep their numbers: those of a
        repetition must be as many higher than those of the one before, in each repetition.
    Raises ValueError for a circuit that has no such table.
    """
    heralds = sorted({one.name for one in circuit.flattened() if one.name.startswith("HERALDED_")})
    if heralds and not approximate_disjoint_errors:
        raise ValueError(f"the circuit has heralds ({', '.join(heralds)}), accepted: none; heralded_model(circuit) "
                         "takes them, without soft values. approximate_disjoint_errors=True takes them as detectors "
                         "like the others, which is much less accurate")
    read = _Circuit(circuit)
    if calibration is None and not read.flags:
        raise ValueError("the circuit has no noise with the tag leakage, and there is no calibration")
    each: list[Calibration] = []
    if calibration is not None:
        each = ([calibration] * read.num_measurements if isinstance(calibration, (Gaussian, Levels))
                else list(calibration))
        if len(each) != read.num_measurements:
            raise ValueError(f"there are {len(each)} calibrations, accepted: one, or one for each of the "
                             f"{read.num_measurements} measurements")

    def model_of(made: stim.Circuit, decompose: bool, approximate: bool = False) -> stim.DetectorErrorModel:
        return made.detector_error_model(decompose_errors=decompose,
                                         approximate_disjoint_errors=approximate or approximate_disjoint_errors)

    dem = model_of(read.with_noise(), decompose_errors, bool(read.flags)).flattened()
    rest = _errors(model_of(read.with_noise(misreads=False), False, bool(read.flags)))

    readings: dict[Symptom, list[int]] = {}
    unseen = 0
    for measurement in sorted(read.soft) if each else ():
        flips = frozenset(read.flips[measurement])
        if not any(one.is_relative_detector_id() for one in flips):
            if flips:
                raise ValueError(f"measurement {measurement} flips {sorted(map(str, flips))} and no detector")
            unseen += 1
            continue
        readings.setdefault(flips, []).append(measurement)
    in_model = {symptom_of(part.targets_copy()) for part in dem if part.type == "error"}
    for flips in readings:
        if flips not in in_model:  # the circuit has no error there
            if decompose_errors and sum(one.is_relative_detector_id() for one in flips) > 2:
                raise ValueError(f"a misread measurement flips {sorted(map(str, flips))}, and the circuit has no such "
                                 "error that could be decomposed; accepted: measurements with an argument, M(0.01)")
            dem.append("error", [UNLIKELY], sorted(flips, key=lambda one: (one.is_logical_observable_id(), one.val)))

    parts = [Part(part.args_copy()[0], part.targets_copy()) for part in dem if part.type == "error"]
    text, errors = str(dem), [(number, part, part) for number, part in enumerate(parts)]
    if fold_loops:
        text, errors = folded(coordinates_of_rounds(dem), parts)
        # Of errors that are decomposed in several ways the likeliest one, which is the same in each repetition.
        errors.sort(key=lambda one: -one[2].probability)
    first: dict[Symptom, tuple[int, Symptom, float]] = {}  # of each symptom its first error, and what stands for it
    others: dict[Symptom, float] = {}  # of its errors that are decomposed in another way
    for number, part, standing in errors:
        symptom = symptom_of(part.targets)
        if symptom in first:
            others[symptom] = _either(others.get(symptom, 0.0), standing.probability)
        else:
            first[symptom] = number, symptom_of(standing.targets), standing.probability

    def rest_of(flips: Symptom) -> float:
        """Of its first error, without misread measurements."""
        flips = first[flips][1]
        other = others.get(flips, 0.0)
        return min(1.0, max(0.0, (rest.get(flips, 0.0) - other) / (1 - 2 * other)))

    lines: list[str] = []
    numbers: dict[Calibration, int] = {}
    for one in each:
        if not isinstance(one, (Gaussian, Levels)):
            raise ValueError(f"a calibration is {one!r:.60}, accepted: a Gaussian, or Levels of one")
        if one not in numbers:
            number = numbers[one] = len(numbers)
            values = tuple(one) if isinstance(one, Gaussian) else one.ratios.tolist()
            lines.append(f"{'gaussian' if isinstance(one, Gaussian) else 'levels'} {number} "
                         + " ".join(repr(float(value)) for value in values))
    for flips, measurements in readings.items():
        pairs = " ".join(f"{measurement} {numbers[each[measurement]]}" for measurement in measurements)
        lines.append(f"misread {first[flips][0]} {rest_of(flips)!r} {pairs}")
    for flag, value in read.flag_values():
        line = f"flag {flag} {value}"
        for flips, p in _errors(model_of(read.with_noise(alone=(flag, value)), False, True)).items():
            number, _, base = first[flips]
            line += f" {number} {_either(p, rest_of(flips) if flips in readings else base)!r}"
        lines.append(line)
    num_flags = max(read.flags) + 1 if read.flags else 0
    num_measurements = read.num_measurements if each else 0
    head = ["cudaq-realtime-readout 1", f"model {zlib.crc32(text.encode()):08x}"]
    counts = (("measurements", num_measurements), ("flags", num_flags))
    head += [f"{what} {number}" for what, number in counts if number]
    return ReadoutModel(text, "\n".join([*head, *lines, ""]), num_measurements, num_flags, unseen)


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0; 2: the circuit has no such table, or a file cannot be used."""
    parser = circuit_parser("cudaq_realtime.readout", "Writes the model and the readout table of a Stim circuit.",
                            "a file; noise with the tag leakage F is there if flag F is 2", "readout")
    parser.add_argument("--gaussian", nargs="+", type=float, metavar="NUMBER",
                        help="of soft values: the mean of 0, the mean of 1, their standard deviation, and the share of "
                             "1 among the results (0.5); without it there are no soft values")
    parser.add_argument("--levels", type=int, choices=(16, 256), help="the values are levels of this Gaussian")
    parser.add_argument("--fold_loops", action="store_true", help="for streams: the rounds become a loop")
    given = parser.parse_args(arguments)

    def make(circuit: stim.Circuit) -> ReadoutModel:
        calibration: Calibration | None = None
        if given.gaussian is not None:
            if len(given.gaussian) not in (3, 4):
                raise ValueError(f"--gaussian has {len(given.gaussian)} numbers, accepted: 3 or 4")
            calibration = Gaussian(*given.gaussian)
            if given.levels:
                calibration = Levels(calibration, given.levels)
        elif given.levels:
            raise ValueError("--levels needs --gaussian")
        return readout_model(circuit, calibration, decompose_errors=not given.whole_errors,
                             approximate_disjoint_errors=given.approximate_disjoint_errors,
                             fold_loops=given.fold_loops)

    made = write_model(given, "readout", make)
    if made is None:
        return 2
    print(f"{made.num_measurements} soft values of a shot, {made.unseen} of them are in no detector; "
          f"{made.num_flags} flags of leakage")
    return 0


if __name__ == "__main__":
    sys.exit(main())
