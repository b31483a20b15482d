#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden/ from a network of training/predecoder: make_golden.py NETWORK. Needs numpy, torch and stim.

tiny.safetensors is the network, tiny_half.safetensors the same as float16. Of each set of recorded shots,
SET.logits.f32 has PyTorch's outputs for the first shot that has 4 events or more ([layers][width][width][3],
little-endian), and SET.residual.b8 the residual events of all shots, then a byte for each shot with the observable of
the corrections."""
import pathlib
import re
import shutil
import sys

import numpy
import torch

here = pathlib.Path(__file__).resolve().parent
root = here.parents[3]
sys.path.insert(0, str(root / "training/predecoder"))
import network  # noqa: E402
from lattice import Lattice, events_of, observable_of  # noqa: E402

net, _ = network.load(sys.argv[1])
shutil.copy(sys.argv[1], here / "golden/tiny.safetensors")
network.save(here / "golden/tiny_half.safetensors", net.state_dict(), {}, torch.float16)
for name in ("surface_z_d3_p0.003", "surface_z_d5_p0.003"):
    meta = dict(re.findall(r"(\w+)=(\w+)", (root / f"tools/data/{name}.meta").read_text()))
    lattice = Lattice(int(meta["distance"]), int(meta["rounds"]), "z")
    rows = numpy.fromfile(root / f"tools/data/{name}.dets.b8", numpy.uint8).reshape(int(meta["shots"]), -1)
    bits = numpy.unpackbits(rows, axis=1, bitorder="little")[:, :int(meta["num_detectors"])].T
    flat = torch.zeros(lattice.layers * lattice.width**2, bits.shape[1], dtype=torch.uint8)
    flat[lattice.detector_place] = torch.from_numpy(bits.copy())
    flat = flat.view(lattice.layers, lattice.width, lattice.width, -1)
    events = flat * lattice.detector_mask[..., None]
    with torch.no_grad():
        logits = net(network.network_input(lattice, events))
    flips, misread = network.corrections(lattice, logits)
    residual = (events ^ events_of(lattice, flips, misread)).sum(0, dtype=torch.uint8)
    residual = residual.flatten(0, 2)[lattice.detector_place].T.numpy()
    shot = int((bits.sum(0) >= 4).nonzero()[0][0])
    logits[shot].permute(1, 2, 3, 0).contiguous().numpy().astype("<f4").tofile(here / f"golden/{name}.logits.f32")
    with open(here / f"golden/{name}.residual.b8", "wb") as out:
        out.write(numpy.packbits(residual, axis=1, bitorder="little").tobytes())
        out.write(observable_of(lattice, flips).numpy().astype(numpy.uint8).tobytes())
    print(name, "events", bits.sum(), "residual", residual.sum(), "nearest logit", logits.abs().min().item())
