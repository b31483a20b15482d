#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make (or check) the committed shot sets of this folder.

    python3 -m venv venv && venv/bin/pip install stim==1.15.0 pymatching==2.3.1 numpy==2.4.6
    venv/bin/python make_data.py            # write every set
    venv/bin/python make_data.py --check    # compare the committed files with their .meta, then with a fresh run
    venv/bin/python make_data.py --pipeline FOLDER [--noise 0.003 0.006] [--shots 200]
                                            # the configurations of the pipeline, which are too large to commit

README.md describes the files.
"""

import argparse
import hashlib
import pathlib
import sys
import tempfile

import numpy as np
import pymatching
import stim

VERSIONS = {"stim": "1.15.0", "pymatching": "2.3.1"}
SEED = 20240501
# distance (= rounds) -> shots; fewer shots for sets with long rows.
SHOTS = {3: 1000, 5: 1000, 7: 800, 13: 500}
NOISE = (0.003, 0.005)
# For this distance and larger ones, Stim's own text is too long to commit (880 kB at d=13).
FIRST_MERGED_DISTANCE = 7
PROBABILITY_DIGITS = 12
FILES = ("dem", "dets.b8", "obs.b8", "pred.b8")
# The answers of correlated matching, for the sets whose model keeps the components of an error together.
CORRELATED = "corr.b8"


# distance, rounds, basis: as in lib/qec/decoding/decoding_config.h.
PIPELINE = ((7, 7, "z"), (13, 13, "z"), (21, 21, "x"), (31, 31, "z"), (13, 104, "z"))


def make_circuit(distance, rounds, basis, p):
    return stim.Circuit.generated(
        f"surface_code:rotated_memory_{basis}", distance=distance, rounds=rounds,
        after_clifford_depolarization=p, after_reset_flip_probability=p,
        before_measure_flip_probability=p, before_round_data_depolarization=p)


def matching_edges(dem):
    """Every edge of the matching graph: (detectors, observables) -> probability.

    Components of a decomposed error are independent errors, and parallel edges are merged as
    independent errors. PyMatching does the same with this model.
    """
    edges = {}
    for instruction in dem.flattened():
        if instruction.type != "error":
            continue
        p = instruction.args_copy()[0]
        for component in instruction.target_groups():
            detectors = tuple(sorted(t.val for t in component if t.is_relative_detector_id()))
            observables = tuple(sorted(t.val for t in component if t.is_logical_observable_id()))
            assert 1 <= len(detectors) <= 2, component
            old = edges.get((detectors, observables), 0.0)
            edges[detectors, observables] = old * (1 - p) + p * (1 - old)
    assert len({d for d, _ in edges}) == len(edges), "parallel edges with different observables"
    return edges


def layers_of(dem, edges):
    """Splits the edges by the time layer of their first detector.

    Returns, per layer, the index of its first detector and the text of its edges with
    detector numbers relative to it.
    """
    layer_of = [int(c[2]) for _, c in sorted(dem.get_detector_coordinates().items())]
    assert layer_of == sorted(layer_of), "detectors are not numbered by time"
    starts = [layer_of.index(t) for t in range(layer_of[-1] + 1)]
    texts = [[] for _ in starts]
    for (detectors, observables), p in sorted(edges.items()):
        start = starts[layer_of[detectors[0]]]
        targets = [f"D{d - start}" for d in detectors] + [f"L{o}" for o in observables]
        texts[layer_of[detectors[0]]].append(f"error({p:.{PROBABILITY_DIGITS}g}) " + " ".join(targets))
    return starts, texts


def merged_text(dem):
    """The matching graph of dem as a model in which equal consecutive rounds become one repeat block."""
    starts, layers = layers_of(dem, matching_edges(dem))
    lines, at = [], 0
    while at < len(layers):
        end = at + 1
        while end < len(layers) and layers[end] == layers[at]:
            end += 1
        # The step to the next layer must be the same within this run of layers.
        step = starts[at + 1] - starts[at] if at + 1 < len(layers) else 0
        body = layers[at] + ([f"shift_detectors {step}"] if step else [])
        if end - at > 1 and all(starts[k + 1] - starts[k] == step for k in range(at, end)):
            lines += [f"repeat {end - at} {{", *("    " + line for line in body), "}"]
            at = end
        else:
            lines += body
            at += 1
    return "\n".join(lines) + "\n"


def pack_rows(bits):
    return np.packbits(bits, axis=1, bitorder="little").tobytes()


def make_set(folder, distance, p, shots, rounds=None, basis="z"):
    rounds = rounds or distance
    name = f"surface_{basis}_d{distance}" + ("" if rounds == distance else f"_t{rounds}") + f"_p{p:g}"
    circuit = make_circuit(distance, rounds, basis, p)
    stim_dem = circuit.detector_error_model(decompose_errors=True)
    merged = distance >= FIRST_MERGED_DISTANCE
    text = merged_text(stim_dem) if merged else str(stim_dem) + "\n"
    dem = stim.DetectorErrorModel(text)
    assert (dem.num_detectors, dem.num_observables) == (stim_dem.num_detectors, stim_dem.num_observables)

    sampler = circuit.compile_detector_sampler(seed=SEED + 1000 * distance + round(p * 1e5))
    detections, observables = sampler.sample(shots, separate_observables=True)
    predictions = pymatching.Matching.from_detector_error_model(dem).decode_batch(detections)
    reference = pymatching.Matching.from_detector_error_model(stim_dem).decode_batch(detections)
    assert (predictions == reference).all(), f"{name}: merging changed a prediction"

    content = {"dem": text.encode(), "dets.b8": pack_rows(detections), "obs.b8": pack_rows(observables),
               "pred.b8": pack_rows(predictions)}
    correlated = None
    if not merged:
        matching = pymatching.Matching.from_detector_error_model(dem, enable_correlations=True)
        correlated = matching.decode_batch(detections, enable_correlations=True)
        content[CORRELATED] = pack_rows(correlated)
    meta = {
        "format": 1, "name": name, "code": f"surface_code:rotated_memory_{basis}", "distance": distance,
        "rounds": rounds, "noise": f"{p:g}", "shots": shots, "num_detectors": dem.num_detectors,
        "num_observables": dem.num_observables,
        "offline_logical_errors": int((predictions != observables).any(axis=1).sum()),
        "observable_flips": int(observables.any(axis=1).sum()), "detection_events": int(detections.sum()),
        "dem_form": "matching_graph" if merged else "stim", "stim": stim.__version__,
        "pymatching": pymatching.__version__,
    }
    if correlated is not None:
        meta["correlated_logical_errors"] = int((correlated != observables).any(axis=1).sum())
    for suffix in content:
        (folder / f"{name}.{suffix}").write_bytes(content[suffix])
        meta[f"sha256.{suffix}"] = hashlib.sha256(content[suffix]).hexdigest()
    (folder / f"{name}.meta").write_text("".join(f"{k}={v}\n" for k, v in meta.items()))
    size = sum(len(c) for c in content.values())
    print(f"{name}: {meta['detection_events'] / shots:.1f} events a shot, {meta['observable_flips']} flips, "
          f"{meta['offline_logical_errors']} logical errors in {shots} shots, {size} bytes")


def check_hashes(folder):
    bad = []
    for meta in sorted(folder.glob("*.meta")):
        keys = dict(line.split("=", 1) for line in meta.read_text().splitlines() if line)
        for suffix in (*FILES, CORRELATED):
            if suffix == CORRELATED and f"sha256.{suffix}" not in keys:
                continue
            data = (folder / f"{keys['name']}.{suffix}").read_bytes()
            if hashlib.sha256(data).hexdigest() != keys[f"sha256.{suffix}"]:
                bad.append(f"{keys['name']}.{suffix}")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; compare")
    parser.add_argument("--pipeline", type=pathlib.Path, metavar="FOLDER", help="write the pipeline's sets there")
    parser.add_argument("--noise", type=float, nargs="+", default=[0.003], help="with --pipeline")
    parser.add_argument("--shots", type=int, default=200, help="with --pipeline, in each set")
    args = parser.parse_args()
    for module in (stim, pymatching):
        if module.__version__ != VERSIONS[module.__name__]:
            sys.exit(f"{module.__name__} is {module.__version__}, the data is made with {VERSIONS[module.__name__]}")

    if args.pipeline:
        args.pipeline.mkdir(parents=True, exist_ok=True)
        for distance, rounds, basis in PIPELINE:
            for p in args.noise:
                make_set(args.pipeline, distance, p, args.shots, rounds, basis)
        return

    here = pathlib.Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) if args.check else here
        for distance in SHOTS:
            for p in NOISE:
                make_set(folder, distance, p, SHOTS[distance])
        if not args.check:
            return
        bad = check_hashes(here)
        bad += [f.name for f in sorted(folder.iterdir())
                if not (here / f.name).exists() or f.read_bytes() != (here / f.name).read_bytes()]
        if bad:
            sys.exit("different: " + ", ".join(sorted(set(bad))))
        print("all files as committed")


if __name__ == "__main__":
    main()
