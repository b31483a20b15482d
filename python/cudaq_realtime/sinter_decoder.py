# SPDX-License-Identifier: Apache-2.0
"""The decoders of this library in sinter:

    sinter.collect(..., decoders=["bp-osd"], custom_decoders=sinter_decoders())
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import sinter
import stim

from ._native import decoder_names
from .decoders import Bits, Decoder


@dataclass(frozen=True)
class CompiledSinterDecoder(sinter.CompiledDecoder):
    decoder: Decoder

    def decode_shots_bit_packed(self, *, bit_packed_detection_event_data: npt.NDArray[np.uint8]) -> Bits:
        return self.decoder.decode_batch(bit_packed_detection_event_data, bit_packed_shots=True,
                                          bit_packed_predictions=True)


@dataclass(frozen=True)
class SinterDecoder(sinter.Decoder):
    """name: as of Decoder. It can be pickled, so sinter's worker processes can use it. A shot that cannot be decoded
    raises DecodeError, which ends the collection."""

    name: str = "auto"

    def compile_decoder_for_dem(self, *, dem: stim.DetectorErrorModel) -> CompiledSinterDecoder:
        return CompiledSinterDecoder(Decoder(self.name, dem))


def sinter_decoders(prefix: str = "cudaq-") -> dict[str, sinter.Decoder]:
    """Each decoder of this build under its name with the prefix, for `custom_decoders` of sinter.

    And "sliding-window": decodes as a stream, by windows, for models with a loop. Its decoder of a window is "auto";
    for another one, or other windows: SinterDecoder("sliding-window:inner=bp-osd,commit=5,buffer=5").
    """
    return {prefix + name: SinterDecoder(name) for name in [*decoder_names(), "sliding-window"]}
