# SPDX-License-Identifier: Apache-2.0
"""The decoders of this library in sinter:

    sinter.collect(..., decoders=["bp-osd"], custom_decoders=sinter_decoders())
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Literal, Union, get_args

import numpy as np
import numpy.typing as npt
import sinter
import stim

from ._native import decoder_names
from .arguments import to_native
from .decoders import DEADLINE, Bits, DecodeError, Decoder
from .function_decoder import Function, FunctionDecoder
from .heralds import HeraldedModel, digest_of


NOT_CONVERGED = 7  # the status
Unanswered = Literal["failure", "discard"]
Late = Literal["unanswered", "answer"]
FunctionOf = Callable[[stim.DetectorErrorModel], Function]


def failure(status: int, shot: int, decode_again: Callable[[], object]) -> DecodeError:
    """Of a shot of a batch, whose statuses have come without texts: the shot, decoded again, says why."""
    try:
        decode_again()
    except DecodeError as again:
        return DecodeError(status, shot, fault=again.fault)
    return DecodeError(status, shot)


@dataclass(frozen=True)
class CompiledSinterDecoder(sinter.CompiledDecoder):
    decoder: Union[Decoder, FunctionDecoder]
    unanswered: Unanswered = "failure"
    late: Late = "unanswered"
    discard_below: Union[float, None] = None

    def decode_shots_bit_packed(self, *, bit_packed_detection_event_data: npt.NDArray[np.uint8]) -> Bits:
        """Rows of packed predictions. In the row of a shot without an answer a bit is set that no observable has, so
        that it equals no true row; with "discard" all rows have one byte more, which is 1 for these shots; with
        discard_below it is 1 for shots whose answer is not sure enough."""
        events = to_native(bit_packed_detection_event_data, self.decoder.num_detectors, "rows of packed bits", "shots")
        statuses = np.empty(len(events), dtype=np.int32)
        solved, is_late = np.empty((2, len(events)), dtype=np.bool_)
        unsure: npt.NDArray[np.bool_] = np.zeros(len(events), dtype=np.bool_)
        if self.discard_below is None:
            rows = self.decoder.decode_batch(events, bit_packed_shots=True, bit_packed_predictions=True,
                                             statuses=statuses, solved=solved, late=is_late)
        else:
            assert isinstance(self.decoder, Decoder)
            gaps = np.empty((len(events), self.decoder.num_observables))
            rows = self.decoder.decode_batch(events, bit_packed_shots=True, bit_packed_predictions=True,
                                             statuses=statuses, solved=solved, late=is_late, gaps=gaps)
            is_sure = np.all(gaps >= self.discard_below, axis=1)
            unsure = np.logical_not(is_sure)  # also one that is not known
        if self.late == "unanswered":
            statuses[is_late & solved] = DEADLINE
            solved[is_late] = False
        unanswered = ~solved & ((statuses == NOT_CONVERGED) | (statuses == DEADLINE))
        has_spare_bit = self.decoder.num_observables % 8 != 0
        counted = unanswered if has_spare_bit or self.unanswered == "discard" else np.zeros_like(unanswered)
        refused = np.flatnonzero(~solved & ~counted)
        if refused.size:
            shot = int(refused[0])
            if unanswered[shot]:
                raise DecodeError(int(statuses[shot]), shot,
                                  fault="with 8, 16, ... observables sinter cannot count it as a failure; "
                                  "SinterDecoder(unanswered='discard') discards it")
            raise failure(int(statuses[shot]), shot,
                          lambda: self.decoder.decode_batch(events[shot:shot + 1], bit_packed_shots=True))
        if self.unanswered != "discard":
            rows[unanswered, -1:] |= 0x80
        if self.unanswered != "discard" and self.discard_below is None:
            return rows
        discarded = unanswered if self.unanswered == "discard" else np.zeros_like(unanswered)
        return np.column_stack((rows, (discarded | (unsure & ~unanswered)).astype(np.uint8)))


def with_whole_errors(dem: stim.DetectorErrorModel) -> stim.DetectorErrorModel:
    """The model without its decomposition: components of an error (`^`) are added up, so it has the errors that Stim
    writes without decompose_errors."""
    whole = stim.DetectorErrorModel()
    for part in dem:
        if isinstance(part, stim.DemRepeatBlock):
            whole.append(stim.DemRepeatBlock(part.repeat_count, with_whole_errors(part.body_copy())))
        elif part.type != "error":
            whole.append(part)
        else:
            flipped: set[stim.DemTarget] = set()
            for target in part.targets_copy():
                if not target.is_separator():
                    flipped ^= {target}
            whole.append("error", part.args_copy(),
                         sorted(flipped, key=lambda one: (one.is_logical_observable_id(), one.val)))
    return whole


def names_matching(name: str) -> bool:
    """Whether a decoder of this name is matching, or has it in windows or in a race. The path of a plug-in may contain
    the word, too."""
    kind = re.split("[:(,]", name, maxsplit=1)[0]
    settings = name[len(kind) + 1:]
    if kind == "sliding-window":
        inner = re.search("(?:^|,)inner=(.*)", settings)
        return inner is not None and names_matching(inner[1])
    if kind == "race":
        return any(names_matching(member) for member in settings.split("|"))
    return kind in ("pymatching", "pymatching-correlated")


def with_confidence(name: str) -> str:
    """The name with the setting confidence=1."""
    if re.search("[:,]confidence=", name):
        return name
    return f"{name}{',' if ':' in name else ':'}confidence=1"


@dataclass(frozen=True)
class SinterDecoder(sinter.Decoder):
    """name: as of Decoder, or a function: the model of a task -> a function of a shot, as of FunctionDecoder. It can be
    pickled if the function can, so sinter's worker processes can use it.
    deadline_us: of a function, as of FunctionDecoder; a name has it among its settings.

    A shot without an answer (relay-bp did not converge, or there was no solution at deadline_us of the name) is one of
    sinter's errors, as `cudaq-realtime decode` counts it; unanswered="discard": one of its discards, and the rate is
    that of the other shots. The best solution at a deadline is an answer; one after it is none, unless late="answer"
    (a decoder that ignores its deadline, or a last step that took longer). Another shot that cannot be decoded raises
    DecodeError, which ends the collection.

    sinter gives each decoder a model with Stim's decomposition. Matching (also as "auto", and in windows that name it)
    decodes it without, if it can split the errors itself: it is better then (docs/decoding.md). bp-osd and
    relay-bp take errors whole in any case; a function gets the model as sinter gives it. keep_decomposition=True: also
    matching, so that its answers are those of sinter's "pymatching".

    discard_below: a shot is one of sinter's discards if the gap of one of its observables is below this number, or not
    known (docs/decoders/confidence.md): the rate is that of the other shots. The decoder gets the setting
    confidence=1, and one that gives no gaps is refused with its reason. Not with a function. Shots without an answer
    are failures or discards as `unanswered` says.

    heralded: of a circuit with heralds (heralded_model(circuit)), which is decoded in place of the model of the task.
    Give the task the model circuit.detector_error_model(approximate_disjoint_errors=True): sinter's own one fails where
    heralds are in errors that it decomposes, and the model of another circuit is refused. So each strength of the noise
    has a decoder of its own, which its tasks name (sinter.Task(decoder=...)). Not with a function or
    keep_decomposition; HeraldedModel has its own."""

    name: Union[str, FunctionOf] = "auto"
    unanswered: Unanswered = "failure"
    late: Late = "unanswered"
    keep_decomposition: bool = False
    heralded: HeraldedModel | None = None
    deadline_us: Union[float, None] = None
    discard_below: Union[float, None] = None

    def __post_init__(self) -> None:
        if self.deadline_us is not None and not callable(self.name):
            raise ValueError(f"deadline_us is for functions; of a name it is a setting: '{self.name}:deadline_us=...'")
        if self.discard_below is not None:
            if callable(self.name):
                raise ValueError("discard_below is for decoders of this library: a function gives no gaps")
            if not (isinstance(self.discard_below, (int, float)) and self.discard_below >= 0):
                raise ValueError(f"discard_below is {self.discard_below!r:.60}, accepted: a number of at least 0")
        if self.heralded is not None and callable(self.name):
            raise ValueError("heralded is for decoders of this library, not for a function")
        if self.keep_decomposition and (self.heralded is not None or callable(self.name)):
            raise ValueError("keep_decomposition is for a name without heralded: a function gets the model as sinter "
                             "gives it, and heralded_model(circuit, decompose_errors=...) decides for heralds")
        if self.unanswered not in get_args(Unanswered):
            raise ValueError(f"unanswered is {self.unanswered!r:.60}, accepted: 'failure', 'discard'")
        if self.late not in get_args(Late):
            raise ValueError(f"late is {self.late!r:.60}, accepted: 'unanswered', 'answer'")

    def compile_decoder_for_dem(self, *, dem: stim.DetectorErrorModel) -> CompiledSinterDecoder:
        decoder = self._decoder_for(dem)
        if self.discard_below is not None and isinstance(decoder, Decoder) and not decoder.gives_gaps:
            raise ValueError(f"discard_below: {self.name}: {decoder.refuses_gaps}")
        return CompiledSinterDecoder(decoder, self.unanswered, self.late, self.discard_below)

    def _decoder_for(self, dem: stim.DetectorErrorModel) -> Union[Decoder, FunctionDecoder]:
        if callable(self.name):
            return FunctionDecoder(self.name(dem), dem, deadline_us=self.deadline_us)
        name = self.name if self.discard_below is None else with_confidence(self.name)
        if self.heralded is not None:
            if dem.num_detectors != self.heralded.num_detectors:
                raise ValueError(f"the model of the task has {dem.num_detectors} detectors, and the circuit of the "
                                 f"heralds {self.heralded.num_detectors}")
            if digest_of(dem) != self.heralded.all_detectors:
                raise ValueError("the model of the task is not that of the circuit of the heralds; accepted: "
                                 "circuit.detector_error_model(approximate_disjoint_errors=True), and for each "
                                 "strength of the noise a SinterDecoder of its own")
            return Decoder(name, self.heralded.dem, self.heralded.heralds)
        is_auto = re.match("auto(:|$)", self.name) is not None
        if (names_matching(self.name) or is_auto) and not self.keep_decomposition:
            try:
                made = Decoder(name, with_whole_errors(dem))
            except ValueError:  # an error that is no edge in each part
                pass
            else:
                if not is_auto or "pymatching" in made.name:  # else it took bp-osd, which is slow
                    return made
        return Decoder(name, dem)


def sinter_decoders(prefix: str = "cudaq-") -> dict[str, sinter.Decoder]:
    """Each decoder of this build under its name with the prefix, for `custom_decoders` of sinter.

    And "sliding-window": decodes as a stream, by windows, for models with a loop. Its decoder of a window is "auto";
    for another one, or other windows: SinterDecoder("sliding-window:inner=bp-osd,commit=5,buffer=5").
    """
    return {prefix + name: SinterDecoder(name) for name in [*decoder_names(), "sliding-window"]}
