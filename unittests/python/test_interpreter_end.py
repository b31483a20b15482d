# SPDX-License-Identifier: Apache-2.0
"""Threads that are in the library, or in a function of Python that the library has called, when the interpreter ends;
and objects that a child of fork has from its parent."""
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from cudaq_realtime import Decoder, Dispatcher, Pipeline, StreamDecoder

CHAIN = "error(0.01) D0 L0\nerror(0.02) D0 D1\nerror(0.01) D1"
LOOP = """error(0.01) D0 L0
detector(0, 0) D0
repeat 5 {
    error(0.02) D0 D1
    error(0.01) D1 L0
    shift_detectors(0, 1) 1
    detector(0, 0) D0
}
error(0.02) D0 D1
detector(0, 1) D1"""
RACE = "race:bp-osd|relay-bp"

BEGIN = f"""
import threading, time
import numpy as np
from cudaq_realtime import Decoder, Dispatcher, Pipeline, StreamDecoder
CHAIN, LOOP, RACE = {CHAIN!r}, {LOOP!r}, {RACE!r}
entered = threading.Event()
def suppressed(work):
    try:
        work()
    except Exception:
        pass
def daemon(work):
    def repeat():
        while True:
            work()
            entered.set()
    threading.Thread(target=repeat, daemon=True).start()
"""
AT_THE_END = {
    "push": "s = StreamDecoder(LOOP, workers=2, commit=2, buffer=2); daemon(lambda: s.push(np.zeros(1000, np.uint8)))",
    "decode": "d = Decoder('pymatching', CHAIN); X = np.zeros((1000, 2), np.uint8)\n"
              "daemon(lambda: d.decode_batch(X, threads=2))",
    "race": "d = Decoder(RACE, CHAIN); daemon(lambda: d.decode([0]))",
    "stage": "p = Pipeline(lambda shot: entered.set() or np.zeros(1, np.uint8), CHAIN)\n"
             "daemon(lambda: p.run(np.zeros((100000, 2), np.uint8)))",
    "handler": "d = Dispatcher({'h': lambda payload: entered.set() or time.sleep(0.001) or payload}); d.start()\n"
               "daemon(lambda: d.call('h', b'x'))",
    "handler that waits": "d = Dispatcher({'h': lambda payload: entered.set() or time.sleep(1) or payload})\n"
                          "d.start(); daemon(lambda: d.call('h', b'x'))",
    "handler that raises": "def fail(payload): entered.set(); raise ValueError(payload)\n"
                           "d = Dispatcher({'h': fail}); d.start(); daemon(lambda: d.call('h', b'x'))",
    "stage that raises": "def fail(shot): entered.set(); raise ValueError(shot)\n"
                         "p = Pipeline(fail, CHAIN)\n"
                         "daemon(lambda: suppressed(lambda: p.run(np.zeros((1000, 2), np.uint8))))",
}


@pytest.mark.parametrize("work", AT_THE_END.values(), ids=AT_THE_END.keys())
def test_a_daemon_thread_does_not_disturb_the_end_of_the_interpreter(work):
    program = f"{BEGIN}\n{work}\nassert entered.wait(60)\nraise SystemExit(3)"
    for _ in range(2):
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 3, ended.stderr
        assert "leaked" not in ended.stderr


def test_nothing_is_left_of_a_function_with_a_deadline_at_the_end():
    for last in ("", "del mine", "raise SystemExit(0)"):
        program = f"""
import numpy as np
from cudaq_realtime import Decoder, FunctionDecoder
inner = Decoder("lookup", {CHAIN!r})
mine = FunctionDecoder(lambda shot: inner.decode(np.flatnonzero(shot)), {CHAIN!r}, deadline_us=30e6)
assert mine.decode([0]).tolist() == [1]
{last}"""
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")  # no leaks


def test_a_function_that_does_not_return_does_not_stop_the_end():
    program = f"""
import time
from cudaq_realtime import DecodeError, FunctionDecoder
mine = FunctionDecoder(lambda shot: time.sleep(3600), {CHAIN!r}, deadline_us=1000)
try:
    mine.decode([0])
except DecodeError as error:
    raise SystemExit(error.status)"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 9, ended.stderr


def in_child(work):
    """Runs `work` in a child of fork, which then ends as Python does. Returns what it has printed."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork of a process with threads: the subject of the test
        pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            text = repr(work())
        except RuntimeError as refused:
            text = str(refused)
        os.write(write, text.encode())
        sys.exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return text


FORKED = f"""
import sys, warnings
sys.path[:0] = [{os.path.dirname(os.path.abspath(__file__))!r}]
from test_interpreter_end import *
"""


def forked(program):
    """Runs the program, in which `in_child` forks, apart from the test's own threads."""
    ended = subprocess.run([sys.executable, "-c", FORKED + program], capture_output=True, text=True, timeout=90,
                           check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_child_of_fork_decodes_with_a_race_of_its_own():
    assert forked("""
d = Decoder(RACE, CHAIN)
first = d.decode([0]).tolist()
assert in_child(lambda: d.decode([0]).tolist()) == repr(first)
assert in_child(lambda: d.decode_batch(np.ones((50, 2), np.uint8), threads=2).shape) == "(50, 1)"
assert d.decode([0]).tolist() == first
print("right")""") == "right\n"


def test_a_child_of_fork_is_refused_what_needs_a_thread_of_its_parent():
    assert forked("""
s = StreamDecoder(LOOP, workers=2, commit=2, buffer=2)
s.push(np.zeros(3, np.uint8))
d = Dispatcher({"h": lambda payload: payload})
d.start()
for work in (s.reset, lambda: s.push([0]), lambda: s.pushed_bits, d.stop, d.start, lambda: d.call("h", b"x")):
    assert "before fork" in in_child(work), in_child(work)
assert d.call("h", b"y").result == b"y" and s.pushed_bits == 3
print("right")""") == "right\n"


def test_a_child_of_fork_uses_what_has_no_thread():
    assert forked("""
s, p = StreamDecoder(LOOP, commit=2, buffer=2), Pipeline("pymatching", CHAIN)
d = Dispatcher({"h": lambda payload: payload})
s.push(np.zeros(3, np.uint8))
p.run(np.zeros((10, 2), np.uint8))
def serve():
    with d:
        return d.call("h", b"x").result
assert in_child(serve) == repr(b"x")
assert in_child(lambda: s.pushed_bits) == "3"
assert in_child(lambda: p.run(np.zeros((10, 2), np.uint8))[0].shape) == "(10, 1)"
print("right")""") == "right\n"
