#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a predecoder before PyMatching, beside PyMatching alone on the same shots. Needs numpy, torch, stim and
pymatching 2.3. The shots are sampled on the GPU, and all cores match them.

    evaluate.py --model FILE --cases 13x13z@0.003,9x9z@0.003 --seconds 280 --json FILE

A case is DISTANCExROUNDSbasis@p. For each it prints the residual events per event, the failures of matching alone and
of predecoder and matching, and the ratio of both with a 95 % interval. A ratio of less than 100 failures on either side
is marked: it says little."""
import argparse
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
from lattice import events_of, memory_circuit, observable_of
from sampler import Sampler

matchings = {}


def match(job):
    """Returns, for each shot, whether the answer of each variant is wrong, and the seconds that each took."""
    circuit, alone, truth, variants, correlated = job
    key = circuit, correlated
    if key not in matchings:
        model = stim.Circuit(circuit).detector_error_model(decompose_errors=True)
        matchings.clear()
        matchings[key] = (pymatching.Matching.from_detector_error_model(model),
                          pymatching.Matching.from_detector_error_model(model, enable_correlations=True)
                          if correlated else None)
    plain, with_correlations = matchings[key]
    wrong, seconds = [], []

    def decode(matching, shots, expected, **how):
        begin = time.perf_counter()
        answer = matching.decode_batch(shots, bit_packed_shots=True, **how)[:, 0]
        seconds.append(time.perf_counter() - begin)
        wrong.append(answer.astype(bool) != expected)

    decode(plain, alone, truth)
    for residual, flipped in variants:
        decode(plain, residual, truth ^ flipped)
    if correlated:
        decode(with_correlations, alone, truth, enable_correlations=True)
        decode(with_correlations, variants[0][0], truth ^ variants[0][1], enable_correlations=True)
    return numpy.array(wrong), seconds


def ratio_of(a, b, both):
    """Returns b / a and its 95 % interval, for failures a and b of the same shots, `both` of them together."""
    if a == 0 or b == 0:
        return None
    error = math.sqrt(max(a + b - 2 * both, 1) / (a * b))
    return [b / a, b / a * math.exp(-1.96 * error), b / a * math.exp(1.96 * error)]


class Case:
    def __init__(self, text, o):
        found = re.fullmatch(r"(\d+)x(\d+)([xz])@([0-9.e-]+)", text)
        if not found:
            raise SystemExit(f"--cases: {text!r} is not DISTANCExROUNDSbasis@p, as in 13x13z@0.003")
        distance, rounds, basis, p = int(found[1]), int(found[2]), found[3], float(found[4])
        self.text, self.p = text, p
        ratios = tuple(map(float, o.ratios.split(",")))
        self.sampler = Sampler(distance, rounds, basis, o.device, ratios)
        self.circuit = str(memory_circuit(distance, rounds, basis, p, ratios))
        lattice = self.sampler.lattice
        self.batch = max(64, int(o.batch_sites / (lattice.layers * lattice.width**2)))
        self.shots, self.events, self.network_seconds = 0, 0, 0.0

    def packed(self, events):
        """Returns the events as Stim's b8, one row a shot, and their number."""
        flat = events.sum(0, dtype=torch.uint8).flatten(0, 2)[self.sampler.lattice.detector_place]
        count = int(flat.sum())
        flat = torch.nn.functional.pad(flat, (0, 0, 0, -len(flat) % 8)).view(-1, 8, flat.shape[-1])
        place = torch.arange(8, device=flat.device, dtype=torch.uint8)[:, None]
        return (flat << place).sum(1, dtype=torch.uint8).T.contiguous().cpu().numpy(), count

    def job(self, model, thresholds, generator, correlated):
        lattice = self.sampler.lattice
        gpu = self.sampler.device != "cpu"
        flips, misread = self.sampler.sample(self.batch, self.p, generator)
        events = events_of(lattice, flips, misread)
        truth = observable_of(lattice, flips).cpu().numpy()
        x = network.network_input(lattice, events, torch.bfloat16 if gpu else torch.float32)
        synchronize = torch.cuda.synchronize if gpu else lambda: None
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, enabled=gpu):
            if gpu and self.shots == 0:
                network.choose_convolution(model, lambda: model(x), synchronize)
            synchronize()
            begin = time.perf_counter()
            logits = model(x)
            synchronize()
        self.network_seconds += time.perf_counter() - begin
        alone, count = self.packed(events)
        self.events += count
        variants, counts = [], []
        for threshold in thresholds:
            chosen, read = network.corrections(lattice, logits, threshold)
            residual, left = self.packed(events ^ events_of(lattice, chosen, read))
            variants.append((residual, observable_of(lattice, chosen).cpu().numpy()))
            counts.append(left)
        self.shots += self.batch
        return (self.circuit, alone, truth, variants, correlated), counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--cases", default="13x13z@0.003,13x13x@0.003,9x9z@0.003,9x9z@0.006,13x13z@0.006,17x17z@0.006,"
                                           "21x21z@0.006,13x104z@0.003")
    parser.add_argument("--ratios", default="1,1,1,1",
                        help="noise after gates, of resets, of measurements and of idling data qubits, divided by p")
    parser.add_argument("--thresholds", default="0.5", help="probabilities above which an output is a correction")
    parser.add_argument("--correlated", action="store_true", help="correlated matching, too: alone, and afterwards")
    parser.add_argument("--seconds", type=float, default=280, help="for all cases; the first gets a share of 4")
    parser.add_argument("--failures", type=int, default=1000, help="of matching alone, at which a case ends")
    parser.add_argument("--batch-sites", type=float, default=3e7, help="cells of the grid that are sampled at once")
    parser.add_argument("--seed", type=int, default=12345, help="not the seed of a training")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json")
    o = parser.parse_args()

    model, card = network.load(o.model)
    model.to(o.device).eval()
    if o.device != "cpu":
        model.to(memory_format=torch.channels_last_3d)
    thresholds = [float(p) for p in o.thresholds.split(",")]
    if not all(0 < p < 1 for p in thresholds):
        parser.error(f"--thresholds {o.thresholds}: each is between 0 and 1")
    logits = [math.log(p / (1 - p)) for p in thresholds]
    generator = torch.Generator(o.device).manual_seed(o.seed)
    cases = o.cases.split(",")
    begin, weights, results = time.monotonic(), [4] + [1] * (len(cases) - 1), []
    with multiprocessing.get_context("spawn").Pool(o.processes) as pool:
        for index, text in enumerate(cases):
            case = Case(text, o)
            left = o.seconds - (time.monotonic() - begin)
            end = time.monotonic() + left * weights[index] / sum(weights[index:])
            wrong = together = seconds = None
            pending, residual = [], numpy.zeros(len(thresholds), int)

            def collect():
                nonlocal wrong, together, seconds
                bad, took = pending.pop(0).get()
                bad = bad.astype(numpy.int64)
                wrong = bad.sum(1) + (0 if wrong is None else wrong)
                together = bad @ bad[0] + (0 if together is None else together)
                seconds = numpy.array(took) + (0 if seconds is None else seconds)

            while case.shots == 0 or (time.monotonic() < end and (wrong is None or wrong[0] < o.failures)):
                job, counts = case.job(model, logits, generator, o.correlated)
                residual += counts
                for part in range(0, case.batch, 1024):  # enough pieces for all processes
                    cut = slice(part, part + 1024)
                    pending.append(pool.apply_async(match, ((job[0], job[1][cut], job[2][cut],
                                                             [(r[cut], f[cut]) for r, f in job[3]], job[4]),)))
                while len(pending) > 4 * o.processes + case.batch // 1024:
                    collect()
            while pending:
                collect()
            names = ["matching"] + [f"predecoder {p:g} + matching" for p in thresholds]
            if o.correlated:
                names += ["correlated matching", f"predecoder {thresholds[0]:g} + correlated matching"]
            result = {"case": text, "ratios": o.ratios, "shots": case.shots,
                      "events_per_shot": case.events / case.shots,
                      "residual_events_per_event": dict(zip(o.thresholds.split(","), residual / case.events)),
                      "network_us_per_shot_in_batches": 1e6 * case.network_seconds / case.shots, "decoders": {}}
            for k, name in enumerate(names):
                result["decoders"][name] = {
                    "failures": int(wrong[k]), "rate": wrong[k] / case.shots,
                    "matching_us_per_shot": 1e6 * seconds[k] / case.shots,
                    "ratio_to_matching": ratio_of(int(wrong[0]), int(wrong[k]), int(together[k])) if k else None,
                    "few_failures": bool(min(wrong[0], wrong[k]) < 100)}
            print(json.dumps(result), flush=True)
            results.append(result)
    if o.json:
        with open(o.json, "w") as out:
            json.dump({"model": os.path.basename(o.model), "card": card, "seed": o.seed, "cases": results}, out,
                      indent=1)


if __name__ == "__main__":
    main()
