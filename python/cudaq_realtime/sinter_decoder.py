# SPDX-License-Identifier: Apache-2.0
"""The decoders of this library in sinter:

    sinter.collect(..., decoders=["bp-osd"], custom_decoders=sinter_decoders())
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import sinter
import stim

from ._native import decoder_names
from .arguments import to_native
from .decoders import DEADLINE, Bits, DecodeError, Decoder


NOT_CONVERGED = 7  # the status
Unanswered = Literal["failure", "discard"]


@dataclass(frozen=True)
class CompiledSinterDecoder(sinter.CompiledDecoder):
    decoder: Decoder
    unanswered: Unanswered = "failure"

    def decode_shots_bit_packed(self, *, bit_packed_detection_event_data: npt.NDArray[np.uint8]) -> Bits:
        """Rows of packed predictions. In the row of a shot without an answer a bit is set that no observable has, so
        that it equals no true row; with "discard" all rows have one byte more, which is 1 for these shots."""
        events = to_native(bit_packed_detection_event_data, self.decoder.num_detectors, "rows of packed bits", "shots")
        statuses, solved = np.empty(len(events), dtype=np.int32), np.empty(len(events), dtype=np.bool_)
        rows = self.decoder.decode_batch(events, bit_packed_shots=True, bit_packed_predictions=True,
                                         statuses=statuses, solved=solved)
        unanswered = ~solved & ((statuses == NOT_CONVERGED) | (statuses == DEADLINE))
        has_spare_bit = self.decoder.num_observables % 8 != 0
        counted = unanswered if has_spare_bit or self.unanswered == "discard" else np.zeros_like(unanswered)
        refused = np.flatnonzero(~solved & ~counted)
        if refused.size:
            shot = int(refused[0])
            why = ("with 8, 16, ... observables sinter cannot count it as a failure; "
                   "SinterDecoder(unanswered='discard') discards it") if unanswered[shot] else ""
            raise DecodeError(int(statuses[shot]), shot, fault=why)
        if self.unanswered == "discard":
            return np.column_stack((rows, unanswered.astype(np.uint8)))
        rows[unanswered, -1:] |= 0x80
        return rows


@dataclass(frozen=True)
class SinterDecoder(sinter.Decoder):
    """name: as of Decoder. It can be pickled, so sinter's worker processes can use it.

    A shot without an answer (relay-bp did not converge, or there was no solution at deadline_us of the name) is one of
    sinter's errors, as `cudaq-realtime decode` counts it; unanswered="discard": one of its discards, and the rate is
    that of the other shots. The best solution at a deadline is an answer. Another shot that cannot be decoded raises
    DecodeError, which ends the collection."""

    name: str = "auto"
    unanswered: Unanswered = "failure"

    def __post_init__(self) -> None:
        if self.unanswered not in get_args(Unanswered):
            raise ValueError(f"unanswered is {self.unanswered!r:.60}, accepted: 'failure', 'discard'")

    def compile_decoder_for_dem(self, *, dem: stim.DetectorErrorModel) -> CompiledSinterDecoder:
        return CompiledSinterDecoder(Decoder(self.name, dem), self.unanswered)


def sinter_decoders(prefix: str = "cudaq-") -> dict[str, sinter.Decoder]:
    """Each decoder of this build under its name with the prefix, for `custom_decoders` of sinter.

    And "sliding-window": decodes as a stream, by windows, for models with a loop. Its decoder of a window is "auto";
    for another one, or other windows: SinterDecoder("sliding-window:inner=bp-osd,commit=5,buffer=5").
    """
    return {prefix + name: SinterDecoder(name) for name in [*decoder_names(), "sliding-window"]}
