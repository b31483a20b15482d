# SPDX-License-Identifier: Apache-2.0
"""Handlers that do not return in the grace period, which is short here."""
import gc
import threading
import time
import weakref

import pytest
from cudaq_realtime import Dispatcher, _native

GRACE_NS = 20_000_000


class Waiting:
    """`wait` returns after go_on."""

    def __init__(self):
        self.entered, self.go_on, self.done = (threading.Event() for _ in range(3))

    def wait(self):
        self.entered.set()
        assert self.go_on.wait(60)
        self.done.set()


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
