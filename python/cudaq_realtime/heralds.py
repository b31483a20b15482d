# SPDX-License-Identifier: Apache-2.0
"""The model and the heralds of a circuit: docs/decoders/heralds.md.

    python -m cudaq_realtime.heralds circuit.stim --dem model.dem --heralds heralds.txt
"""
from __future__ import annotations

import math
import sys
import zlib
from typing import Iterator, NamedTuple

import stim

from ._circuits import Symptom, circuit_parser, measurements_of, symptom_of, write_model
from ._folding import Part, coordinates_of_rounds, fold

HERALDED = ("HERALDED_ERASE", "HERALDED_PAULI_CHANNEL_1")
NOT_FIRED = 1e-9  # the probability of errors in the model whose herald has not fired


class HeraldedModel(NamedTuple):
    """dem: the text of a model without heralds; heralds: the text of a file of heralds for it; num_detectors: of a
    shot, with the heralds; approximated: heralds whose X, Y and Z exclude each other in a way that no independent
    errors have, so that only the probability of each edge is exact; all_detectors: digest_of the circuit's model of all
    detectors, detector_error_model(approximate_disjoint_errors=True)."""
    dem: str
    heralds: str
    num_detectors: int
    approximated: int
    all_detectors: int


def digest_of(dem: stim.DetectorErrorModel) -> int:
    return zlib.crc32(str(dem).encode())


def independent_paulis(x: float, y: float, z: float) -> tuple[tuple[float, float, float], bool]:
    """Probabilities of independent errors X, Y and Z that have the distribution of one error that is X, Y, Z, or none.

    They exist for an erasure, for instance: 1/2 for X, and 1/2 for Z. Where they do not, the second result is False,
    and each of the two edges of the error has its probability, X + Y and Z + Y, as an independent one.
    """
    # The bias of what flips with X or Y, with Y or Z, with X or Z: for independent errors they are the products ab, bc,
    # ac of the biases 1 - 2q of X, Y and Z.
    ab, bc, ac = (0.0 if abs(bias) < 1e-12 else bias for bias in (1 - 2 * (x + y), 1 - 2 * (y + z), 1 - 2 * (x + z)))
    nothing = (ab == 0) + (bc == 0) + (ac == 0)
    found: tuple[float, float, float] | None = None
    if nothing == 0 and ab * bc * ac > 0:
        a = math.sqrt(ab * ac / bc)
        found = max(((sign * a, sign * ab / a, sign * ac / a) for sign in (1, -1)), key=sum)
    elif nothing == 3:
        found = 0, 1, 0
    elif nothing == 2:
        found = (ab, 1, 0) if ab else (0, 1, bc) if bc else (1, 0, ac)
    if found and all(abs(bias) <= 1 + 1e-12 for bias in found):
        a, b, c = (min(1.0, max(0.0, (1 - bias) / 2)) for bias in found)
        return (a, b, c), True
    return (x + y, 0.0, z + y), False


class _Op(NamedTuple):
    """A target of a heralded instruction: its qubit, the probabilities of I, X, Y, Z given that it fires, and the
    detector that is its herald, or None."""
    target: stim.GateTarget
    paulis: tuple[float, float, float, float]
    herald: int | None


