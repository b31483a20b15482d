#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make (or check) the answers of the package relay_bp in this folder, or measure it on a large set.

    python3 -m venv venv && venv/bin/pip install relay_bp==0.2.1 stim==1.15.0 numpy scipy ldpc==2.4.1
    venv/bin/python make_relay_bp_data.py                     # write every file
    venv/bin/python make_relay_bp_data.py --check             # compare the committed files with a fresh run
    venv/bin/python make_relay_bp_data.py --measure PREFIX SHOTS "pre_iter=80 num_sets=60 ..."
                                                              # error rate and time of a set of make_bp_osd_data.py
    venv/bin/python make_relay_bp_data.py --measure PREFIX SHOTS "..." --beside PREDICTIONS.b8
                                                              # and beside those of another decoder, paired

The models and shots are those of make_bp_osd_data.py. A file NAME.relay.meta has for each setting three lines.
setting.K: the settings, as the decoder relay-bp reads them. iterations.K: those of each shot. columns.K: the correction
of each shot, columns separated by commas, "-" if there is none; a shot without a solution ends in "!". The package gets
the memory strengths that our decoder draws (relay_bp_options.h), in 64-bit arithmetic.
"""

import argparse
import math
import pathlib
import sys
import time

import numpy as np
import relay_bp
import stim

from make_bp_osd_data import matrices_of, read_set

MODELS = ("bicycle_72_r6_p0.003", "color_d5_p0.003")
SETTINGS = ("pre_iter=80,num_sets=60,set_max_iter=60,stop_nconv=1,alpha=1,seed=0",
            "pre_iter=20,num_sets=10,set_max_iter=25,stop_nconv=3,alpha=0,alpha_iteration_scaling_factor=2,seed=5",
            "pre_iter=3,num_sets=2,set_max_iter=4,stop_nconv=1,alpha=0.8,seed=9,gamma0=0.25")
MASK = 2**64 - 1
GAMMAS = (-0.24, 0.66)


def mix(z):
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
    return z ^ z >> 31


def strength(seed, leg, column):
    step = 0x9e3779b97f4a7c15
    unit = (mix((mix((seed + leg * step) & MASK) + column * step) & MASK) >> 11) * 2.0**-53
    return GAMMAS[0] + (GAMMAS[1] - GAMMAS[0]) * unit


class Oracle:
    def __init__(self, dem, setting):
        checks, self.flips, probabilities = matrices_of(dem)
        o = dict(one.split("=") for one in setting.split(","))
        legs = int(o["num_sets"])
        gammas = np.array([[strength(int(o["seed"]), leg, k) for k in range(checks.shape[1])]
                           for leg in range(legs + 1)])
        self.decoder = relay_bp.RelayDecoderF64(
            checks, probabilities, alpha=float(o["alpha"]),
            alpha_iteration_scaling_factor=float(o.get("alpha_iteration_scaling_factor", 1)),
            gamma0=float(o.get("gamma0", 0.1)), pre_iter=int(o["pre_iter"]), num_sets=legs,
            set_max_iter=int(o["set_max_iter"]), explicit_gammas=gammas, stop_nconv=int(o["stop_nconv"]))


def golden(folder, name):
    dem = stim.DetectorErrorModel.from_file(folder / f"{name}.dem")
    detections = stim.read_shot_data_file(
        path=str(folder / f"{name}.dets.b8"), format="b8", num_detectors=dem.num_detectors).astype(np.uint8)
    lines = ["relay_bp=0.2.1\n"]
    for k, setting in enumerate(SETTINGS):
        decoder = Oracle(dem, setting).decoder
        answers = [decoder.decode_detailed(row) for row in detections]
        columns = [",".join(map(str, np.flatnonzero(a.decoding))) or "-" for a in answers]
        lines += [f"setting.{k}={setting}\n", f"iterations.{k}=" + " ".join(str(a.iterations) for a in answers) + "\n",
                  f"columns.{k}=" + " ".join(c + ("" if a.success else "!") for c, a in zip(columns, answers)) + "\n"]
    return "".join(lines)


def ratio_interval(only_theirs, only_ours, both):
    """Ours / theirs and its 95 % interval, from shots that are paired: the log of the ratio is about normal."""
    ours, theirs = only_ours + both, only_theirs + both
    if ours == 0 or theirs == 0:
        return None
    half = 1.96 * math.sqrt((only_ours + only_theirs) / (ours * theirs))
    return ours / theirs, ours / theirs * math.exp(-half), ours / theirs * math.exp(half)


def measure(prefix, shots, setting, beside=None):
    dem, detections, truth = read_set(prefix, shots)
    oracle = Oracle(dem, setting)
    failed, iterations, times = [], 0, []
    for row, observables in zip(detections, truth):
        begin = time.thread_time()
        answer = oracle.decoder.decode_detailed(row)
        times.append(time.thread_time() - begin)
        iterations += answer.iterations + answer.success
        failed.append(not answer.success or bool((oracle.flips @ answer.decoding % 2 != observables).any()))
    times = np.array(times) * 1e6
    print(f"relay_bp 0.2.1: {sum(failed)} of {len(truth)} wrong; {times.mean():.1f} us a shot, "
          f"p99 {np.percentile(times, 99):.1f}, p99.9 {np.percentile(times, 99.9):.1f}; "
          f"{times.sum() / iterations:.2f} us an iteration")
    if beside is None:
        return
    given = stim.read_shot_data_file(path=beside, format="b8", num_observables=dem.num_observables)[:len(truth)]
    theirs, ours = np.array(failed), (given != truth[:len(given)]).any(axis=1)
    if len(ours) != len(theirs):
        sys.exit(f"{beside} has {len(ours)} shots, {len(theirs)} are needed")
    counts = int((theirs & ~ours).sum()), int((ours & ~theirs).sum()), int((ours & theirs).sum())
    ratio = ratio_interval(*counts)
    print(f"{beside}: {ours.sum()} wrong; only relay_bp wrong {counts[0]}, only these {counts[1]}, both {counts[2]}; " +
          ("no ratio" if ratio is None else "ratio {:.3f} ({:.3f} to {:.3f})".format(*ratio)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--measure", nargs=3, metavar=("PREFIX", "SHOTS", "SETTING"))
    parser.add_argument("--beside", metavar="PREDICTIONS.b8", help="of the same shots, by cudaq-realtime decode")
    args = parser.parse_args()
    if args.measure:
        return measure(*args.measure, beside=args.beside)
    folder = pathlib.Path(__file__).parent
    for name in MODELS:
        path, text = folder / f"{name}.relay.meta", golden(folder, name)
        if not args.check:
            path.write_text(text)
        elif path.read_text() != text:
            sys.exit(f"{path}: relay_bp gives other answers")


if __name__ == "__main__":
    main()
