#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs public decoders and those of this project on the same shots: see compare_all.sh.

    compare_all.py [--only matching,correlated,qldpc,windows,gpu] [--seconds 20] [--gpu-program PROGRAM] [--seed 1]

Every case samples batches of shots with Stim. All decoders of the case decode each batch, one after another, in one
thread, until --seconds of processor time are spent. Times are those of the thread, of the call that a user would make
(for packages without one for batches: a call for each shot). Making the decoders and sampling are not counted.
"""

import argparse
import datetime
import importlib.metadata
import json
import pathlib
import platform
import shutil
import subprocess
import sys
import time

import ldpc
import matplotlib
import numpy as np
import pymatching
import relay_bp
import stim
from cudaq_realtime import Decoder

matplotlib.use("svg")
matplotlib.rcParams["svg.fonttype"] = "none"
import matplotlib.pyplot as plt  # noqa: E402  (after the choice of its output)

sys.path.append(str(pathlib.Path(__file__).parent.parent / "tools" / "data" / "bp_osd"))
import bivariate_bicycle  # noqa: E402
import make_bp_osd_data  # noqa: E402

MATCHING = [(5, .001), (7, .001), (13, .001), (21, .001), (5, .005), (7, .005), (13, .005)]
ONE_BASIS = [(5, .001), (13, .001), (5, .005), (13, .005)]
CORRELATED = [(5, .003), (7, .003), (13, .003)]
BICYCLES = [(72, 6, .003), (144, 12, .003)]
WINDOWS = [(5, .005), (7, .005)]


def ours(name, model):
    decoder = Decoder(name, model)
    statuses = np.empty(0, dtype=np.int32)

    def decode(events):
        nonlocal statuses
        if len(statuses) != len(events):
            statuses = np.empty(len(events), dtype=np.int32)
        return decoder.decode_batch(events, bit_packed_shots=True, bit_packed_predictions=True, statuses=statuses)

    decode.of_this_project = True
    return decode


def packed_matching(model, correlated=False):
    matching = pymatching.Matching.from_detector_error_model(model, enable_correlations=correlated)
    return lambda events: matching.decode_batch(events, bit_packed_shots=True, bit_packed_predictions=True,
                                                enable_correlations=correlated)


def per_shot(model, decode_one):
    """A decoder with a call for each shot that takes bytes and returns a correction; unpacking is not counted."""
    checks, flips, priors = make_bp_osd_data.matrices_of(model)
    one = decode_one(checks, priors)

    def decode(events):
        rows = np.unpackbits(events, axis=1, count=model.num_detectors, bitorder="little")
        begin = time.thread_time()
        corrections = [one(row) for row in rows]
        spent = time.thread_time() - begin
        answers = (np.array(corrections) @ flips.T % 2).astype(np.uint8)
        return np.packbits(answers, axis=1, bitorder="little"), spent

    return decode


def relay(checks, priors):
    decoder = relay_bp.RelayDecoderF32(checks, priors, alpha=1.0, gamma0=0.1, pre_iter=80, num_sets=60,
                                       set_max_iter=60, gamma_dist_interval=(-0.24, 0.66), stop_nconv=1)
    return decoder.decode


def ordered_statistics(checks, priors):
    decoder = ldpc.BpOsdDecoder(checks, error_channel=list(priors), max_iter=1000,
                                bp_method="minimum_sum", ms_scaling_factor=0, osd_method="OSD_CS", osd_order=10)
    return decoder.decode


def measure(case, circuit, model, decoders, seconds, batch, seed):
    """decoders: {name: function of packed events}. The first one is the base of the ratios."""
    sampler = circuit.compile_detector_sampler(seed=seed)
    spent = dict.fromkeys(decoders, 0.0)
    wrong = dict.fromkeys(decoders, 0)
    differ = dict.fromkeys(decoders, 0)
    shots = 0
    while shots == 0 or sum(spent.values()) < seconds:
        events, truth = sampler.sample(batch, separate_observables=True, bit_packed=True)
        base = None
        for name, decode in decoders.items():
            begin = time.thread_time()
            answer = decode(events)
            used = time.thread_time() - begin
            if isinstance(answer, tuple):
                answer, used = answer
            spent[name] += used
            wrong[name] += int((answer != truth).any(axis=1).sum())
            base = answer if base is None else base
            differ[name] += int((answer != base).any(axis=1).sum())
        shots += batch
    first = next(iter(decoders))
    rows = [dict(case=case, decoder=name, of_this_project=hasattr(decoders[name], "of_this_project"), shots=shots,
                 wrong=wrong[name], differ=differ[name], us_per_shot=1e6 * spent[name] / shots,
                 ratio=spent[name] / spent[first]) for name in decoders]
    for row in rows:
        line = "{case}  {decoder}: {wrong} of {shots} wrong, {us_per_shot:.3g} us a shot, ratio {ratio:.2f}"
        print(line.format(**row), flush=True)
    return rows


def surface(distance, rounds, p):
    return stim.Circuit.generated("surface_code:rotated_memory_z", distance=distance, rounds=rounds,
                                  after_clifford_depolarization=p, after_reset_flip_probability=p,
                                  before_measure_flip_probability=p, before_round_data_depolarization=p)


def one_basis(circuit):
    """Only the detectors of checks that have one in the first round, as the observable does: none can be left out."""
    coordinates = circuit.get_detector_coordinates().values()
    first = {tuple(at[:2]) for at in coordinates if at[2] == 0}
    kept = stim.Circuit()
    for instruction in circuit.flattened():
        if instruction.name != "DETECTOR" or tuple(instruction.gate_args_copy()[:2]) in first:
            kept.append(instruction)
    return kept


def matching(options):
    cases = [(surface(d, d, p), f"surface d={d}, p={p}") for d, p in MATCHING]
    cases += [(one_basis(surface(d, d, p)), f"one basis, d={d}, p={p}") for d, p in ONE_BASIS]
    for circuit, case in cases:
        model = circuit.detector_error_model(decompose_errors=True)
        yield from measure(case, circuit, model,
                           {"PyMatching": packed_matching(model), "pymatching": ours("pymatching", model)},
                           options.seconds, 1000, options.seed)


def correlated(options):
    for distance, p in CORRELATED:
        circuit = surface(distance, distance, p)
        model = circuit.detector_error_model(decompose_errors=True)
        yield from measure(f"surface d={distance}, p={p}", circuit, model,
                           {"PyMatching, correlated": packed_matching(model, True),
                            "pymatching-correlated": ours("pymatching-correlated", model)},
                           options.seconds, 1000, options.seed)


def qldpc(options):
    for code, rounds, p in BICYCLES:
        circuit = bivariate_bicycle.make_circuit(code, rounds, p)
        model = circuit.detector_error_model()
        yield from measure(f"bicycle n={code}, {rounds} rounds, p={p}", circuit, model,
                           {"relay_bp": per_shot(model, relay), "relay-bp": ours("relay-bp:num_sets=60", model),
                            "ldpc, BP+OSD-CS10": per_shot(model, ordered_statistics), "bp-osd": ours("bp-osd", model)},
                           3 * options.seconds, 100, options.seed)


def windows(options):
    for distance, p in WINDOWS:
        circuit = surface(distance, 10 * distance, p)
        model = circuit.detector_error_model(decompose_errors=True)
        yield from measure(f"surface d={distance}, {10 * distance} rounds, p={p}", circuit, model,
                           {"PyMatching, whole shots": packed_matching(model),
                            "pymatching, whole shots": ours("pymatching", model),
                            "pymatching, windows": ours("sliding-window:inner=pymatching", model)},
                           options.seconds, 500, options.seed)


def gpu(options):
    """Round trips of one request through a kernel, beside the smallest loop that could do the work."""
    program = options.gpu_program
    if not program or not shutil.which("nvidia-smi"):
        print("gpu: skipped: it needs a GPU, and --gpu-program with the path of cudaq-realtime-bench")
        return
    report = pathlib.Path("compare_gpu.json")
    subprocess.run([program, "device", "--json", report, "--html", "compare_gpu.html"], check=True)
    yield dict(case="round trips", report=json.loads(report.read_text()))


GROUPS = dict(matching=matching, correlated=correlated, qldpc=qldpc, windows=windows, gpu=gpu)


def table(rows):
    heads = ("case", "decoder", "wrong", "other answers than the first", "us a shot", "time, ratio")
    lines = [" | ".join(heads), " | ".join(["---"] * len(heads))]
    for r in rows:
        if "decoder" in r:
            line = "{case} | {decoder} | {wrong} of {shots} | {differ} | {us_per_shot:.3g} | {ratio:.2f}"
            lines.append(line.format(**r))
    return "".join(f"| {line} |\n" for line in lines)


def plot(groups, path):
    shown = {name: [r for r in rows if "decoder" in r] for name, rows in groups.items()}
    shown = {name: rows for name, rows in shown.items() if rows}
    if not shown:
        return
    figure, axes = plt.subplots(len(shown), 1, figsize=(8, sum(1 + 0.28 * len(r) for r in shown.values())),
                                gridspec_kw={"height_ratios": [1 + len(r) for r in shown.values()]}, squeeze=False)
    for axis, (name, rows) in zip(axes[:, 0], shown.items()):
        at = np.arange(len(rows))
        colours = ["#27c" if r["of_this_project"] else "#888" for r in rows]
        axis.scatter([r["us_per_shot"] for r in rows], at, color=colours, zorder=2)
        axis.grid(axis="x", which="both", color="#ddd", zorder=1)
        axis.set_yticks(at, [f"{r['case']}: {r['decoder']}" for r in rows], fontsize=7)
        axis.invert_yaxis()
        axis.set_xscale("log")
        axis.set_title(f"{name}: microseconds a shot (blue: this project)", fontsize=9)
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(GROUPS))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gpu-program")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - set(GROUPS):
        parser.error(f"--only: unknown {', '.join(sorted(unknown))}; accepted: {', '.join(GROUPS)}")
    groups = {name: list(GROUPS[name](options)) for name in names}
    packages = ("stim", "pymatching", "ldpc", "relay_bp", "numpy", "cudaq-realtime")
    report = dict(date=datetime.date.today().isoformat(), machine=platform.processor() or platform.machine(),
                  versions={p: importlib.metadata.version(p) for p in packages}, seed=options.seed,
                  seconds=options.seconds, groups=groups)
    pathlib.Path("compare_all.json").write_text(json.dumps(report, indent=1) + "\n")
    versions = ", ".join(f"{p} {v}" for p, v in report["versions"].items())
    text = "\n".join(f"## {name}\n\n{table(rows)}" for name, rows in groups.items())
    pathlib.Path("compare_all.md").write_text(f"{report['date']}; {versions}\n\n{text}")
    plot(groups, "compare_all.svg")
    print("written: compare_all.md, compare_all.json, compare_all.svg")


if __name__ == "__main__":
    main()
