# SPDX-License-Identifier: Apache-2.0
"""The QEC pipeline: shots as requests through a ring, decoded by several workers."""
from __future__ import annotations

import functools
import platform
import threading
import time
from typing import Any, Callable, Dict, Union

import numpy as np
import numpy.typing as npt

from . import _native
from .arguments import Form, Model, model_text, positive_number, to_native, whole_number
from .decoders import Bits, DecodeError, unpacked_rows

MAX_WORKERS, MAX_SLOTS = 64, 2**24
LONGEST_S = 1e9  # of a run at a rate: its times in nanoseconds fit into 64 bits
STAGES = ("predecode", "decode")  # in their order
STAGE_FAILED = -1  # status of a shot whose function failed
DecodeFunction = Callable[[Bits], npt.ArrayLike]
PredecodeFunction = Callable[[Bits], Union[npt.ArrayLike, "tuple[npt.ArrayLike, npt.ArrayLike]"]]
PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9}


class Report(Dict[str, Any]):
    """The figures of a run: a flat dict of numbers and texts, one row of a table.

    pandas.DataFrame([report, ...]) is the table; `latencies_ns` has the time of each request, `stages_ns["decode"]` the
    part of this stage.
    """

    latencies_ns: npt.NDArray[np.int64]
    stages_ns: dict[str, npt.NDArray[np.int64]]

    def __init__(self, figures: dict[str, Any], latencies_ns: npt.NDArray[np.int64],
                 stages_ns: dict[str, npt.NDArray[np.int64]]):
        super().__init__(figures)
        self.latencies_ns, self.stages_ns = latencies_ns, stages_ns

    def copy(self) -> Report:
        return Report(self, self.latencies_ns, self.stages_ns)

    __copy__ = copy


class StageError(RuntimeError):
    """A function that is a stage has raised an exception, or returned what does not fit. `shot` is the row of the first
    shot that has no answer."""

    def __init__(self, text: str, shot: int):
        self._text, self.shot = text, shot
        super().__init__(f"shot {shot}: {text}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._text, self.shot), self.__dict__


def _bits(packed: bytes, count: int) -> Bits:
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=count, bitorder="little")


def _call(function: Callable[[Bits], Any], shot: Bits, serving: set[int]) -> Any:
    thread = threading.get_ident()
    serving.add(thread)
    try:
        return function(shot)
    finally:
        serving.remove(thread)


