# SPDX-License-Identifier: Apache-2.0
"""Handlers and stages that do not return in the grace period, which is short here."""
import functools
import gc
import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest
from cudaq_realtime import Dispatcher, Pipeline, _native

GRACE_NS = 20_000_000
CHAIN = "error(0.01) D0 L0\nerror(0.02) D0 D1\nerror(0.01) D1"


class Waiting:
    """`wait` returns after go_on."""

    def __init__(self):
        self.entered, self.go_on, self.done = (threading.Event() for _ in range(3))

    def wait(self):
        self.entered.set()
        assert self.go_on.wait(60)
        self.done.set()


def interrupted(run, waiting):
    """Calls `run`, and sends Ctrl-C when it waits."""
    def interrupt():
        assert waiting.entered.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        run()
    thread.join(60)


def test_a_handler_that_outlives_its_dispatcher_keeps_its_memory():
    waiting = Waiting()

    def handler(payload):
        waiting.wait()
        return 0, payload

    kept = weakref.ref(handler)
    dispatcher = _native.NativeDispatcher(2, 128, grace_period_ns=GRACE_NS)
    dispatcher.add("wait", handler)
    dispatcher.start()
    with pytest.raises(RuntimeError, match="no answer within"):
        dispatcher.call("wait", b"", 0.05)
    assert waiting.entered.wait(60)
    with pytest.raises(RuntimeError):
        dispatcher.stop()
    del dispatcher, handler
    gc.collect()
    waiting.go_on.set()
    assert waiting.done.wait(60)
    time.sleep(0.1)  # the handler returns, and its thread uses what the object had
    assert kept() is not None


def test_the_wait_for_another_caller_is_a_part_of_the_timeout():
    waiting = Waiting()

    def handler(payload):
        waiting.wait()
        return payload

    texts = []

    def impatient():
        try:
            dispatcher.call("wait", timeout=0.05)
        except RuntimeError as error:
            texts.append(str(error))

    with Dispatcher({"wait": handler}) as dispatcher:
        first = threading.Thread(target=dispatcher.call, args=("wait",), kwargs={"timeout": 300})
        second = threading.Thread(target=impatient)
        first.start()
        assert waiting.entered.wait(60)
        second.start()
        second.join(60)
        has_ended = not second.is_alive()
        waiting.go_on.set()
        first.join(60)
        second.join(60)
    assert has_ended and "no answer within 0.05" in texts[0]


def test_a_stage_that_outlives_its_pipeline_keeps_its_memory():
    waiting = Waiting()

    def predecode(packed):
        waiting.wait()
        return packed + b"\0"

    kept = weakref.ref(predecode)
    native = _native.NativePipeline("lookup", CHAIN, 1, 4, predecode, None, grace_period_ns=GRACE_NS)
    arrays = [np.zeros((1, 1), np.uint8), np.zeros((1, 1), np.uint8), np.zeros(1, np.int32), np.zeros(1, np.int64),
              np.zeros((1, 2), np.int64)]
    interrupted(functools.partial(native.run, *arrays, 0), waiting)
    del native, predecode
    gc.collect()
    waiting.go_on.set()
    assert waiting.done.wait(60)
    time.sleep(0.1)  # the stage returns, and its thread uses what the object had
    assert kept() is not None


def test_a_pipeline_runs_again_when_its_stage_has_returned(monkeypatch):
    waiting = Waiting()
    monkeypatch.setattr(_native, "NativePipeline",
                        functools.partial(_native.NativePipeline, grace_period_ns=GRACE_NS))

    def predecoder(shot):
        if not waiting.go_on.is_set():
            waiting.wait()
        return shot

    pipeline = Pipeline("lookup", CHAIN, predecoder=predecoder, workers=1)
    shots = np.zeros((3, 2), dtype=bool)
    interrupted(functools.partial(pipeline.run, shots), waiting)
    with pytest.raises(RuntimeError, match="a stage of the last run has not returned"):
        pipeline.run(shots)
    waiting.go_on.set()
    assert waiting.done.wait(60)
    for _ in range(100):  # each attempt waits for a while
        try:
            predictions, _ = pipeline.run(shots)
            break
        except RuntimeError as error:
            last = error
    else:
        raise last
    assert predictions.tolist() == [[0]] * 3
