# SPDX-License-Identifier: Apache-2.0
"""Decoders, streams, a client, dispatcher and pipeline of CUDA-Q Realtime. docs/packages/python.md is the guide.

>>> import cudaq_realtime
>>> decoder = cudaq_realtime.Decoder("lookup", "error(0.01) D0 L0\\nerror(0.02) D0 D1\\nerror(0.01) D1")
>>> decoder.decode([0])
array([1], dtype=uint8)
"""
import atexit
import threading

from ._native import decoder_names, expect_leaks, pymatching_version, rpc_status_text
from ._native import version as __version__
from .client import Client, ServerError, ServerRestarted
from .decoders import Decoder, DecodeError
from .dispatcher import Answer, Dispatcher
from .function_decoder import FunctionDecoder
from .learning import Learned, ShotsRefused, learn
from .pipeline import Pipeline, Report, StageError
from .stream import StreamDecoder

__all__ = ["Answer", "Client", "Decoder", "DecodeError", "Dispatcher", "FunctionDecoder", "Learned", "Pipeline",
           "Report", "ServerError", "ServerRestarted", "ShotsRefused", "StageError", "StreamDecoder", "decoder_names",
           "learn", "pymatching_version", "rpc_status_text", "__version__"]


def _end() -> None:
    """Daemon threads that still run never give back what they use; without them a leak is a fault, and is reported."""
    if any(thread.daemon for thread in threading.enumerate()):
        expect_leaks()


atexit.register(_end)