class Pipeline:
    """Workers that predecode and decode requests from a ring.

    decoder: a name, as of Decoder, or a function: events -> observables.
    predecoder: None, or a function: events -> events that are left for the decoder, or a tuple of these and the
        observables that the predecoder has found flipped.
    dem: the model, as of Decoder. workers: threads, 1 to 64. slots: requests in flight at most.
    A copy, also a pickled one, is a new pipeline with the same arguments.

    Events and observables of a function are 0 or 1, uint8[num_detectors] and [num_observables]. A function runs on the
    threads of the workers and takes the GIL: it is for trying out, and slow. Its first exception is raised by run.
    Experimental, as the pipeline itself: docs/pipeline.md.
    """

    def __init__(self, decoder: str | DecodeFunction, dem: Model, *,
                 predecoder: PredecodeFunction | None = None, workers: int = 2, slots: int = 32):
        if not isinstance(decoder, str) and not callable(decoder):
            raise TypeError(f"decoder is {decoder!r:.60}, accepted: a name as of Decoder, or a function of one shot")
        if predecoder is not None and not callable(predecoder):
            raise TypeError(f"predecoder is {predecoder!r:.60}, accepted: None, or a function of one shot")
        self._arguments = decoder, model_text(dem), predecoder
        self._names = {stage: getattr(function, "__name__", type(function).__name__)
                       for stage, function in (("predecode", predecoder), ("decode", decoder))
                       if function is not None and not isinstance(function, str)}
        if isinstance(decoder, str):
            self._names["decode"] = decoder
        self._workers = whole_number(workers, "workers", 1, MAX_WORKERS)
        self._slots = whole_number(slots, "slots", 1, MAX_SLOTS)
        # bp-osd takes every model; beside a function it only tells how many detectors and observables there are.
        name = decoder if isinstance(decoder, str) else "bp-osd"
        # The functions below refer to what they need, not to this object, whose native part would keep it alive.
        sizes: dict[str, int] = {}
        serving: set[int] = set()  # threads that run a function
        self._serving = serving

        def predecode(packed: bytes) -> bytes:
            assert predecoder is not None
            found = _call(predecoder, _bits(packed, sizes["detectors"]), serving)
            if not isinstance(found, tuple):
                found = found, np.zeros(sizes["observables"], np.uint8)
            if len(found) != 2:
                raise ValueError(f"the predecoder returned a tuple of {len(found)}, accepted: events and observables")
            left, flips = found
            return b"".join(to_native(array, sizes[kind], "bits", f"the array of {what} of the predecoder").tobytes()
                            for array, kind, what in ((left, "detectors", "events"),
                                                      (flips, "observables", "observables")))

        def decode(packed: bytes) -> bytes:
            assert callable(decoder)
            found = _call(decoder, _bits(packed, sizes["detectors"]), serving)
            return to_native(found, sizes["observables"], "bits", "the answer of the decoder").tobytes()

        self._native = _native.NativePipeline(name, self._arguments[1], self._workers, self._slots,
                                              None if predecoder is None else predecode,
                                              decode if callable(decoder) else None)
        sizes.update(detectors=self._native.num_detectors, observables=self._native.num_observables)

    def __reduce__(self) -> tuple[Any, ...]:
        decoder, dem, predecoder = self._arguments
        make = functools.partial(type(self), predecoder=predecoder, workers=self._workers, slots=self._slots)
        return make, (decoder, dem)

    def __repr__(self) -> str:
        predecoder = f"predecoder={self._names['predecode']!r}, " if "predecode" in self._names else ""
        return f"Pipeline({self._names['decode']!r}, {predecoder}workers={self._workers}, slots={self._slots})"

    def run(self, shots: npt.ArrayLike, *, rate: float = 0.0, bit_packed_shots: bool = False,
            bit_packed_predictions: bool = False) -> tuple[Bits, Report]:
        """Sends the shots and waits for all answers.

        shots: as of Decoder.decode_batch. rate: requests per second, evenly spaced; 0: as fast as slots become free.
        Returns the predictions as Decoder.decode_batch does, and the report. The time of a request begins when it was
        due, so a late sender is part of it. Raises DecodeError for the first shot that could not be decoded, StageError
        if a function failed. Ctrl-C ends the run. RuntimeError: a function runs its own pipeline, or one
        of a run that was ended has not returned yet.
        """
        if threading.get_ident() in self._serving:
            raise RuntimeError("a stage cannot run its own pipeline, which waits for it")
        native = self._native
        form: Form = "rows of packed bits" if bit_packed_shots else "rows of bits"
        events = to_native(shots, native.num_detectors, form, "shots")
        rate = positive_number(rate, "rate")
        if rate and len(events) / rate > LONGEST_S:
            raise ValueError(f"rate is {rate}, accepted: {len(events) / LONGEST_S} or more for {len(events)} shots; 0")
        out = np.zeros((len(events), native.observable_bytes), dtype=np.uint8)
        statuses = np.empty(len(events), dtype=np.int32)
        latencies = np.empty(len(events), dtype=np.int64)
        stages = np.zeros((len(events), len(STAGES)), dtype=np.int64)
        seconds, stage_error = native.run(events, out, statuses, latencies, stages, round(1e9 / rate) if rate else 0)
        if statuses.any():
            shot = int(np.flatnonzero(statuses)[0])
            if statuses[shot] == STAGE_FAILED and stage_error:
                raise StageError(stage_error, shot)
            raise DecodeError(int(statuses[shot]), shot)
        return (out if bit_packed_predictions else unpacked_rows(out, native.num_observables),
                self._report(latencies, stages, seconds, rate))

    def _report(self, latencies: npt.NDArray[np.int64], stages: npt.NDArray[np.int64], seconds: float,
                rate: float) -> Report:
        figures: dict[str, Any] = {
            "tool": "cudaq_realtime", "version": _native.version, "machine": platform.machine(),
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "decoder": self._names["decode"],
            "predecoder": self._names.get("predecode", "none"),
            "workers": self._workers, "slots": self._slots, "offered_per_second": rate, "shots": len(latencies),
            "seconds": seconds, "shots_per_second": len(latencies) / seconds if seconds else 0.0,
        }
        if len(latencies):
            figures.update(latency_min_ns=int(latencies.min()), latency_mean_ns=float(latencies.mean()),
                           latency_max_ns=int(latencies.max()))
            for name, percentile in PERCENTILES.items():
                figures[f"latency_{name}_ns"] = float(np.percentile(latencies, percentile))
            for stage, times in zip(STAGES, stages.T):
                if stage in self._names:
                    figures[f"{stage}_mean_ns"] = float(times.mean())
                    figures[f"{stage}_p99_ns"] = float(np.percentile(times, 99.0))
        return Report(figures, latencies, dict(zip(STAGES, stages.T)))

    def stats(self) -> dict[str, int]:
        return self._native.stats()

    def dump(self) -> str:
        """State of slots, workers and dispatcher."""
        return self._native.dump()