class _Circuit:
    """A circuit without loops, and which of its heralded instructions are heralds."""

    def __init__(self, circuit: stim.Circuit):
        self.flat = circuit.flattened()
        self.ops: dict[int, _Op] = {}  # of each record of a heralded instruction
        used: dict[int, list[int]] = {}  # of such a record: its detectors
        alone: set[int] = set()  # detectors with one record
        records = detectors = 0
        for one in self.flat:
            targets = one.targets_copy()
            if one.name in HERALDED:
                for k, target in enumerate(targets):
                    self.ops[records + k] = _Op(target, _paulis_of(one), None)
                    used[records + k] = []
            elif one.name == "DETECTOR":
                of_it = [records + target.value for target in targets]
                for record in of_it:
                    if record in used:
                        used[record].append(detectors)
                if len(of_it) == 1:
                    alone.add(detectors)
                detectors += 1
            elif one.name == "OBSERVABLE_INCLUDE":
                for target in targets:
                    if target.is_measurement_record_target and records + target.value in self.ops:
                        raise ValueError(f"the herald of qubit {self.ops[records + target.value].target.value} is a "
                                         "measurement of an observable; accepted: of a detector of its own")
            records += measurements_of(one)
        self.num_detectors = detectors
        self.unseen = []
        for record, its in used.items():
            where = f"the herald of qubit {self.ops[record].target.value} (measurement {record})"
            if not its:
                self.unseen.append(where)
            elif len(its) > 1:
                raise ValueError(f"{where} is in the detectors {its}; accepted: in one that has nothing else")
            elif its[0] not in alone:
                raise ValueError(f"{where} is in detector {its[0]} with other measurements; accepted: a detector of "
                                 "its own")
            else:
                self.ops[record] = self.ops[record]._replace(herald=its[0])

    def heralded(self) -> Iterator[tuple[int, _Op]]:
        """Of each herald its detector, ascending."""
        return iter(sorted((op.herald, op) for op in self.ops.values() if op.herald is not None))

    def replaced(self, paulis: tuple[float, float, float, float] | None, *, noise: bool,
                 spread: bool = False) -> stim.Circuit:
        """The circuit with another error at each herald: none; or with these probabilities; or, with `spread`, X and
        Z that are not heralded. noise: with all other errors."""
        made = stim.Circuit()
        records = 0
        for one in self.flat:
            if one.name not in HERALDED:
                if noise:
                    made.append(one)
                else:
                    alone = stim.Circuit()
                    alone.append(one)
                    made += alone.without_noise()
                records += measurements_of(one)
                continue
            for target in one.targets_copy():
                if self.ops[records].herald is None and noise:
                    made.append(one.name, [target], one.gate_args_copy())
                elif self.ops[records].herald is None or paulis is None:
                    if spread and self.ops[records].herald is not None:
                        made.append("X_ERROR", [target], 1e-3)
                        made.append("Z_ERROR", [target], 1e-3)
                    made.append("MPAD", [0])
                else:
                    made.append("HERALDED_PAULI_CHANNEL_1", [target], paulis)
                records += 1
        return made

    def symptoms(self, paulis: tuple[float, float, float, float]) -> dict[int, Symptom]:
        """Of each herald what its error flips, besides the herald."""
        heralds = {herald for herald, _ in self.heralded()}
        found: dict[int, Symptom] = {}
        model = self.replaced(paulis, noise=False).detector_error_model(approximate_disjoint_errors=True)
        for error in model.flattened():
            if error.type == "error":
                flipped = frozenset(error.targets_copy())
                fired = [one.val for one in flipped if one.is_relative_detector_id() and one.val in heralds]
                assert len(fired) == 1
                found[fired[0]] = flipped - {stim.target_relative_detector_id(fired[0])}
        return found


def _paulis_of(one: stim.CircuitInstruction) -> tuple[float, float, float, float]:
    if one.name == "HERALDED_ERASE":
        return 0.25, 0.25, 0.25, 0.25
    args = one.gate_args_copy()
    total = math.fsum(args)
    identity, x, y, z = (arg / total for arg in args) if total else (1.0, 0.0, 0.0, 0.0)
    return identity, x, y, z


def _detectors(symptom: Symptom) -> int:
    return sum(one.is_relative_detector_id() for one in symptom)


