#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a predecoder before PyMatching, beside PyMatching alone and its correlated matching, on the same shots.
Needs numpy, torch, stim and pymatching 2.3. The shots are sampled on the GPU, and all cores match them.

    evaluate.py --model FILE --json FILE --table FILE
    evaluate.py --model FILE --cases 13x13z@0.003,13x13x@0.006/biased --thresholds 0.5,0.9 --seconds 100

A case is DISTANCExROUNDSbasis@p, with /NAME of noise other than uniform. For each it prints the residual events per
event, the failures of matching alone and of predecoder and matching, and ratios with their 95 % intervals. A ratio of
less than 100 failures on either side is marked: it says little. --table writes the same as a table of Markdown, which
says of each case whether the network is shown to win or to lose."""
import argparse
import itertools
import json
import math
import multiprocessing
import os
import re
import time

import numpy
import pymatching
import stim
import torch

import network
from lattice import RATIOS, events_of, memory_circuit, observable_of
from sampler import Sampler

PIECE = 256  # shots that a process matches at a time
FEW = 100    # failures below which a ratio says little
PLAIN, CORRELATED = "matching", "correlated matching"
CASES = ("9x9z@0.003,9x9x@0.003,13x13z@0.004,13x13x@0.004,13x13z@0.006,13x13x@0.006,13x13z@0.004/readout,"
         "13x13x@0.004/readout,13x13z@0.006/biased,13x13x@0.006/biased,13x13z@0.006/gates,17x17z@0.006,17x17x@0.006,"
         "21x21z@0.006,13x104z@0.005")
matchings = {}


def match(job):
    """Returns, for each way to decode, whether each shot is wrong, and the seconds of all. A way is correlated
    matching or not, of shots whose observable the predecoder has flipped or not."""
    circuit, truth, shots, flipped, correlated = job
    if circuit not in matchings:
        model = stim.Circuit(circuit).detector_error_model(decompose_errors=True)
        matchings.clear()
        matchings[circuit] = [pymatching.Matching.from_detector_error_model(model, enable_correlations=how)
                              for how in range(1 + correlated)]
    wrong, seconds = [], []
    for how, matching in enumerate(matchings[circuit]):
        for one, flip in zip(shots, flipped):
            begin = time.perf_counter()
            answer = matching.decode_batch(one, bit_packed_shots=True, enable_correlations=bool(how))[:, 0]
            seconds.append(time.perf_counter() - begin)
            wrong.append(answer.astype(bool) ^ flip != truth)
    return numpy.array(wrong), numpy.array(seconds)


def ratio_of(a, b, both):
    """Returns b / a and its 95 % interval, for failures a and b of the same shots, `both` of them together."""
    if a == 0 or b == 0:
        return None
    error = math.sqrt(max(a + b - 2 * both, 1) / (a * b))
    return [b / a, b / a * math.exp(-1.96 * error), b / a * math.exp(1.96 * error)]


def ratios_of_case(text):
    """Returns the ratios of the noise that is named in a case: a word of RATIOS, or five numbers."""
    values = RATIOS.get(text) or tuple(map(float, text.split(":") if re.fullmatch(r"[0-9.:]+", text) else ()))
    if len(values) != 5 or not 0 <= values[4] <= 1:
        raise SystemExit(f"--cases: {text!r} is not one of {', '.join(RATIOS)}, nor five numbers as 1:1:5:1:0, the "
                         "last at most 1")
    return values


class Case:
    def __init__(self, text, o):
        found = re.fullmatch(r"(\d+)x(\d+)([xz])@([0-9.e-]+)(?:/(.+))?", text)
        if not found:
            raise SystemExit(f"--cases: {text!r} is not DISTANCExROUNDSbasis@p, as in 13x13z@0.003, or with /NOISE")
        distance, rounds, basis, p = int(found[1]), int(found[2]), found[3], float(found[4])
        self.text, self.p = text, p
        self.noise = found[5] or "uniform"
        ratios = ratios_of_case(self.noise)
        self.sampler = Sampler(distance, rounds, basis, o.device, ratios)
        self.circuit = str(memory_circuit(distance, rounds, basis, p, ratios))
        lattice = self.sampler.lattice
        self.batch = max(64, int(o.batch_sites / (lattice.layers * lattice.width**2)))
        self.shots, self.events, self.network_seconds = 0, 0, 0.0
        self.left = numpy.zeros(len(o.logits), int)

    def packed(self, events):
        """Returns the events as Stim's b8, one row a shot, and their number."""
        flat = events.sum(0, dtype=torch.uint8).flatten(0, 2)[self.sampler.lattice.detector_place]
        count = int(flat.sum())
        flat = torch.nn.functional.pad(flat, (0, 0, 0, -len(flat) % 8)).view(-1, 8, flat.shape[-1])
        place = torch.arange(8, device=flat.device, dtype=torch.uint8)[:, None]
        return (flat << place).sum(1, dtype=torch.uint8).T.contiguous().cpu().numpy(), count

    def jobs(self, model, o, generator):
        """Samples a batch, and returns the pieces of it for match()."""
        lattice = self.sampler.lattice
        gpu = self.sampler.device != "cpu"
        flips, misread = self.sampler.sample(self.batch, self.p, generator)
        events = events_of(lattice, flips, misread)
        truth = observable_of(lattice, flips).cpu().numpy()
        x = network.network_input(lattice, events, torch.bfloat16 if gpu else torch.float32)
        synchronize = torch.cuda.synchronize if gpu else lambda: None
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, enabled=gpu):
            if gpu and not o.is_chosen:
                network.choose_convolution(model, lambda: model(x), synchronize)
                o.is_chosen = True
            synchronize()
            begin = time.perf_counter()
            logits = model(x)
            synchronize()
        self.network_seconds += time.perf_counter() - begin
        alone, count = self.packed(events)
        self.events += count
        shots, flipped = [alone], [numpy.zeros(len(truth), bool)]
        for k, threshold in enumerate(o.logits):
            chosen, read = network.corrections(lattice, logits, threshold)
            residual, left = self.packed(events ^ events_of(lattice, chosen, read))
            shots.append(residual)
            flipped.append(observable_of(lattice, chosen).cpu().numpy())
            self.left[k] += left
        self.shots += self.batch
        for begin in range(0, self.batch, PIECE):  # enough pieces for all processes
            cut = slice(begin, begin + PIECE)
            yield self.circuit, truth[cut], [s[cut] for s in shots], [f[cut] for f in flipped], o.correlated

    def measure(self, model, o, generator, pool, end):
        """Returns the failures of each two ways to decode together, and the seconds of each."""
        together = seconds = 0
        pending = []

        def collect():
            nonlocal together, seconds
            wrong, took = pending.pop(0).get()
            wrong = wrong.astype(numpy.int64)
            together, seconds = together + wrong @ wrong.T, seconds + took

        def is_over():
            return self.shots and (time.monotonic() >= end or
                                   (numpy.ndim(together) and together.diagonal().min() >= o.failures))

        while not is_over():
            for job in self.jobs(model, o, generator):
                pending.append(pool.apply_async(match, (job,)))
            while len(pending) > 2 * o.processes:
                collect()
        while pending:
            collect()
        return together, seconds

    def result(self, o, together, seconds):
        """ratios: of failures, and whether one of the two has few."""
        networks = [f"predecoder {p:g} + " for p in o.thresholds]
        names = [first + decoder for decoder in ([PLAIN, CORRELATED] if o.correlated else [PLAIN])
                 for first in ["", *networks]]
        decoders = {name: {"failures": int(together[k, k]), "rate": together[k, k] / self.shots,
                           "matching_us_per_shot": 1e6 * seconds[k] / self.shots} for k, name in enumerate(names)}
        ratios = {}
        for a, b in itertools.permutations(range(len(names)), 2):
            if names[a] in (PLAIN, CORRELATED) and names[b] != PLAIN:
                failures = int(together[a, a]), int(together[b, b])
                ratios[f"{names[b]} / {names[a]}"] = {"ratio": ratio_of(*failures, int(together[a, b])),
                                                      "few_failures": min(failures) < FEW}
        return {"case": self.text, "noise": self.noise, "shots": self.shots,
                "events_per_shot": self.events / self.shots,
                "residual_events_per_event": {f"{p:g}": left / max(self.events, 1)
                                              for p, left in zip(o.thresholds, self.left)},
                "network_us_per_shot_in_batches": 1e6 * self.network_seconds / self.shots,
                "decoders": decoders, "ratios": ratios}


