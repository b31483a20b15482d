# SPDX-License-Identifier: Apache-2.0
"""Exceptions of handlers and stages whose text cannot be encoded or cannot be made: they are reported as any other."""
import subprocess
import sys

import pytest

EXCEPTIONS = """
import numpy as np
from cudaq_realtime import Dispatcher, Pipeline, StageError


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def a_name_of_a_file():  # as os.listdir gives it for bytes that are no UTF-8
    raise ValueError("cannot read caf\\udce9.dem")


def without_a_text():
    raise Unprintable


def of_the_interpreter():  # which makes the exception only when it is looked at
    return {}["the key"]


"""
HANDLERS = EXCEPTIONS + """
names = a_name_of_a_file, without_a_text, of_the_interpreter
handlers = {one.__name__: lambda payload, one=one: one() for one in names}
with Dispatcher({**handlers, "echo": lambda payload: payload}) as dispatcher:
    for name in handlers:
        assert dispatcher.call(name).status == -1005, name
        assert dispatcher.call("echo", b"x").result == b"x"
    texts = dispatcher.errors
assert "ValueError: cannot read caf\\\\udce9.dem" in texts[0], texts
assert "Unprintable" in texts[1] and "KeyError: 'the key'" in texts[2], texts
print("done")
"""
STAGES = EXCEPTIONS + """
for raised, text in ((a_name_of_a_file, "ValueError: cannot read caf\\\\udce9.dem"), (without_a_text, "Unprintable"),
                     (of_the_interpreter, "KeyError: 'the key'")):
    for stages in {"decoder": "lookup", "predecoder": lambda shot: raised()}, {"decoder": lambda shot: raised()}:
        try:
            Pipeline(stages.pop("decoder"), "error(0.1) D0 L0", **stages).run(np.ones((1, 1), bool))
        except StageError as error:
            assert text in str(error) and "Traceback" in str(error), error
        else:
            raise AssertionError(text)
print("done")
"""


@pytest.mark.parametrize("script", [HANDLERS, STAGES], ids=["handlers", "stages"])
def test_an_exception_without_a_text_in_utf8_is_reported(script):
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
