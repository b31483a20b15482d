#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a network for its users: weights as float16, and the threshold above which an output is a correction.

    publish.py run/model.safetensors surface_code.safetensors --threshold 0.9"""
import argparse

import torch

import network


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a file that train.py has written")
    parser.add_argument("out")
    parser.add_argument("--threshold", type=float, required=True,
                        help="a probability: evaluate.py measures what it costs")
    o = parser.parse_args()
    if not 0 < o.threshold < 1:
        parser.error("--threshold: not between 0 and 1")
    net, card = network.load(o.model)
    if not all(torch.isfinite(value.half()).all() for value in net.parameters()):
        parser.error(f"{o.model}: a weight is not finite as float16")
    card.pop("format")
    network.save(o.out, net.state_dict(), {**card, "threshold": o.threshold}, torch.float16)


if __name__ == "__main__":
    main()
