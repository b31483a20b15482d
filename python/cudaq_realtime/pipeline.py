# SPDX-License-Identifier: Apache-2.0
"""The QEC pipeline: shots as requests through a ring, decoded by several workers."""
from __future__ import annotations

import platform
import time
from typing import TYPE_CHECKING, Any, Dict

import numpy as np
import numpy.typing as npt

from . import _native
from .decoders import Bits, DecodeError, packed_rows, unpacked_rows

if TYPE_CHECKING:
    import stim

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9}


class Report(Dict[str, Any]):
    """The figures of a run: a flat dict of numbers and texts, one row of a table.

    pandas.DataFrame([report, ...]) is the table; `latencies_ns` has the time of each request.
    """

    latencies_ns: npt.NDArray[np.int64]

    def __init__(self, figures: dict[str, Any], latencies_ns: npt.NDArray[np.int64]):
        super().__init__(figures)
        self.latencies_ns = latencies_ns


class Pipeline:
    """Workers that decode requests from a ring.

    decoder, dem: as of Decoder. workers: threads that decode, 1 to 64. slots: requests in flight at most.
    Experimental, as the pipeline itself: docs/pipeline.md.
    """

    def __init__(self, decoder: str, dem: str | stim.DetectorErrorModel, *, workers: int = 2, slots: int = 32):
        self._name, self._workers, self._slots = decoder, workers, slots
        self._native = _native.NativePipeline(decoder, str(dem), workers, slots)

    def run(self, shots: npt.ArrayLike, *, rate: float = 0.0, bit_packed_shots: bool = False,
            bit_packed_predictions: bool = False) -> tuple[Bits, Report]:
        """Sends the shots and waits for all answers.

        shots: as of Decoder.decode_batch. rate: requests per second, evenly spaced; 0: as fast as slots become free.
        Returns the predictions as Decoder.decode_batch does, and the report. The time of a request begins when it was
        due, so a late sender is part of it. Raises DecodeError for the first shot that could not be decoded.
        """
        native = self._native
        events = packed_rows(shots, native.num_detectors, bit_packed_shots)
        if rate < 0:
            raise ValueError(f"rate is {rate}, accepted: 0 or more")
        out = np.zeros((len(events), native.observable_bytes), dtype=np.uint8)
        statuses = np.empty(len(events), dtype=np.int32)
        latencies = np.empty(len(events), dtype=np.int64)
        seconds = native.run(events, out, statuses, latencies, round(1e9 / rate) if rate else 0)
        if statuses.any():
            shot = int(np.flatnonzero(statuses)[0])
            raise DecodeError(int(statuses[shot]), shot)
        return (out if bit_packed_predictions else unpacked_rows(out, native.num_observables),
                self._report(latencies, seconds, rate))

    def _report(self, latencies: npt.NDArray[np.int64], seconds: float, rate: float) -> Report:
        figures: dict[str, Any] = {
            "tool": "cudaq_realtime", "version": _native.version, "machine": platform.machine(),
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "decoder": self._name,
            "workers": self._workers, "slots": self._slots, "offered_per_second": rate, "shots": len(latencies),
            "seconds": seconds, "shots_per_second": len(latencies) / seconds if seconds else 0.0,
        }
        if len(latencies):
            figures.update(latency_min_ns=int(latencies.min()), latency_mean_ns=float(latencies.mean()),
                           latency_max_ns=int(latencies.max()))
            for name, percentile in PERCENTILES.items():
                figures[f"latency_{name}_ns"] = float(np.percentile(latencies, percentile))
        return Report(figures, latencies)

    def stats(self) -> dict[str, int]:
        return self._native.stats()

    def dump(self) -> str:
        """State of slots, workers and dispatcher."""
        return self._native.dump()