def heralded_model(circuit: stim.Circuit, *, decompose_errors: bool = True, approximate_disjoint_errors: bool = False,
                   allow_unseen: bool = False, fold_loops: bool = False) -> HeraldedModel:
    """The model of a circuit without its heralds, and the list of them.

    circuit: with HERALDED_ERASE or HERALDED_PAULI_CHANNEL_1. Their measurement must be the only one of a detector; in
        no observable, and no gate may depend on it.
    decompose_errors: as of Circuit.detector_error_model; False for belief propagation.
    approximate_disjoint_errors: the same, for PAULI_CHANNEL_1 and its like.
    allow_unseen: heralded instructions whose measurement is in no detector are errors as all others, with their average
        probability.
    fold_loops: for streams. The rounds of the circuit become a loop, and its heralds stay detectors of the model, in
        the round of the detector after them if they have no coordinates.
    Raises ValueError for a circuit that has no such list.
    """
    read = _Circuit(circuit)
    if read.unseen and not allow_unseen:
        raise ValueError(f"{read.unseen[0]} is in no detector, and {len(read.unseen)} of {len(read.ops)} are not: a "
                         "decoder cannot see them; allow_unseen=True takes their errors with the average probability")
    flips_of_none, flips_of_x, flips_of_z = (read.symptoms(paulis) for paulis in (
        (0.25, 0, 0, 0), (0, 0.25, 0, 0), (0, 0, 0, 0.25)))
    for herald, flips in flips_of_none.items():
        if flips:
            raise ValueError(f"the herald in detector {herald} flips {sorted(map(str, flips))} besides, without an "
                             "error of its qubit: a gate depends on its measurement")

    heralds = dict(read.heralded())
    number_of: dict[int, int] = {}  # of each detector in the model
    for detector in range(read.num_detectors):
        if fold_loops or detector not in heralds:
            number_of[detector] = len(number_of)

    def renumbered(targets: list[stim.DemTarget]) -> list[stim.DemTarget]:
        return [stim.target_relative_detector_id(number_of[one.val]) if one.is_relative_detector_id() else one
                for one in targets]

    without = read.replaced(None, noise=True).detector_error_model(
        decompose_errors=decompose_errors,
        approximate_disjoint_errors=approximate_disjoint_errors or bool(read.unseen)).flattened()
    dem = stim.DetectorErrorModel()
    for part in without:
        if part.type == "error":
            dem.append("error", part.args_copy(), renumbered(part.targets_copy()))
        elif part.type != "detector" or part.targets_copy()[0].val in number_of:
            dem.append(part.type, part.args_copy(), renumbered(part.targets_copy()))
    if number_of:  # the last one may be in no error
        dem.append("detector", [], [stim.target_relative_detector_id(len(number_of) - 1)])

    parts_of: dict[Symptom, list[stim.DemTarget]] = {}
    if decompose_errors and any(_detectors(flips) > 2 for flips in [*flips_of_x.values(), *flips_of_z.values()]):
        spread = read.replaced(None, noise=True, spread=True).detector_error_model(
            decompose_errors=True, approximate_disjoint_errors=approximate_disjoint_errors or bool(read.unseen))
        for part in spread.flattened():
            if part.type == "error":
                parts_of.setdefault(symptom_of(part.targets_copy()), part.targets_copy())

    def targets_of(flips: Symptom) -> list[stim.DemTarget]:
        if decompose_errors and _detectors(flips) > 2:
            return parts_of[flips]
        return sorted(flips, key=lambda one: (one.is_logical_observable_id(), one.val))

    parts = [Part(part.args_copy()[0], part.targets_copy()) for part in dem if part.type == "error"]
    lines = []
    approximated = 0
    errors = len(parts)
    for herald, op in heralds.items():
        (x, y, z), is_exact = independent_paulis(*op.paulis[1:])
        approximated += not is_exact
        of_x, of_z = flips_of_x.get(herald, frozenset()), flips_of_z.get(herald, frozenset())
        of_y = [*targets_of(of_x), stim.target_separator(), *targets_of(of_z)]
        if not decompose_errors or not of_x or not of_z:
            of_y = targets_of(of_x ^ of_z)
        line = f"herald {herald}"
        for probability, flips, targets in ((x, of_x, targets_of(of_x)), (y, of_x ^ of_z, of_y),
                                            (z, of_z, targets_of(of_z))):
            if probability == 0 or not flips:
                continue
            if not _detectors(flips):
                raise ValueError(f"an error of the herald in detector {herald} flips {sorted(map(str, flips))} and no "
                                 "detector")
            dem.append("error", [NOT_FIRED], renumbered(targets))
            parts.append(Part(NOT_FIRED, renumbered(targets), herald, probability))
            line += f" {errors} {probability!r}"
            errors += 1
        lines.append(line + "\n")
    text = str(dem)
    if fold_loops:
        text, folded_lines = fold(coordinates_of_rounds(dem, heralds), parts, heralds)
        lines = [folded_lines]
    head = f"cudaq-realtime-heralds 1\nmodel {zlib.crc32(text.encode()):08x}\ndetectors {read.num_detectors}\n"
    all_detectors = circuit.detector_error_model(approximate_disjoint_errors=True)
    return HeraldedModel(text, head + "".join(lines), read.num_detectors, approximated, digest_of(all_detectors))


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0; 2: the circuit has no heralds that can be listed, or a file cannot be used."""
    parser = circuit_parser("cudaq_realtime.heralds", "Writes the model and the heralds of a Stim circuit.",
                            "a file with HERALDED_ERASE or HERALDED_PAULI_CHANNEL_1", "heralds")
    parser.add_argument("--allow_unseen", action="store_true",
                        help="heralded instructions that are in no detector are errors as all others")
    parser.add_argument("--fold_loops", action="store_true",
                        help="for streams: the rounds become a loop, and the heralds stay detectors of the model")
    given = parser.parse_args(arguments)
    made = write_model(given, "heralds", lambda circuit: heralded_model(
        circuit, decompose_errors=not given.whole_errors,
        approximate_disjoint_errors=given.approximate_disjoint_errors,
        allow_unseen=given.allow_unseen, fold_loops=given.fold_loops))
    if made is None:
        return 2
    heralds = made.heralds.count("\nherald ")
    print(f"{made.num_detectors} detectors, {heralds} of them heralds; {made.approximated} heralds approximated")
    return 0


if __name__ == "__main__":
    sys.exit(main())
