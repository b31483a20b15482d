# SPDX-License-Identifier: Apache-2.0
"""A decoder in Python, for python_decoder.c: the likeliest one of all sets of at most two errors, from a table."""
import math
import re


def errors_of(model):
    """The weight of each error of a model without loops, the detectors that it flips, and the observables."""
    first = 0  # what detector 0 of a line means
    for line in model.splitlines():
        name, arguments, targets = re.match(r"\s*(\w*)(?:\[.*?\])?(?:\(([^)]*)\))?([^#]*)", line).groups()
        if name == "repeat":
            raise ValueError("the model has a loop: make it without --fold_loops")
        if name == "shift_detectors":
            first += int(targets)
        if name == "error" and 0 < float(arguments) < 1:
            flips = {"D": set(), "L": set()}
            for kind, number in re.findall(r"([DL])(\d+)", targets):
                flips[kind] ^= {int(number) + (first if kind == "D" else 0)}  # flipped twice is not flipped
            yield math.log(1 / float(arguments) - 1), frozenset(flips["D"]), frozenset(flips["L"])


def make(model):
    errors = list(errors_of(model))
    answers = {frozenset(): (0.0, frozenset())}  # events -> weight, observables
    for k, (weight, detectors, observables) in enumerate(errors):
        pairs = [(weight + w, detectors ^ d, observables ^ o) for w, d, o in errors[:k]]
        for w, d, o in [(weight, detectors, observables), *pairs]:
            if w < answers.get(d, (math.inf, None))[0]:
                answers[d] = w, o

    def decode(events):
        found = answers.get(frozenset(events))
        return None if found is None else list(found[1])

    return decode
