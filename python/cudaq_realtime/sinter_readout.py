# SPDX-License-Identifier: Apache-2.0
"""Soft values in sinter, whose decoders get bits only: a sampler, which draws the values and decodes them.

    sinter.collect(..., decoders=["soft"], custom_decoders={"soft": ReadoutSampler(Gaussian(1, -1, 0.5))})
"""
from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import sinter
import stim

from ._circuits import measurements_of
from .decoders import DEADLINE, Decoder
from .readout import Gaussian, Levels, is_soft, pack_u4, quiet_circuit, readout_model
from .sinter_decoder import NOT_CONVERGED, failure

Knows = Literal["f32", "u8", "u4", "hard"]
BATCH = 4096


@dataclass(frozen=True)
class ReadoutSampler(sinter.Sampler):
    """Samples a circuit whose measurements give values of this Gaussian, and decodes each shot with its values.

    knows: what the decoder gets: the values as float32, as one of 256 or of 16 levels (Levels), or the hard bits only,
    with the average probability that one is wrong.

    The task needs its circuit. The arguments of its measurements do not count: Gaussian.misread takes their place. So
    one circuit serves all Gaussians, but each of them needs a name of its own in sinter, which takes tasks with the
    same name and circuit for the same. Each worker draws from a random state of its own. A shot without an answer
    (relay-bp did not converge, or there was no solution at the deadline) is one of sinter's errors; another one that
    cannot be decoded raises DecodeError. Raises ValueError for what readout_model refuses, for flags of leakage, which
    a circuit does not sample, and for post-selection."""

    gaussian: Gaussian
    name: str = "pymatching"
    knows: Knows = "f32"

    def __post_init__(self) -> None:
        if self.knows not in get_args(Knows):
            raise ValueError(f"knows is {self.knows!r:.60}, accepted: 'f32', 'u8', 'u4', 'hard'")

    def compiled_sampler_for_task(self, task: sinter.Task) -> sinter.CompiledSampler:
        if task.circuit is None:
            raise ValueError("the task has no circuit, which says where the measurements are")
        if task.postselection_mask is not None or task.postselected_observables_mask is not None:
            raise ValueError("the task has a mask of post-selection, accepted: none")
        return _CompiledReadoutSampler(self, task.circuit)


class _CompiledReadoutSampler(sinter.CompiledSampler):
    def __init__(self, of: ReadoutSampler, circuit: stim.Circuit):
        noisy = stim.Circuit()
        for one in circuit.flattened():
            noisy.append(one.name, one.targets_copy(),
                         [of.gaussian.misread] if is_soft(one.name) else one.gate_args_copy())
        if any(getattr(one, "tag", "").startswith("leakage") for one in circuit.flattened()):
            raise ValueError("the circuit has flags of leakage, which it does not sample")
        self._of = of
        self._has_value = np.array([is_soft(one.name) for one in noisy for _ in range(measurements_of(one))],
                                   dtype=np.bool_)
        self._levels = Levels(of.gaussian, {"u8": 256, "u4": 16}[of.knows]) if of.knows in ("u8", "u4") else None
        made = readout_model(noisy, self._levels or of.gaussian)
        self._decoder = (Decoder(of.name, made.dem) if of.knows == "hard" else
                         Decoder(of.name, made.dem, readout=made.readout))
        self._sampler = quiet_circuit(noisy).compile_sampler()
        self._converter = noisy.compile_m2d_converter()
        self._random = np.random.default_rng()

    def sample(self, suggested_shots: int) -> sinter.AnonTaskStats:
        """At most BATCH shots."""
        of, shots = self._of.gaussian, max(1, min(suggested_shots, BATCH))
        begun = time.monotonic()
        results = self._sampler.sample(shots)
        values = np.where(results, np.float32(of.one), np.float32(of.zero))
        values += np.float32(of.sigma) * self._random.standard_normal(results.shape, dtype=np.float32)
        hard = np.where(self._has_value, of.log_ratios(values) < 0, results)  # a pad has no value
        events, flips = self._converter.convert(measurements=hard, separate_observables=True)
        given: dict[str, Any] = {}
        if self._levels is not None:
            levels = self._levels.of(values)
            given = {"soft": levels if self._of.knows == "u8" else pack_u4(levels), "soft_kind": self._of.knows}
        elif self._of.knows == "f32":
            given = {"soft": values}
        statuses, solved = np.empty(shots, dtype=np.int32), np.empty(shots, dtype=np.bool_)
        predictions = self._decoder.decode_batch(events, statuses=statuses, solved=solved, **given)
        refused = np.flatnonzero(~solved & (statuses != NOT_CONVERGED) & (statuses != DEADLINE))
        if refused.size:
            shot = int(refused[0])
            row = {name: rows if name == "soft_kind" else rows[shot:shot + 1] for name, rows in given.items()}
            raise failure(int(statuses[shot]), shot, lambda: self._decoder.decode_batch(events[shot:shot + 1], **row))
        wrong = (predictions != flips).any(axis=1) | ~solved
        return sinter.AnonTaskStats(shots=shots, errors=int(wrong.sum()), seconds=time.monotonic() - begun)
