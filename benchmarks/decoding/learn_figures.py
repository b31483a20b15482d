#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well rates are learned from detection events, for docs/decoders/learn.md. It needs stim, numpy, and the program
cudaq-realtime.

    learn_figures.py rates [--distances 3,5] [--shots 1000000] [--noise .003] [--seed 1]
    learn_figures.py drift [--distances 5] [--shots 1000000] [--tests 1000000] [--noise .005] [--epochs 3] [--seed 1]

Goal of `rates`: how often the intervals hold the true rate, the root mean square of error over sigma, and the median of
learned over true rate. The rates of the model that it begins with are wrong by a factor of 2, up or down at random.
Then the same with errors tied that have the same shape, in space and time: each group is wrong by one factor.

Goal of `drift`: how many shots are wrong with the model before the drift, with the learned one, and with the true one;
all decode the same shots, which none of them was learned from. Each location of noise in the circuit (an instruction
and its qubits, the same in all rounds) has the rate noise * 4 ** cos(phase + 2 pi epoch / period). Its phase and its
period (2 to 12 epochs) are drawn once, by the seed. The model before the drift is that of epoch 0.

The circuit is Stim's rotated surface code, distance rounds, decomposed errors, matching without correlations. Not
measured: times."""
import argparse
import json
import math
import pathlib
import subprocess
import tempfile
import zlib

import numpy as np
import stim
from figure_numbers import interval, numbers

BATCH = 50000


def surface_code(distance, noise):
    return stim.Circuit.generated("surface_code:rotated_memory_z", distance=distance, rounds=distance,
                                  after_clifford_depolarization=noise, before_round_data_depolarization=noise,
                                  before_measure_flip_probability=noise, after_reset_flip_probability=noise)


def drifted(distance, noise, epoch, seed):
    """The circuit at this epoch: each location of noise by itself."""
    made = stim.Circuit()
    for one in surface_code(distance, noise).flattened():
        if one.name not in ("DEPOLARIZE1", "DEPOLARIZE2", "X_ERROR", "Z_ERROR"):
            made.append(one)
            continue
        size = 2 if one.name == "DEPOLARIZE2" else 1
        targets = one.targets_copy()
        for k in range(0, len(targets), size):
            qubits = targets[k:k + size]
            random = np.random.default_rng([seed, zlib.crc32(one.name.encode()), *(q.value for q in qubits)])
            phase, period = random.uniform(0, 2 * math.pi), random.uniform(2, 12)
            factor = 4 ** math.cos(phase + 2 * math.pi * epoch / period)
            made.append(one.name, qubits, one.gate_args_copy()[0] * factor)
    return made


def model_of(circuit):
    return circuit.detector_error_model(decompose_errors=True).flattened()


def errors_of(model):
    return [one for one in model if one.type == "error"]


def with_factors(model, factors):
    """Each exponent -1/2 ln(1 - 2p) times its factor."""
    made, errors = stim.DetectorErrorModel(), 0
    for one in model:
        if one.type != "error":
            made.append(one)
            continue
        made.append("error", (1 - (1 - 2 * one.args_copy()[0]) ** factors[errors]) / 2, one.targets_copy())
        errors += 1
    return made


def flipped(error):
    """The detectors of all components."""
    odd = set()
    for target in error.targets_copy():
        if target.is_relative_detector_id():
            odd ^= {target.val}
    return odd


class Run:
    """Files in a folder that goes with it, and the program."""

    def __init__(self, program):
        self.program = program
        self.kept = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.kept.name)

    def model(self, name, model):
        (self.folder / name).write_text(str(model) + "\n")

    def shots(self, name, circuit, shots, seed):
        """NAME.b8 and NAME.obs.b8"""
        sampler = circuit.compile_detector_sampler(seed=seed)
        with open(self.folder / f"{name}.b8", "wb") as events, open(self.folder / f"{name}.obs.b8", "wb") as flips:
            for begin in range(0, shots, BATCH):
                some = sampler.sample(min(BATCH, shots - begin), separate_observables=True, bit_packed=True)
                events.write(some[0].tobytes())
                flips.write(some[1].tobytes())

    def report(self, *words):
        run = subprocess.run([self.program, *words, "--json", "report.json"], cwd=self.folder, capture_output=True,
                             text=True, check=False)
        if run.returncode != 0:
            raise SystemExit(f"{self.program} {' '.join(words)}: status {run.returncode}\n{run.stderr}")
        return json.loads((self.folder / "report.json").read_text())

    def learn(self, model, shots, *more):
        return self.report("learn", "--dem", model, "--in", f"{shots}.b8", *more)

    def wrong(self, model, shots):
        """For each shot whether matching with this model is wrong."""
        self.report("decode", "--decoder", "pymatching", "--dem", model, "--in", f"{shots}.b8", "--out", "out.b8")
        answers, truth = (np.fromfile(self.folder / name, np.uint8) for name in ("out.b8", f"{shots}.obs.b8"))
        return answers != truth


def agreement(report, truth):
    """A row of the table, without its head."""
    covered, sigmas, ratios = 0, [], []
    for one in report["errors"]:
        p = truth[one["error"]]
        covered += one["low"] <= p <= one["high"]
        sigmas.append((one["rate"] - p) / one["sigma"])
        ratios.append(one["rate"] / p)
    count, off = len(ratios), np.abs(np.array(ratios) - 1)
    low, high = interval(covered, count)
    return (f"{count} | {100 * covered / count:.1f} % ({100 * low:.1f} to {100 * high:.1f}) | "
            f"{math.sqrt(np.mean(np.square(sigmas))):.3f} | {100 * (np.median(ratios) - 1):+.2f} % | "
            f"{100 * math.sqrt(np.mean(np.square(off))):.1f} % | {100 * np.mean(off <= 0.05):.1f} %")


def crc32_line(run, model):
    return f"cudaq-realtime-tied 1\nmodel {zlib.crc32((run.folder / model).read_bytes()):08x}\n"


def rates(options, run):
    print("| d | shots | errors | rates | in the interval (95 %) | rms of error over sigma | median bias | rms error | "
          "within 5 % |\n|---|---|---|---|---|---|---|---|---|")
    for distance in options.distances:
        circuit = surface_code(distance, options.noise)
        model, random = model_of(circuit), np.random.default_rng(options.seed)
        errors = errors_of(model)
        # Errors with the same detectors cannot be distinguished: one factor.
        sets = {}
        which = [sets.setdefault(frozenset(flipped(error)), len(sets)) for error in errors]
        run.shots("shots", circuit, options.shots, options.seed)
        truth = [error.args_copy()[0] for error in errors]
        run.model("wrong.dem", with_factors(model, 2.0 ** random.choice([-1, 1], len(sets))[which]))
        head = f"| {distance} | {options.shots} |"
        print(f"{head} alone | {agreement(run.learn('wrong.dem', 'shots', '--held-out', '0'), truth)} |", flush=True)
        # Of the same shape: the detectors of the error, moved so that the first one is at the origin.
        at = model.get_detector_coordinates()
        shapes, groups = {}, []
        for error in errors:
            places = sorted((tuple(at[d]) for d in flipped(error)), key=lambda place: (place[2], *place[:2]))
            shape = tuple(tuple(a - b for a, b in zip(place, places[0])) for place in places)
            groups.append(shapes.setdefault(shape, len(shapes)))
        run.model("wrong.dem", with_factors(model, 2.0 ** random.choice([-1, 1], len(shapes))[groups]))
        lines = "".join(f"tie shape{group} {error}\n" for error, group in enumerate(groups))
        (run.folder / "tied.txt").write_text(crc32_line(run, "wrong.dem") + lines)
        report = run.learn("wrong.dem", "shots", "--held-out", "0", "--tied", "tied.txt")
        print(f"{head} tied, {len(shapes)} shapes | {agreement(report, truth)} |", flush=True)


def compared(wrong, true):
    """How many more shots are wrong than with the true model, in %, with its interval of 95 %: the shots are paired."""
    more, unequal = int(wrong.sum()) - int(true.sum()), int((wrong != true).sum())
    return "{:+.1f} % ({:+.1f} to {:+.1f})".format(*(100 * (more + z * math.sqrt(unequal)) / true.sum()
                                                     for z in (0, -1.96, 1.96)))


def drift(options, run):
    print("| d | epoch | tests | wrong, true model | fixed model | more | learned model | more | sigma better |\n"
          "|---|---|---|---|---|---|---|---|---|")
    for distance in options.distances:
        run.model("fixed.dem", model_of(drifted(distance, options.noise, 0, options.seed)))
        sums = None
        for epoch in range(1, options.epochs + 1):
            circuit = drifted(distance, options.noise, epoch, options.seed)
            run.model("true.dem", model_of(circuit))
            run.shots("window", circuit, options.shots, 1000 * options.seed + 2 * epoch)
            run.shots("tests", circuit, options.tests, 1000 * options.seed + 2 * epoch + 1)
            score = run.learn("fixed.dem", "window", "--out", "learned.dem")["score"]["better_by_sigmas"]
            some = {name: run.wrong(f"{name}.dem", "tests") for name in ("true", "fixed", "learned")}
            row(distance, epoch, some, f"{score:.0f}")
            sums = some if sums is None else {name: np.concatenate((sums[name], some[name])) for name in some}
        row(distance, "all", sums, "")


def row(distance, epoch, wrong, score):
    true = wrong["true"]
    others = " | ".join(f"{wrong[name].sum()} | {compared(wrong[name], true)}" for name in ("fixed", "learned"))
    print(f"| {distance} | {epoch} | {len(true)} | {true.sum()} | {others} | {score} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("rates", "drift"))
    parser.add_argument("--program", default="cudaq-realtime", help="path of it")
    parser.add_argument("--distances", type=numbers(int), default=[5])
    parser.add_argument("--shots", type=int, default=1000000, help="to learn from")
    parser.add_argument("--tests", type=int, default=1000000, help="to decode, each epoch")
    parser.add_argument("--noise", type=float)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.noise = options.noise or {"rates": 0.003, "drift": 0.005}[options.what]
    {"rates": rates, "drift": drift}[options.what](options, Run(options.program))


if __name__ == "__main__":
    main()
