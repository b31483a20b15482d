# SPDX-License-Identifier: Apache-2.0
"""A model without loops becomes one with a loop, for streams. heralds.py and readout.py use it."""
from __future__ import annotations

import math
from typing import Collection, NamedTuple, Sequence

import stim

MAX_ROUNDS = 4  # of a repetition


class Part(NamedTuple):
    """An error; the detector that is its herald, or None, and its probability if that has fired."""
    probability: float
    targets: list[stim.DemTarget]
    herald: int | None = None
    fired: float = 0.0


def _shifted(targets: list[stim.DemTarget], by: int) -> list[stim.DemTarget]:
    return [stim.target_relative_detector_id(one.val - by) if one.is_relative_detector_id() else one for one in targets]


class _Rounds:
    """Detectors and errors by rounds. A round is a value of the last coordinate; an error is of the round of its first
    detector, a heralded one of that of its herald."""

    def __init__(self, coordinates: Sequence[Sequence[float]], parts: Sequence[Part]):
        self.coordinates = [list(one) for one in coordinates]
        for k, one in enumerate(self.coordinates):
            if len(one) != len(self.coordinates[0]):  # one shift_detectors moves the same coordinate of all
                raise ValueError(f"detector {k} has {len(one)} coordinates and detector 0 {len(self.coordinates[0])}: "
                                 "the last one says the round, so all need the same number")
        times = [one[-1] for one in self.coordinates]
        self.begins = [k for k in range(len(times)) if k == 0 or times[k] != times[k - 1]] + [len(times)]
        for k in self.begins[1:-1]:
            if times[k] < times[k - 1]:
                raise ValueError(f"detector {k} has an earlier round than the detector before it: a stream needs the "
                                 "detectors in the order of rounds")
        self.count = len(self.begins) - 1
        round_of = [k for k in range(self.count) for _ in range(self.begins[k], self.begins[k + 1])]
        by_round: list[list[tuple[str, int, Part]]] = [[] for _ in range(self.count)]
        for part in parts:
            detectors = [one.val for one in part.targets if one.is_relative_detector_id()]
            if not detectors:
                raise ValueError(f"an error flips {' '.join(map(str, part.targets))} and no detector")
            of_round = round_of[min(detectors) if part.herald is None else part.herald]
            begin = self.begins[of_round]
            if min(detectors) < begin:
                raise ValueError(f"the herald in detector {part.herald} is in a later round than detector "
                                 f"{min(detectors)}, which its error flips; accepted: the same one, or earlier")
            herald = -1 if part.herald is None else part.herald - begin
            by_round[of_round].append((" ".join(map(str, _shifted(part.targets, begin))), herald, part))
        self.parts = [sorted(one, key=lambda part: part[:2]) for one in by_round]

    def time(self, a_round: int) -> float:
        """Since the first round, whose coordinate may be any number."""
        return self.coordinates[self.begins[a_round]][-1] - self.coordinates[0][-1]

    def _are_alike(self, one: int, other: int) -> bool:
        """Whether two rounds have the same detectors and the same errors."""
        a, b = (self.coordinates[self.begins[k]:self.begins[k + 1]] for k in (one, other))
        return (len(self.parts[one]) == len(self.parts[other]) and [c[:-1] for c in a] == [c[:-1] for c in b] and
                all(p[:2] == q[:2] and p[2].fired == q[2].fired and
                    math.isclose(p[2].probability, q[2].probability, rel_tol=1e-9)
                    for p, q in zip(self.parts[one], self.parts[other])))

    def longest_loop(self) -> tuple[int, int, int]:
        """The first round, the rounds of a repetition, and how many repetitions there are."""
        best = (0, 0, 0)
        for length in range(1, min(MAX_ROUNDS, self.count // 2) + 1):
            alike = [self._are_alike(k, k + length) for k in range(self.count - length)]
            steps = [self.time(k + length) - self.time(k) for k in range(self.count - length)]
            begin = 0
            while begin < len(alike):
                end = begin
                while end < len(alike) and alike[end] and math.isclose(steps[end], steps[begin], rel_tol=1e-9):
                    end += 1
                repetitions = (end - begin) // length + 1
                if repetitions > 1 and repetitions * length > best[1] * best[2]:
                    best = (begin, length, repetitions)
                begin = max(end, begin + 1)
        begin, length, repetitions = best
        if begin + length * repetitions == self.count:
            repetitions -= 1  # the last one is the tail
        if repetitions < 2:
            raise ValueError("the rounds of the circuit do not repeat, so its model has no loop; give it more rounds: "
                             "how many does not change the stream")
        return begin, length, repetitions


def coordinates_of_rounds(dem: stim.DetectorErrorModel, heralds: Collection[int] = ()) -> list[list[float]]:
    """Of each detector; a herald without any has those of the next detector that has some, at the end of the last."""
    noted = dem.get_detector_coordinates()
    made = [noted[k] for k in range(dem.num_detectors)]
    for k in reversed(range(len(made) - 1)):
        if not made[k] and k in heralds:
            made[k] = made[k + 1]
    for k in range(1, len(made)):
        if not made[k] and k in heralds:
            made[k] = made[k - 1]
    for k, its in enumerate(made):
        if not its:
            raise ValueError(f"detector {k} has no coordinates: the last one says its round")
    return made


def folded(coordinates: Sequence[Sequence[float]],
           parts: Sequence[Part]) -> tuple[str, list[tuple[int, Part, Part]]]:
    """The text of the model with its longest loop of rounds. Of each error of that model its number, the part that it
    is, and the part that stands for it in the text: the same one, or that of the first repetition.

    coordinates: of each detector; the last one says its round, and rounds ascend.
    Raises ValueError for a model that has no loop.
    """
    rounds = _Rounds(coordinates, parts)
    begin, length, repetitions = rounds.longest_loop()
    errors: list[tuple[int, Part, Part]] = []

    def block(first: int, last: int, copies: int = 1) -> str:
        made, start = stim.DetectorErrorModel(), rounds.begins[first]
        time = rounds.time(first)
        for k in range(first, last):
            for _, _, part in rounds.parts[k]:
                made.append("error", [part.probability], _shifted(part.targets, start))
        for detector in range(start, rounds.begins[last]):
            of_it = rounds.coordinates[detector]
            target = stim.target_relative_detector_id(detector - start)
            made.append("detector", [*of_it[:-1], of_it[-1] - time], [target])
        for later in range(0, copies * (last - first), last - first):
            for k in range(first, last):
                for (_, _, part), (_, _, standing) in zip(rounds.parts[k + later], rounds.parts[k]):
                    errors.append((len(errors), part, standing))
        return f"{made}\n"

    def shift(first: int, last: int) -> str:
        time = rounds.time(last) - rounds.time(first)
        zeros = ["0"] * (len(rounds.coordinates[0]) - 1)
        return f"shift_detectors({', '.join([*zeros, repr(time)])}) {rounds.begins[last] - rounds.begins[first]}\n"

    text = block(0, begin) + shift(0, begin) if begin else ""
    text += f"repeat {repetitions} {{\n{block(begin, begin + length, repetitions)}{shift(begin, begin + length)}}}\n"
    return text + block(begin + repetitions * length, rounds.count), errors


def fold(coordinates: Sequence[Sequence[float]], parts: Sequence[Part], heralds: Collection[int]) -> tuple[str, str]:
    """The text of the folded model, and the lines of its heralds.

    heralds: the detectors that are heralds, also those without an error.
    """
    text, errors = folded(coordinates, parts)
    entries = dict.fromkeys(sorted(heralds), "")
    for number, part, standing in errors:
        if part.herald is not None:
            entries[part.herald] += f" {number} {standing.fired!r}"
    return text, "".join(f"herald {herald}{of_herald}\n" for herald, of_herald in entries.items())
