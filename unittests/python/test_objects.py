# SPDX-License-Identifier: Apache-2.0
"""Every public class of the package can be pickled, copied and printed, also when a worker process raises it."""
import concurrent.futures
import copy
import importlib
import inspect
import multiprocessing
import pickle
import pkgutil

import cudaq_realtime
import numpy as np
import pytest
import sinter
import stim
from cudaq_realtime import (Answer, Client, DecodeError, Decoder, Dispatcher, Pipeline, Report, ServerError,
                            ServerRestarted, StageError, StreamDecoder)
from cudaq_realtime.client import Committed, Description, Readout
from cudaq_realtime.decoders import Deadlines
from cudaq_realtime.function_decoder import FunctionDecoder
from cudaq_realtime.heralds import HeraldedModel, heralded_model
from cudaq_realtime.learning import Learned, Score, ShotsRefused, learn
from cudaq_realtime.readout import Gaussian, Levels, ReadoutModel, readout_model
from cudaq_realtime.sinter_decoder import CompiledSinterDecoder, SinterDecoder
from cudaq_realtime.sinter_readout import ReadoutSampler

CHAIN = "error(0.01) D0 L0\nerror(0.02) D0 D1\nerror(0.01) D1"
UNSOLVED = "error(0.1) D0 D1 L0"
LOOP = "repeat 5 {\n    detector(0) D0\n    error(0.1) D0 L0\n    shift_detectors(1) 1\n}"
HERALDED = "R 0\nHERALDED_ERASE(0.1) 0\nDETECTOR rec[-1]\nM 0\nDETECTOR rec[-1]"


def echo(payload):
    return payload


def fail(shot):
    raise KeyError("the reason")


def learned_chain():
    return learn(CHAIN, np.repeat([[1, 0], [0, 1], [0, 0]], [20, 20, 1960], axis=0), held_out=0)


def run_report(pipeline):
    return pipeline.run(np.array([[1, 0], [1, 1]]))[1]


def used_dispatcher(dispatcher):
    with dispatcher:
        return dispatcher.call("echo", b"x")


# Of each class an object, and what must be equal before and after; None: the object itself.
EXAMPLES = {
    Answer: (lambda: Answer(-1005, b"x"), None),
    Client: (lambda: Client("udp", "127.0.0.1:9", timeout=3, slot_size=512), lambda c: c._arguments),
    Committed: (lambda: Committed(5, 10, np.array([1], np.uint8)), lambda c: (c[:2], c.observables.tolist())),
    CompiledSinterDecoder: (lambda: SinterDecoder("lookup").compile_decoder_for_dem(
        dem=stim.DetectorErrorModel(CHAIN)), None),
    DecodeError: (lambda: DecodeError(3, 2), lambda e: (e.status, e.shot, str(e), e.args)),
    Deadlines: (lambda: Deadlines(3, 2, 1), lambda d: (d, d.met, d.missed, d.late)),
    Decoder: (lambda: Decoder("lookup", CHAIN), None),
    Description: (lambda: Description(16, 0, 1, 77), None),
    Readout: (lambda: Readout(25, 8, ("f32", "u8")), None),
    Dispatcher: (lambda: Dispatcher({"echo": echo}, slots=3, slot_size=256), used_dispatcher),
    FunctionDecoder: (lambda: FunctionDecoder(echo, CHAIN, deadline_us=1e6), None),
    Gaussian: (lambda: Gaussian(1, -1, 0.5), None),
    HeraldedModel: (lambda: heralded_model(stim.Circuit(HERALDED)), None),
    Learned: (learned_chain, lambda of: [np.asarray(one).tolist() for one in of]),
    Levels: (lambda: Levels(Gaussian(1, -1, 0.5), 16), lambda of: (of, of.ratios.tolist())),
    Pipeline: (lambda: Pipeline("lookup", CHAIN, predecoder=echo, workers=1, slots=4),
               lambda p: [run_report(p)[key] for key in ("decoder", "predecoder", "workers", "slots", "shots")]),
    ReadoutModel: (lambda: readout_model(stim.Circuit("R 0\nM(0.1) 0\nDETECTOR rec[-1]"), Gaussian(1, -1, 0.5)), None),
    ReadoutSampler: (lambda: ReadoutSampler(Gaussian(1, -1, 0.5), knows="u8"), None),
    Report: (lambda: run_report(Pipeline("lookup", CHAIN)),
             lambda r: (dict(r), r.latencies_ns.tolist(), {k: v.tolist() for k, v in r.stages_ns.items()})),
    Score: (lambda: Score(0.25, 0.125, 30, 2.0), None),
    ServerError: (lambda: ServerError(6, "enqueue_syndromes"), lambda e: (e.status, e.function, str(e), e.args)),
    ServerRestarted: (lambda: ServerRestarted(6, "begin_tail"), lambda e: (e.status, e.function, str(e), e.args)),
    ShotsRefused: (lambda: ShotsRefused(["too few shots: 5"], learned_chain()),
                   lambda e: (e.refusals, str(e), e.learned.dem, e.learned.rates.tolist())),
    SinterDecoder: (lambda: SinterDecoder("bp-osd:osd_order=7"), None),
    StageError: (lambda: StageError("it failed", 4), lambda e: (e.shot, str(e), e.args)),
    StreamDecoder: (lambda: StreamDecoder(LOOP, "lookup", commit=2, buffer=1, rounds="index:1"), None),
}
WAYS = {**{f"pickle {n}": lambda o, n=n: pickle.loads(pickle.dumps(o, protocol=n))
           for n in range(pickle.HIGHEST_PROTOCOL + 1)},
        "copy": copy.copy, "deepcopy": copy.deepcopy}


