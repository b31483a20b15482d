#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logical errors with and without what the readout says, for docs/decoders/soft.md. It needs the Python package, with
stim.

    readout_figures.py soft [--shots N] [--distances 5,7,9] [--misread .03,.015,.006] [--noise .003] [--json FILE]
    readout_figures.py stream [--shots N] [--distances 3,5] [--misread .03] [--noise .003] [--json FILE]
    readout_figures.py leakage [--shots N] [--distances 3,5] [--leaks .002] [--noise .003] [--json FILE]

Goal of `soft`: how many shots are wrong if the decoder knows the values of the measurements as float32, as one of 256
or of 16 levels, and if it knows the hard bits only. Goal of `leakage`: the same if it knows which qubits have leaked
when, and if it has the average probabilities. Goal of `stream`: what values gain and cost in windows of a stream, and
beside whole shots. All decoders are `pymatching` and decode the same shots. `soft` and `stream` also give the time of a
shot, and of a repetition of the loop, of one thread; the values are not made in that time. Each shot is pushed in one
call, so a repetition has little of the time of Python; the streams with and without values take turns.

The circuit is Stim's rotated surface code, distance rounds (`stream`: 10 times as many), noise of one strength of
gates, resets and idle data qubits. `soft`, `stream`: the values of all measurements are Gaussians of one width, so
that this share of the hard bits is wrong. `leakage`: a data qubit leaks with this probability at the begin of each
round, and stays so for three rounds. In each of them it and all qubits that have a gate with it are depolarised; then
it is back, in a random state. One flag says for each qubit and round whether it is leaked, and is never wrong.
Measurements have errors of the strength of the noise."""
import argparse
import json
import math
import sys
import time

import numpy as np
import stim
from cudaq_realtime import Decoder, StreamDecoder
from cudaq_realtime.readout import Gaussian, Levels, pack_u4, readout_model
from figure_numbers import interval, numbers

BATCH = 2000
ROUNDS_LEAKED = 3
MEASURES = ("M", "MR")


def surface_code(distance, noise, misread, rounds=None):
    """The measurements have this argument; 0: none."""
    made = stim.Circuit()
    for one in stim.Circuit.generated("surface_code:rotated_memory_z", distance=distance, rounds=rounds or distance,
                                      after_clifford_depolarization=noise, before_round_data_depolarization=noise,
                                      after_reset_flip_probability=noise).flattened():
        made.append(one.name, one.targets_copy(), [misread] if one.name in MEASURES and misread else
                    one.gate_args_copy())
    return made


def gaussian_of(misread):
    """Means 1 and -1."""
    low, high = 0.05, 5.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if Gaussian(1, -1, middle).misread < misread else (low, middle)
    return Gaussian(1, -1, low)


def rate(wrong, shots):
    low, high = interval(wrong, shots)
    return f"{wrong} | {wrong / shots:.2e} ({low:.1e} to {high:.1e})"


def soft_shots(distance, of, noise, shots, seed, rounds=None):
    """Batches: the values of the measurements, events by their hard bits, and flips."""
    sampler = surface_code(distance, noise, 0, rounds).compile_sampler(seed=seed)
    converter = surface_code(distance, noise, of.misread, rounds).compile_m2d_converter()
    random = np.random.default_rng(seed)
    for begin in range(0, shots, BATCH):
        results = sampler.sample(min(BATCH, shots - begin))
        values = np.where(results, np.float32(of.one), np.float32(of.zero))
        values += np.float32(of.sigma) * random.standard_normal(results.shape, dtype=np.float32)
        yield values, *converter.convert(measurements=of.log_ratios(values) < 0, separate_observables=True)


def soft_cases(given):
    """The arguments of a measurement with soft values, for each row of a table."""
    for misread in given.misread:
        for distance in given.distances:
            yield {"distance": distance, "misread": misread, "noise": given.noise, "shots": given.shots,
                   "seed": given.seed}


def measure_soft(distance, misread, noise, shots, seed):
    """Wrong shots and seconds of each decoder."""
    of = gaussian_of(misread)
    noisy = surface_code(distance, noise, of.misread)
    decoders, made = {}, readout_model(noisy, of)
    decoders["hard"] = Decoder("pymatching:smallest_probability=1e-9", made.dem), None
    decoders["f32"] = Decoder("pymatching:smallest_probability=1e-9", made.dem, readout=made.readout), None
    for name, count in (("u8", 256), ("u4", 16)):
        levels = Levels(of, count)
        made = readout_model(noisy, levels)
        decoders[name] = Decoder("pymatching:smallest_probability=1e-9", made.dem, readout=made.readout), levels
    wrong, seconds, differs = dict.fromkeys(decoders, 0), dict.fromkeys(decoders, 0.0), 0
    for values, events, flips in soft_shots(distance, of, noise, shots, seed):
        answers = {}
        for name, (decoder, levels) in decoders.items():
            given = {} if name == "hard" else {"soft": values if levels is None else levels.of(values)}
            if name == "u4":
                given = {"soft": pack_u4(given["soft"]), "soft_kind": "u4"}
            begun = time.thread_time()
            answers[name] = decoder.decode_batch(events, **given)
            seconds[name] += time.thread_time() - begun
            wrong[name] += int((answers[name] != flips).any(axis=1).sum())
        differs += int(((answers["u8"] != flips).any(axis=1) != (answers["f32"] != flips).any(axis=1)).sum())
    return wrong, seconds, differs


def soft(given):
    rows = []
    print("| d | misread | shots | wrong, hard bits | rate (95 %) | wrong, float32 | rate (95 %) | wrong, 8 bits | "
          "wrong, 4 bits | microseconds, hard | microseconds, float32 |\n" + "|---" * 11 + "|")
    for case in soft_cases(given):
        wrong, seconds, differs = measure_soft(**case)
        times = " | ".join(f"{seconds[name] / given.shots * 1e6:.3g}" for name in ("hard", "f32"))
        print(f"| {case['distance']} | {case['misread']} | {given.shots} | {rate(wrong['hard'], given.shots)} | "
              f"{rate(wrong['f32'], given.shots)} | {wrong['u8']} | {wrong['u4']} | {times} |", flush=True)
        rows.append({**case, "wrong": wrong, "seconds": seconds, "u8_differs_from_f32": differs})
    return rows


def measure_stream(distance, misread, noise, shots, seed):
    """Rounds, wrong shots of windows and whole shots, seconds of a repetition, and shots in which both differ in being
    wrong: with values, and with hard bits."""
    of, rounds = gaussian_of(misread), 10 * distance
    made = readout_model(surface_code(distance, noise, of.misread, rounds), of, fold_loops=True)
    tables = {"soft": made.readout, "hard": None}
    streams = {name: StreamDecoder(made.dem, "pymatching:smallest_probability=1e-9", commit=distance, buffer=distance,
                                   readout=table) for name, table in tables.items()}
    whole = {name: Decoder("pymatching:smallest_probability=1e-9", made.dem, readout=table)
             for name, table in tables.items()}
    wrong, seconds, differs = {}, dict.fromkeys(tables, 0.0), dict.fromkeys(tables, 0)
    repetitions = 0
    for values, events, flips in soft_shots(distance, of, noise, shots, seed, rounds):
        answers = {name: np.zeros_like(flips) for name in streams}
        for shot in range(len(events)):
            for name, stream in streams.items():
                before_tail = events.shape[1] - stream.tail_detectors
                begun = time.thread_time()
                stream.reset()
                stream.push(events[shot, :before_tail], **({"soft": values[shot]} if name == "soft" else {}))
                answers[name][shot] = stream.finish(events[shot, before_tail:])
                seconds[name] += time.thread_time() - begun
        some = streams["soft"]
        repetitions += len(events) * ((events.shape[1] - some.head_detectors - some.tail_detectors) //
                                      some.body_detectors)
        for name, table in tables.items():
            in_windows = (answers[name] != flips).any(axis=1)
            in_whole = (whole[name].decode_batch(events, **({"soft": values} if table else {})) != flips).any(axis=1)
            for kind, of_kind in (("windows", in_windows), ("whole", in_whole)):
                wrong[name, kind] = wrong.get((name, kind), 0) + int(of_kind.sum())
            differs[name] += int((in_windows != in_whole).sum())
    return rounds, wrong, {name: seconds[name] / repetitions for name in seconds}, differs


def stream(given):
    rows = []
    print("| d | misread | rounds | shots | wrong with values: windows, whole shots | differ | wrong with hard bits: "
          "windows, whole shots | differ | us a repetition: with values, without |\n" + "|---" * 9 + "|")
    for case in soft_cases(given):
        rounds, wrong, seconds, differs = measure_stream(**case)
        parts = [f"{wrong[name, 'windows']}, {wrong[name, 'whole']} | {differs[name]}" for name in ("soft", "hard")]
        print(f"| {case['distance']} | {case['misread']} | {rounds} | {given.shots} | {' | '.join(parts)} | "
              f"{seconds['soft'] * 1e6:.3g}, {seconds['hard'] * 1e6:.3g} |", flush=True)
        rows.append({**case, "rounds": rounds, "differ": differs, "seconds_of_a_repetition": seconds,
                     "wrong": {f"{name} {kind}": count for (name, kind), count in wrong.items()}})
    return rows


def partners_in_rounds(circuit, distance):
    """Instructions of the circuit, each with its round, and the qubits of data."""
    parts, number = [], 0
    for one in circuit.flattened():
        parts.append((number, one))
        number += one.name == "MR"
    data = sorted(target.value for _, one in parts if one.name == "M" for target in one.targets_copy())
    assert len(data) == distance * distance and number == distance
    return parts, data


def with_leakage(parts, data, noise_of):
    """noise_of(flag): the text of a tag, and the strength of the noise."""
    made, begun = stim.Circuit(), set()
    flag_of = {qubit: k for k, qubit in enumerate(data)}
    for number, one in parts:
        if one.name in ("CX", "H") and number not in begun:  # H and CX of the last round come before its MR
            begun.add(number)
            for qubit in data:
                tag, p = noise_of(number * len(data) + flag_of[qubit])
                made.append("DEPOLARIZE1", [qubit], p, tag=tag)
        made.append(one)
        if one.name != "CX":
            continue
        for a, b in one.target_groups():
            for qubit, other in ((a.value, b.value), (b.value, a.value)):
                if qubit in flag_of:
                    tag, p = noise_of(number * len(data) + flag_of[qubit])
                    made.append("DEPOLARIZE1", [other], p, tag=tag)
    return made


def sample_leakage(parts, data, rounds, leaks, shots, seed):
    """Events, observables, and flags of shots."""
    random = np.random.default_rng(seed)
    leaked = np.zeros((rounds, len(data), shots), dtype=bool)
    for number in range(rounds):
        begins = random.random((len(data), shots)) < leaks
        leaked[number:number + ROUNDS_LEAKED] |= begins
    qubits = max(target.value for _, one in parts for target in one.targets_copy() if target.is_qubit_target) + 1
    simulator = stim.FlipSimulator(batch_size=shots, num_qubits=qubits, seed=seed)
    index_of, begun = {qubit: k for k, qubit in enumerate(data)}, set()

    def depolarise(masks):
        mask = np.zeros((qubits, shots), dtype=bool)
        for qubit, of_qubit in masks:
            mask[qubit] |= of_qubit
        for pauli in "XZ":
            simulator.broadcast_pauli_errors(pauli=pauli, mask=mask, p=0.5)
    for number, one in parts:
        if one.name in ("CX", "H") and number not in begun:
            begun.add(number)
            depolarise([(qubit, leaked[number, k]) for qubit, k in index_of.items()])
        simulator.do(one)
        if one.name == "CX":
            depolarise([(other, leaked[number, index_of[qubit]]) for a, b in one.target_groups()
                        for qubit, other in ((a.value, b.value), (b.value, a.value)) if qubit in index_of])
    return (simulator.get_detector_flips().T, simulator.get_observable_flips().T,
            np.where(leaked.reshape(rounds * len(data), shots).T, 2, 0).astype(np.uint8))


def leakage(given):
    rows = []
    print("| d | shots | wrong with flags | rate (95 %) | wrong without | rate (95 %) | ratio |\n" + "|---" * 7 + "|")
    for distance in given.distances:
        parts, data = partners_in_rounds(surface_code(distance, given.noise, given.noise), distance)
        made = readout_model(with_leakage(parts, data, lambda flag: (f"leakage {flag}", 0.75)))
        knows = Decoder("pymatching", made.dem, readout=made.readout)

        def share(flag):
            rounds = min(flag // len(data) + 1, ROUNDS_LEAKED)
            return "", 0.75 * (1 - (1 - given.leaks) ** rounds)
        average = Decoder("pymatching", with_leakage(parts, data, share).detector_error_model(
            decompose_errors=True, approximate_disjoint_errors=True))
        wrong = np.zeros(2, dtype=int)
        for begin in range(0, given.shots, BATCH):
            events, flips, flags = sample_leakage(parts, data, distance, given.leaks, min(BATCH, given.shots - begin),
                                                  given.seed + begin)
            wrong += [int((answers != flips).any(axis=1).sum()) for answers in (
                knows.decode_batch(events, leakage=flags), average.decode_batch(events))]
        with_flags, without = (int(count) for count in wrong)
        print(f"| {distance} | {given.shots} | {rate(with_flags, given.shots)} | {rate(without, given.shots)} | "
              f"{with_flags / max(1, without):.2f} |", flush=True)
        rows.append({"distance": distance, "leaks": given.leaks, "noise": given.noise, "shots": given.shots,
                     "seed": given.seed, "wrong_with": with_flags, "wrong_without": without})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("soft", "stream", "leakage"))
    parser.add_argument("--shots", type=int, default=20000)
    parser.add_argument("--distances", type=numbers(int), default=[5, 7, 9])
    parser.add_argument("--misread", type=numbers(float), default=[0.03, 0.015, 0.006])
    parser.add_argument("--leaks", type=float, default=0.002)
    parser.add_argument("--noise", type=float, default=0.003)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    given = parser.parse_args()
    rows = {"soft": soft, "stream": stream, "leakage": leakage}[given.what](given)
    if given.json:
        with open(given.json, "w", encoding="ascii") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
