# SPDX-License-Identifier: Apache-2.0
"""What is read from circuits and models of Stim in the same way by heralds.py and readout.py."""
from __future__ import annotations

from typing import FrozenSet

import stim

Symptom = FrozenSet[stim.DemTarget]


def measurements_of(one: stim.CircuitInstruction) -> int:
    alone = stim.Circuit()
    alone.append(one)
    return int(alone.num_measurements)


def symptom_of(targets: list[stim.DemTarget]) -> Symptom:
    """What an error flips; its components count together."""
    flipped: set[stim.DemTarget] = set()
    for target in targets:
        if not target.is_separator():
            flipped ^= {target}
    return frozenset(flipped)