def verdict(ratio):
    """Whether the second decoder of a ratio is shown to make fewer errors."""
    if ratio["few_failures"] or ratio["ratio"] is None:
        return "too few failures"
    _, low, high = ratio["ratio"]
    return "wins" if high < 1 else "loses" if low > 1 else "not shown"


def table_of(results, thresholds, correlated):
    """Returns the results as a table of Markdown, a row for each case and threshold."""
    def cell(result, above, below):
        one = result["ratios"][f"{above} / {below}"]
        numbers = "" if one["ratio"] is None else "{:.2f} ({:.2f}-{:.2f}), ".format(*one["ratio"])
        return numbers + verdict(one)

    against = [(PLAIN, PLAIN)] + ([(PLAIN, CORRELATED), (CORRELATED, CORRELATED)] if correlated else [])
    head = ["case", "noise", "threshold", "matching alone: failures, us",
            *(["correlated: failures, us"] if correlated else []), "left", "time of matching after it, part",
            *(f"network, {above} / {below}" for above, below in against)]
    rows = [head, ["---"] * len(head)]
    for result, p in itertools.product(results, thresholds):
        of = result["decoders"]
        after = of[f"predecoder {p:g} + {PLAIN}"]["matching_us_per_shot"]
        rows.append([result["case"].split("/")[0], result["noise"], f"{p:g}",
                     f"{of[PLAIN]['failures']} in {result['shots']:,}, {of[PLAIN]['matching_us_per_shot']:.0f}",
                     *([f"{of[CORRELATED]['failures']}, {of[CORRELATED]['matching_us_per_shot']:.0f}"]
                       if correlated else []),
                     f"{result['residual_events_per_event'][f'{p:g}']:.3f}",
                     f"{after / max(of[PLAIN]['matching_us_per_shot'], 1e-9):.2f}",
                     *(cell(result, f"predecoder {p:g} + {above}", below) for above, below in against)])
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--cases", default=CASES, help="noise after the slash: " + ", ".join(RATIOS) + ", or the noise "
                        "after gates, of resets, of measurements and of idling data qubits, divided by p, and the part "
                        "of depolarization that is phase flips, as 1:1:5:1:0")
    parser.add_argument("--thresholds", help="probabilities above which an output is a correction; default: that of "
                                             "the model's card, or 0.5")
    parser.add_argument("--correlated", action=argparse.BooleanOptionalAction, default=True,
                        help="correlated matching, too: alone, and after the predecoder")
    parser.add_argument("--seconds", type=float, default=280, help="for all cases together")
    parser.add_argument("--failures", type=int, default=1000, help="of each way to decode, at which a case ends")
    parser.add_argument("--batch-sites", type=float, default=3e7, help="cells of the grid that are sampled at once")
    parser.add_argument("--seed", type=int, default=12345, help="not the seed of a training")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", help="file for the results")
    parser.add_argument("--table", help="file for the results as a table of Markdown")
    o = parser.parse_args()
    model, card = network.load(o.model)
    texts = o.thresholds or card.get("threshold", "0.5")
    o.thresholds = [float(p) for p in texts.split(",")]
    if not all(0 < p < 1 for p in o.thresholds):
        parser.error(f"--thresholds {texts}: each is between 0 and 1")
    o.logits = [math.log(p / (1 - p)) for p in o.thresholds]
    o.is_chosen = False  # the form of the convolution
    return o, model, card


def main():
    o, model, card = options()
    model.to(o.device).eval()
    if o.device != "cpu":
        model.to(memory_format=torch.channels_last_3d)
    generator = torch.Generator(o.device).manual_seed(o.seed)
    cases, results = o.cases.split(","), []
    begin = time.monotonic()

    def write(path, text):
        if path:
            with open(path, "w") as out:
                out.write(text)

    with multiprocessing.get_context("spawn").Pool(o.processes) as pool:
        for index, text in enumerate(cases):
            case = Case(text, o)
            left = o.seconds - (time.monotonic() - begin)
            end = time.monotonic() + left / (len(cases) - index)
            results.append(case.result(o, *case.measure(model, o, generator, pool, end)))
            print(json.dumps(results[-1]), flush=True)
            # After each case: a run that is cut keeps what it has measured.
            write(o.json, json.dumps({"model": os.path.basename(o.model), "card": card, "seed": o.seed,
                                      "cases": results}, indent=1) + "\n")
            write(o.table, table_of(results, o.thresholds, o.correlated))


if __name__ == "__main__":
    main()
