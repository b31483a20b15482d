# SPDX-License-Identifier: Apache-2.0
"""Handlers in Python: answers, errors, and the life of the object."""
import gc
import threading
import weakref

import pytest
from cudaq_realtime import Answer, Dispatcher


def test_requests_are_answered_by_name_and_counted():
    handlers = {"count": lambda payload: bytes([len(payload)]), "refuse": lambda payload: (7, b"no")}
    with Dispatcher(handlers, slots=2) as dispatcher:
        for n in range(20):
            assert dispatcher.call("count", bytes(n)) == Answer(0, bytes([n]))
        assert dispatcher.call("refuse") == Answer(7, b"no")
        assert dispatcher.stats()["responded"] == 21
        assert "running" in dispatcher.dump().lower()


def test_an_exception_is_answered_and_its_text_is_kept():
    def fail(payload):
        raise KeyError("the reason")

    with Dispatcher({"fail": fail, "wrong": lambda payload: 5, "good": lambda payload: payload}) as dispatcher:
        assert dispatcher.call("fail").status == -1005
        assert dispatcher.call("wrong").status == -1005
        assert dispatcher.call("good", b"x") == Answer(0, b"x")
        assert "the reason" in dispatcher.errors[0] and len(dispatcher.errors) == 2


def test_statuses_of_the_library_have_their_text():
    with Dispatcher({"long": lambda payload: bytes(1000)}, slot_size=128) as dispatcher:
        assert dispatcher.call("unknown").text == "no handler has this function_id and routing key"
        assert dispatcher.call("long").text == "the handler's result does not fit in the slot"
        with pytest.raises(RuntimeError, match="payload_len is 1000"):
            dispatcher.call("long", bytes(1000))


def test_a_call_without_an_answer_ends_and_the_late_answer_is_dropped():
    go_on = threading.Event()

    def wait(payload):
        go_on.wait(10)
        return payload

    with Dispatcher({"wait": wait, "echo": lambda payload: payload}, slots=1) as dispatcher:
        with pytest.raises(RuntimeError, match="no answer within"):
            dispatcher.call("wait", b"late", timeout=0.05)
        go_on.set()
        assert dispatcher.call("echo", b"next") == Answer(0, b"next")


def test_it_stops_and_starts_again_and_wrong_sizes_are_refused():
    dispatcher = Dispatcher({"echo": lambda payload: payload}, slots=3)
    with pytest.raises(RuntimeError, match="does not run"):
        dispatcher.call("echo", timeout=0.05)
    for _ in range(3):
        with dispatcher:
            assert dispatcher.call("echo", b"a").result == b"a"
            with pytest.raises(RuntimeError, match="is running"):
                dispatcher.start()
            assert dispatcher.call("echo", b"b").result == b"b"
    with pytest.raises(RuntimeError, match="slot_size"):
        Dispatcher({}, slot_size=8)


def test_a_handler_that_refers_to_its_dispatcher_does_not_keep_it():
    holder = []
    dispatcher = Dispatcher({"stats": lambda payload: str(holder[0].stats()).encode()})
    holder.append(dispatcher)
    with dispatcher:
        assert b"received" in dispatcher.call("stats").result
    reference = weakref.ref(dispatcher)
    del dispatcher, holder
    gc.collect()
    assert reference() is None