def public_classes():
    names = [module.name for module in pkgutil.iter_modules(cudaq_realtime.__path__)]
    modules = [importlib.import_module(f"cudaq_realtime.{name}") for name in names if not name.startswith("_")]
    return {one for module in modules for name, one in inspect.getmembers(module, inspect.isclass)
            if one.__module__ == module.__name__ and not name.startswith("_")}


def test_every_public_class_has_an_example_here():
    assert public_classes() == set(EXAMPLES)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tested", EXAMPLES, ids=lambda tested: tested.__name__)
def test_a_copy_equals_its_object(tested, way):
    make, seen = EXAMPLES[tested]
    original = make()
    made = WAYS[way](original)
    assert type(made) is tested
    if seen is None:
        assert made == original and not made != original and hash(made) == hash(original)
    else:
        assert seen(made) == seen(original)


@pytest.mark.parametrize("tested", EXAMPLES, ids=lambda tested: tested.__name__)
def test_the_text_of_an_object_says_what_it_is(tested):
    text = repr(EXAMPLES[tested][0]())
    assert " object at 0x" not in text and (text.startswith(tested.__name__ + "(") or tested is Report), text


def test_the_text_of_a_decoder_names_the_one_that_auto_took():
    made = Decoder("auto", CHAIN)
    assert made.name != "auto" and repr(made).startswith(f"Decoder('{made.name}', ")
    assert f"; {made.name}; " in repr(StreamDecoder(LOOP, commit=1, buffer=1))


def test_objects_of_other_values_differ():
    assert Decoder("lookup", CHAIN) != Decoder("bp-osd", CHAIN) != Decoder("bp-osd", UNSOLVED) != CHAIN
    assert SinterDecoder("lookup") != SinterDecoder("bp-osd") != "bp-osd"
    streams = [StreamDecoder(LOOP, "lookup", commit=commit, buffer=1) for commit in (1, 2, 2)]
    assert streams[0] != streams[1] == streams[2] != LOOP
    report = run_report(Pipeline("lookup", CHAIN))
    assert isinstance(report.copy(), Report) and report.copy().latencies_ns is report.latencies_ns


def raise_decode_error(_):
    Decoder("bp-osd", UNSOLVED).decode_batch(np.array([[1, 1], [1, 0]]))


def raise_stage_error(_):
    Pipeline(fail, CHAIN).run(np.zeros((1, 2), dtype=bool))


@pytest.mark.parametrize("function, error, shot, text", [
    (raise_decode_error, DecodeError, 1, "no error of the model"), (raise_stage_error, StageError, 0, "the reason")])
def test_an_error_of_a_worker_process_arrives(function, error, shot, text):
    with multiprocessing.Pool(1) as pool, pytest.raises(error, match=text) as raised:
        pool.map_async(function, [0]).get(timeout=60)
    assert raised.value.shot == shot
    with concurrent.futures.ProcessPoolExecutor(1) as pool, pytest.raises(error, match=text) as raised:
        pool.submit(function, 0).result(timeout=60)
    assert raised.value.shot == shot
    with concurrent.futures.ProcessPoolExecutor(1) as pool:  # the pool is not broken by an error
        with pytest.raises(error):
            pool.submit(function, 0).result(timeout=60)
        assert pool.submit(echo, 5).result(timeout=60) == 5


def test_sinter_says_why_a_shot_could_not_be_decoded(capfd):
    circuit = stim.Circuit("X_ERROR(0.4) 0 1\nM 0 1\nDETECTOR rec[-1]\nDETECTOR rec[-2]\nOBSERVABLE_INCLUDE(0) rec[-1]")
    task = sinter.Task(circuit=circuit, detector_error_model=stim.DetectorErrorModel(UNSOLVED))
    with pytest.raises(Exception) as raised:
        sinter.collect(num_workers=1, tasks=[task], decoders=["mine"], max_shots=100,
                       custom_decoders={"mine": SinterDecoder("bp-osd")})
    assert "no error of the model" in f"{raised.value} {raised.value.__cause__} {capfd.readouterr().err}"
