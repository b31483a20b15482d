# SPDX-License-Identifier: Apache-2.0
"""The network, and its file.

Input [shots, 4, layers, width, width]: events of X stabilizers, events of Z stabilizers, and the two constant planes of
Lattice.planes(). Output [shots, 3, layers, width, width], logits: Z flips, X flips, misread outcomes. Every layer is a
convolution of 3 x 3 x 3 with zeros around the grid; those between the first and the last add their input. So it has no
size: one set of weights serves each distance and number of rounds.

    a = relu(conv(input)); for each layer in between: a = relu(a + conv(a)); logits = conv(a)"""
import json
import math
import struct
import time

import numpy
import torch
from torch import nn
from torch.nn import functional

INPUTS, OUTPUTS = 4, 3
FORMAT = "cudaq-realtime predecoder 1"
DTYPES = {torch.float32: ("F32", "<f4"), torch.float16: ("F16", "<f2")}  # names in safetensors and in numpy


def conv3d(x, weight, bias):
    return functional.conv3d(x, weight, bias, padding=1)


def conv3d_padded(x, weight, bias):
    """The same with numbers of channels that tensor cores take: the first and the last layer have others."""
    outputs, inputs = weight.shape[:2]
    more_out, more_in = -outputs % 8, -inputs % 8
    weight = functional.pad(weight, (0, 0, 0, 0, 0, 0, 0, more_in, 0, more_out))
    x = functional.pad(x, (0, 0, 0, 0, 0, 0, 0, more_in)).contiguous(memory_format=torch.channels_last_3d)
    return functional.conv3d(x, weight, functional.pad(bias, (0, more_out)), padding=1)[:, :outputs]


def conv2d_of_taps(x, weight, bias):
    """The same as a convolution in two dimensions, with the channels of three neighbouring layers as its channels."""
    n, c, t, h, w = x.shape
    padded = functional.pad(x.permute(0, 2, 1, 3, 4), (0, 0, 0, 0, 0, 0, 1, 1))
    taps = torch.cat([padded[:, k:k + t] for k in range(3)], dim=2).reshape(n * t, 3 * c, h, w)
    kernel = weight.permute(0, 2, 1, 3, 4).reshape(weight.shape[0], 3 * c, 3, 3)
    y = functional.conv2d(taps.contiguous(memory_format=torch.channels_last), kernel, bias, padding=1)
    return y.view(n, t, -1, h, w).permute(0, 2, 1, 3, 4)


FORMS = (conv3d, conv3d_padded, conv2d_of_taps)


def choose_convolution(net, run, synchronize):
    """Sets the form of the convolution with which run() is fastest: that depends on the version of cuDNN. Returns the
    seconds of each form; a form that fails has infinity."""
    seconds = {}
    for form in FORMS:
        net.convolution = form
        try:
            for _ in range(3):
                run()
            synchronize()
            begin = time.monotonic()
            for _ in range(3):
                run()
            synchronize()
            seconds[form.__name__] = (time.monotonic() - begin) / 3
        except RuntimeError as failure:
            print(f"{form.__name__}: {str(failure).splitlines()[0]}", flush=True)
            seconds[form.__name__] = math.inf
    net.convolution = min(FORMS, key=lambda form: seconds[form.__name__])
    return seconds


class Network(nn.Module):
    def __init__(self, channels=64, layers=4):
        super().__init__()
        if channels < 1 or layers < 2:
            raise ValueError("a network has 1 channel or more, and 2 layers or more")
        sizes = [INPUTS] + [channels] * (layers - 1) + [OUTPUTS]
        self.channels, self.layers = channels, layers
        self.weights = nn.ParameterList(nn.Parameter(torch.empty(b, a, 3, 3, 3)) for a, b in zip(sizes, sizes[1:]))
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(b)) for b in sizes[1:])
        for k, weight in enumerate(self.weights):
            nn.init.kaiming_normal_(weight, nonlinearity="relu")
            if k == layers - 1:
                weight.data.mul_(0.1)
            elif k > 0:  # a sum of many such layers keeps its scale
                weight.data.mul_((layers - 2)**-0.5)
        nn.init.constant_(self.biases[-1], -4.0)  # flips are rare
        self.convolution = conv3d

    def forward(self, x):
        a = functional.relu(self.convolution(x, self.weights[0], self.biases[0]))
        for weight, bias in zip(self.weights[1:-1], self.biases[1:-1]):
            a = functional.relu(a + self.convolution(a, weight, bias))
        return self.convolution(a, self.weights[-1], self.biases[-1])


def begin_with(net, other):
    """Gives net the weights of another network with as many channels and not more layers. The layers that it has more,
    before the last one, add nothing at first: both networks have the same outputs."""
    more = net.layers - other.layers
    if net.channels != other.channels or more < 0:
        raise ValueError(f"a network of {net.channels} channels and {net.layers} layers cannot begin with one of "
                         f"{other.channels} and {other.layers}")
    with torch.no_grad():
        for own, given in ((net.weights, other.weights), (net.biases, other.biases)):
            for k in range(net.layers):
                if k < other.layers - 1:
                    own[k].copy_(given[k])
                elif k < net.layers - 1:
                    own[k].zero_()
                else:
                    own[k].copy_(given[-1])


def network_input(lattice, events, dtype=torch.float32):
    """Returns the input for events uint8 [2, layers, width, width, shots]."""
    shots = events.shape[-1]
    planes = lattice.planes().to(dtype)[None].expand(shots, -1, -1, -1, -1)
    x = torch.cat([events.permute(4, 0, 1, 2, 3).to(dtype), planes], dim=1)
    return x.contiguous(memory_format=torch.channels_last_3d)


def output_mask(lattice):
    """Returns bool [3, layers, width, width]: the outputs that mean something. The others are ignored."""
    flips = lattice.exists[:, :, None, None] & lattice.data_mask
    misread = lattice.stabilizers.any(0)[None].repeat(lattice.layers, 1, 1)
    misread[-1] = False
    return torch.cat([flips, misread[None]])


def corrections(lattice, logits, threshold=0.0):
    """Returns flips uint8 [2, layers, width, width, shots] and misread [layers, width, width, shots] of the outputs
    above the threshold."""
    chosen = ((logits > threshold) & output_mask(lattice)).permute(1, 2, 3, 4, 0).to(torch.uint8)
    return chosen[:2], chosen[2]


def save(path, state, card, dtype=torch.float32):
    """Writes weights (Network.state_dict(), as float32 or float16) and the card, a dict of texts, as safetensors."""
    arrays = {name: value.detach().cpu().to(dtype).contiguous().numpy() for name, value in sorted(state.items())}
    header, at = {"__metadata__": {"format": FORMAT, **{k: str(v) for k, v in card.items()}}}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": DTYPES[dtype][0], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            out.write(array.tobytes())


def load(path):
    """Returns the network of a file and its card."""
    with open(path, "rb") as file:
        data = file.read()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    card = header.pop("__metadata__", {})
    if card.get("format") != FORMAT:
        raise ValueError(f"{path}: not a predecoder of this program: format {card.get('format')!r}, not {FORMAT!r}")
    state = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        values = numpy.frombuffer(data[begin:end], dict(DTYPES.values())[entry["dtype"]])
        state[name] = torch.from_numpy(values.reshape(entry["shape"]).astype("f4"))
    layers = sum(name.startswith("weights.") for name in state)
    network = Network(state["weights.0"].shape[0], layers)
    network.load_state_dict(state)
    return network, card
