#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A wheel does its work where nothing else of the project is: wheel_trial.py PROCESSOR, for the Python of an
environment that has the wheel and its dependencies only. Every decoder decodes; the library of clients is loaded, and
finds that no server answers. The command of the wheel decodes, plays to its own server, and looks at the machine. No
packages of tests are needed."""
import os
import pathlib
import platform
import re
import socket
import subprocess
import sys

import numpy as np

import cudaq_realtime
from cudaq_realtime import Decoder
from cudaq_realtime.client import Client

assert platform.machine() == sys.argv[1], f"this Python is of {platform.machine()}"
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
    port = silent.getsockname()[1]
    try:
        with Client("udp", silent.getsockname(), timeout=0.3) as client:
            client.corrections(0)
        raise AssertionError("a client had an answer without a server")
    except TimeoutError:
        pass
print(f"{len(cudaq_realtime.decoder_names())} decoders and the client work, Python {sys.version.split()[0]}")

program = str(pathlib.Path(sys.prefix) / "bin" / "cudaq-realtime")


def output_of(*arguments, status=0):
    """What the command writes to both of its outputs."""
    done = subprocess.run([program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=300)
    assert done.returncode == status, f"cudaq-realtime {arguments}: status {done.returncode}:\n{done.stdout}"
    return done.stdout


share = where.parent / "share"
shots = share / "cudaq-realtime" / "data" / "surface_z_d3_p0.005"
assert cudaq_realtime.__version__ in output_of("--version").replace("-", "")  # 1.0.0rc1, and 1.0.0-rc1
wrong = re.search(r"logical errors +(\d+) of (\d+)", output_of(
    "decode", "--dem", f"{shots}.dem", "--in", f"{shots}.dets.b8", "--obs_in", f"{shots}.obs.b8", "--out", "/dev/null"))
assert wrong and 0 < int(wrong[1]) < int(wrong[2]) / 10, wrong
output_of("demo", "--config", "d3", "--shots", "200")
output_of("info")
checks = subprocess.run([program, "doctor"], stdout=subprocess.PIPE, text=True, check=False, timeout=300)
assert checks.returncode in (0, 1) and "self-test" in checks.stdout, checks  # 1: what a machine for experiments has not
for page in set(re.findall(r"share/(doc/cudaq-realtime/[\w/.]+\.md)", output_of("help", "serve"))):
    assert (share / page).exists(), f"help names {page}"
for header in ("cudaq/qec/decoding/decoder_plugin.h", "cudaq/realtime/daemon/bridge/bridge_interface.h"):
    assert (where.parent / "include" / header).exists(), header
config = pathlib.Path("decoders.yaml")
config.write_text(f'decoders: [{{id: 0, type: pymatching, dem_file: "{shots}.dem"}}]\n')
server = subprocess.Popen([program, "serve", "--config", config, "--transport", "udp", "--", f"--port={port}",
                           "--unified"], stdout=subprocess.PIPE, text=True)
try:
    ready = server.stdout.readline()
    assert "READY" in ready, ready
    played = output_of("emulate", "--transport", "udp", "--port", port, "--config", "d3", "--shots", 500)
    assert "500 of 500 as expected" in played, played
finally:
    server.terminate()
assert server.wait(timeout=60) == 0
os.remove(config)
print(f"{program}: decodes, plays to its own server, looks at this machine")
