#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every decoder of this build on the same shots: the table of docs/concepts/which_decoder.md, in one command.

    all_decoders.py [--program build/release/benchmarks/cudaq-realtime-bench] [--shots 20000] [--seconds 300]
                    [--decoder NAME] [--json FILE] [MODEL.dem ...]

Goal: how often each decoder is wrong, and how long a shot takes: on a model with edges, on one without, and on small
ones for the decoders that take no others. --decoder adds one, such as the path of a plug-in. Each decoder runs
alone, in a process of `cudaq-realtime-bench decoding` with the same seed, so all decode the same shots. The mean is
processor time of the thread that decodes, p50 and p99 are times of the clock: on a machine with other work p99 is that
of the machine. A race has other threads, so its mean is of the clock, too. The reason of a refusal stands below the
table. Not measured: rounds of a stream as they arrive. Status: 0, or 1 if no decoder has decoded."""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# With edges, without; for the table of answers; for windows, which need a loop with coordinates.
MODELS = ("surface_z_d5_p0.005.dem", "bp_osd/bicycle_72_r6_p0.003.dem", "surface_z_d3_p0.005.dem",
          "surface_loop_d3_p0.004.dem")
NETWORK = ROOT / "training/predecoder/weights/surface_128x6.safetensors"
DECODERS = ("auto", "pymatching", "pymatching-correlated", "lookup", "bp-osd", "relay-bp", "relay-bp-gpu",
            f"model-gpu:weights={NETWORK}", "sliding-window:commit=3,buffer=3", "race:relay-bp|bp-osd")


def measure(program, model, decoder, arguments):
    """The case of the report, or the text of the refusal."""
    command = [str(program), "decoding", "--dem", str(model), "--decoder", decoder, "--shots", str(arguments.shots),
               "--seed", "1", "--json"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=arguments.seconds)
    except subprocess.TimeoutExpired:
        return f"longer than {arguments.seconds} s"
    try:
        report = json.loads(ended.stdout)
    except ValueError:
        return f"status {ended.returncode}, no report: {ended.stderr.strip()}"
    # The text begins with the option and the model, which the table has.
    return report["cases"][0] if report["ok"] else report["error"].removeprefix(f"--dem {model}: ")


def microseconds(nanoseconds):
    return f"{float(f'{nanoseconds / 1e3:.2g}'):,g}"


def cells(case):
    low, high = case["interval_95"]
    mean = case["shot_ns"]["mean"] if case["name"].startswith("race") else case["cpu_ns_per_shot"]
    unanswered = f", of these {case['unanswered']} without an answer" if case["unanswered"] else ""
    times = " | ".join(microseconds(ns) for ns in (mean, case["shot_ns"]["p50"], case["shot_ns"]["p99"]))
    return f"{case['failures']} ({low:.1e} to {high:.1e}){unanswered} | {times}"


def table(model, cases):
    lines = [f"{model.stem}, {next((c['shot_ns']['count'] for c in cases.values() if isinstance(c, dict)), 0)} shots",
             "", "| decoder | wrong (rate, 95 %) | mean, us | p50 | p99 |", "|---|---|---|---|---|"]
    for decoder, case in cases.items():
        name = pathlib.Path(decoder).name if decoder.endswith(".so") else decoder.replace("|", "\\|")
        lines.append(f"| `{name}` | {cells(case) if isinstance(case, dict) else 'not taken | | | '} |")
    reasons = [f"{decoder}: {case}" for decoder, case in cases.items() if isinstance(case, str)]
    return "\n".join(lines + [""] * bool(reasons) + reasons)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/benchmarks/cudaq-realtime-bench")
    parser.add_argument("--shots", type=int, default=20000)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--decoder", action="append", default=[], metavar="NAME")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if not arguments.program.is_file():
        parser.error(f"--program: {arguments.program} is not there: build the target cudaq-realtime-bench")
    program = arguments.program.resolve()
    results = {}
    for model in arguments.models or [ROOT / "tools/data" / name for name in MODELS]:
        if not model.is_file():
            parser.error(f"{model} is not a file")
        cases = {name: measure(program, model, name, arguments) for name in (*DECODERS, *arguments.decoder)}
        results[str(model)] = cases
        print(table(model, cases), end="\n\n", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0 if any(isinstance(case, dict) for cases in results.values() for case in cases.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
