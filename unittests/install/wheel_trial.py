#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A wheel does its work where nothing else of the project is: wheel_trial.py, for the Python of an environment that has
the wheel and its dependencies only. Every decoder decodes; the library of clients is loaded, and finds that no server
answers. No packages of tests are needed."""
import pathlib
import socket
import sys

import numpy as np

import cudaq_realtime
from cudaq_realtime import Decoder
from cudaq_realtime.client import Client

where = pathlib.Path(cudaq_realtime.__file__).resolve()
assert pathlib.Path(sys.prefix).resolve() in where.parents, f"{where} is not of the environment {sys.prefix}"
MODEL = "error(0.01) D0 L0\nerror(0.02) D0 D1\nerror(0.01) D1\n"
for name in cudaq_realtime.decoder_names():
    decoder = Decoder(name, MODEL)
    assert decoder.decode([0]).tolist() == [1] and decoder.decode([1]).tolist() == [0], name
    rows = np.array([[True, False], [False, True], [False, False]])
    assert decoder.decode_batch(rows).astype(int).ravel().tolist() == [1, 0, 0], name
assert "pymatching" in cudaq_realtime.decoder_names(), cudaq_realtime.decoder_names()
try:
    Decoder("pymatching", "error(0.1) D0 D1 D2")
    raise AssertionError("a model that matching cannot take was accepted")
except ValueError:
    pass
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
    silent.bind(("127.0.0.1", 0))
    try:
        with Client("udp", silent.getsockname(), timeout=0.3) as client:
            client.corrections(0)
        raise AssertionError("a client had an answer without a server")
    except TimeoutError:
        pass
print(f"{len(cudaq_realtime.decoder_names())} decoders and the client work, Python {sys.version.split()[0]}")
