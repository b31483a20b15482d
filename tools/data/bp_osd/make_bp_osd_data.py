#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make (or check) the answers of the ldpc package in this folder, or large sets for the tables of
docs/decoders/bp_osd.md.

    python3 -m venv venv && venv/bin/pip install stim==1.15.0 ldpc==2.4.1 numpy==2.4.6 scipy==1.17.1
    venv/bin/python make_bp_osd_data.py                   # write every file
    venv/bin/python make_bp_osd_data.py --check           # compare the committed files with a fresh run
    venv/bin/python make_bp_osd_data.py --sets FOLDER     # models and shots of the tables
    venv/bin/python make_bp_osd_data.py --ldpc PREFIX METHOD ITERATIONS SCALING ORDER SHOTS
                                                          # ldpc's error rate and time on such a set

A set NAME is NAME.dem, NAME.dets.b8, and NAME.meta with `key=value` lines. setting.K is METHOD ITERATIONS SCALING ORDER
(order 0: OSD_0, else OSD_CS). For each shot, in order: observables.K has ldpc's answer as a hexadecimal number
(observable 0 is the lowest bit), and weight.K the weight of its errors, the sum of log((1 - p) / p).
"""

import argparse
import math
import pathlib
import sys
import tempfile
import time

import ldpc
import numpy as np
import scipy.sparse
import stim

import bivariate_bicycle

VERSIONS = {"stim": "1.15.0", "ldpc": "2.4.1"}
SETTINGS = (("min_sum", 30, 0.625, 0), ("min_sum", 30, 0, 10), ("product_sum", 30, 1, 0))
SHOTS = 200


def columns_of(dem):
    """Detectors, observables -> probability: whole instructions, equal ones merged as independent errors."""
    columns = {}
    for instruction in dem.flattened():
        if instruction.type != "error":
            continue
        p = instruction.args_copy()[0]
        detectors, observables = set(), set()
        for target in instruction.targets_copy():
            if target.is_relative_detector_id():
                detectors ^= {target.val}
            elif target.is_logical_observable_id():
                observables ^= {target.val}
        if not detectors:
            continue
        key = tuple(sorted(detectors)), tuple(sorted(observables))
        old = columns.get(key, 0.0)
        columns[key] = old * (1 - p) + p * (1 - old)
    return sorted(columns.items())


def matrices_of(dem):
    """A column each: checks (detectors, sparse), flips (observables), and probabilities."""
    columns = columns_of(dem)
    checks = scipy.sparse.lil_matrix((dem.num_detectors, len(columns)), dtype=np.uint8)
    flips = np.zeros((dem.num_observables, len(columns)), dtype=np.uint8)
    for k, ((detectors, observables), _) in enumerate(columns):
        checks[list(detectors), k] = 1
        flips[list(observables), k] = 1
    return checks.tocsr(), flips, np.array([probability for _, probability in columns])


def read_set(prefix, shots):
    """Model, detection events and true observables of the first shots of a set."""
    dem = stim.DetectorErrorModel.from_file(f"{prefix}.dem")
    read = lambda kind, **size: stim.read_shot_data_file(path=f"{prefix}.{kind}.b8", format="b8", **size)[:int(shots)]
    return dem, read("dets", num_detectors=dem.num_detectors).astype(np.uint8), read(
        "obs", num_observables=dem.num_observables)


class Oracle:
    def __init__(self, dem, method, iterations, scaling, order):
        self.checks, self.flips, p = matrices_of(dem)
        self.weights = np.log((1 - p) / p)
        self.decoder = ldpc.BpOsdDecoder(
            self.checks, error_channel=list(p), max_iter=iterations, bp_method=method.replace("min_", "minimum_"),
            ms_scaling_factor=scaling, osd_method="OSD_CS" if order else "OSD_0", osd_order=order)

    def solve(self, detections):
        errors = self.decoder.decode(detections)
        assert (self.checks @ errors % 2 == detections).all()
        return self.flips @ errors % 2, float(self.weights @ errors)


def generated(code, distance, p):
    return stim.Circuit.generated(
        code, distance=distance, rounds=distance, after_clifford_depolarization=p, after_reset_flip_probability=p,
        before_measure_flip_probability=p, before_round_data_depolarization=p)


def code_capacity(code, p):
    """X errors on data qubits, perfect Z checks."""
    hz, logicals = bivariate_bicycle.check_matrices(code)[1], bivariate_bicycle.logical_z(code)
    lines = []
    for q in range(code):
        targets = [f"D{d}" for d in np.flatnonzero(hz[:, q])] + [f"L{k}" for k in np.flatnonzero(logicals[:, q])]
        lines.append(f"error({p}) " + " ".join(targets))
    return stim.DetectorErrorModel("\n".join(lines))


def golden_models():
    circuits = {
        "repetition_d5_p0.02": generated("repetition_code:memory", 5, 0.02),
        "surface_d3_p0.01": generated("surface_code:rotated_memory_z", 3, 0.01),
        "color_d3_p0.01": generated("color_code:memory_xyz", 3, 0.01),
        "color_d5_p0.003": generated("color_code:memory_xyz", 5, 0.003),
        "bicycle_72_r6_p0.003": bivariate_bicycle.make_circuit(72, 6, 0.003),
    }
    models = {name: circuit.detector_error_model() for name, circuit in circuits.items()}
    models["bicycle_72_capacity_p0.04"] = code_capacity(72, 0.04)
    return models


def write_golden(folder, name, dem):
    detections = dem.compile_sampler(seed=len(name)).sample(SHOTS)[0].astype(np.uint8)
    meta = {"format": 1, "name": name, "shots": SHOTS, "ldpc": ldpc.__version__, "stim": stim.__version__}
    for k, setting in enumerate(SETTINGS):
        oracle = Oracle(dem, *setting)
        answers = [oracle.solve(row) for row in detections]
        meta[f"setting.{k}"] = " ".join(str(value) for value in setting)
        meta[f"observables.{k}"] = " ".join(f"{sum(int(bit) << j for j, bit in enumerate(o)):x}" for o, _ in answers)
        meta[f"weight.{k}"] = " ".join(f"{weight:.3f}" for _, weight in answers)
    (folder / f"{name}.dem").write_text(f"{dem}\n")
    (folder / f"{name}.dets.b8").write_bytes(np.packbits(detections, axis=1, bitorder="little").tobytes())
    (folder / f"{name}.meta").write_text("".join(f"{key}={value}\n" for key, value in meta.items()))


def write_sets(folder):
    folder.mkdir(parents=True, exist_ok=True)
    sets = [("bicycle_72_r6_p0.003", bivariate_bicycle.make_circuit(72, 6, 0.003), 20000),
            ("bicycle_72_r6_p0.001", bivariate_bicycle.make_circuit(72, 6, 0.001), 100000),
            ("bicycle_72_r6_both_p0.003", bivariate_bicycle.make_circuit(72, 6, 0.003, both=True), 2000),
            ("bicycle_144_r12_p0.003", bivariate_bicycle.make_circuit(144, 12, 0.003), 2000),
            ("surface_d5_p0.003", generated("surface_code:rotated_memory_z", 5, 0.003), 50000)]
    sets += [(f"color_d{d}_p{p}", generated("color_code:memory_xyz", d, p), 50000)
             for d in (3, 5) for p in (0.001, 0.003)]
    sets += [("bicycle_144_r12_both_p0.003", bivariate_bicycle.make_circuit(144, 12, 0.003, both=True), 2000),
             ("bicycle_288_r18_p0.003", bivariate_bicycle.make_circuit(288, 18, 0.003), 2000)]
    for number, (name, circuit, shots) in enumerate(sets):
        (folder / f"{name}.dem").write_text(f"{circuit.detector_error_model()}\n")
        circuit.compile_detector_sampler(seed=number).sample_write(
            shots, filepath=str(folder / f"{name}.dets.b8"), format="b8",
            obs_out_filepath=str(folder / f"{name}.obs.b8"), obs_out_format="b8")


def measure_ldpc(prefix, method, iterations, scaling, order, shots):
    dem, detections, truth = read_set(prefix, shots)
    oracle = Oracle(dem, method, int(iterations), float(scaling), int(order))
    wrong, used, seconds = 0, 0, 0.0
    for row, observables in zip(detections, truth):
        begin = time.thread_time()
        errors = oracle.decoder.decode(row)
        seconds += time.thread_time() - begin
        used += not oracle.decoder.converge
        wrong += bool((oracle.flips @ errors % 2 != observables).any())
    n, z = len(truth), 1.96  # Wilson's interval, 95 %
    middle, half = wrong / n + z * z / (2 * n), z * math.sqrt(wrong / n * (1 - wrong / n) / n + z * z / (4 * n * n))
    print(f"{wrong} of {n} wrong: {wrong / n:.3g} ({(middle - half) / (1 + z * z / n):.3g}-"
          f"{(middle + half) / (1 + z * z / n):.3g}); OSD {100 * used / n:.2f} %, {seconds / n * 1e6:.1f} us a shot")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; compare")
    parser.add_argument("--sets", type=pathlib.Path, metavar="FOLDER", help="write the sets of the tables there")
    parser.add_argument("--ldpc", nargs=6, metavar=("PREFIX", "METHOD", "ITERATIONS", "SCALING", "ORDER", "SHOTS"))
    args = parser.parse_args()
    for module in (stim, ldpc):
        if module.__version__ != VERSIONS[module.__name__]:
            sys.exit(f"{module.__name__} is {module.__version__}, the data is made with {VERSIONS[module.__name__]}")
    if args.sets:
        return write_sets(args.sets)
    if args.ldpc:
        return measure_ldpc(*args.ldpc)

    here = pathlib.Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) if args.check else here
        folder.mkdir(exist_ok=True)
        for name, dem in golden_models().items():
            write_golden(folder, name, dem)
        if not args.check:
            return print("all files written")
        bad = [f.name for f in sorted(folder.iterdir()) if f.read_bytes() != (here / f.name).read_bytes()]
        if bad:
            sys.exit("different: " + ", ".join(bad))
    print("all files as committed")


if __name__ == "__main__":
    main()
