# SPDX-License-Identifier: Apache-2.0
"""Prints the table of all_figures.sh from its reports, with the targets of the index of docs/performance.md.

usage: all_figures.py FOLDER PERFORMANCE_PAGE
"""

import json
import pathlib
import sys

# The number in the index, the report, and the case in it. A figure of the pipeline has one row for each set of shots.
FIGURES = [
    ("P1", "device", "echo-8B"),
    ("P2a", "device", "regular-4K-add-words"),
    ("P2b", "device", "regular-4K-last-word"),
    ("P2c", "device", "regular-4K-add-words-batched"),
    ("P3a", "device", "cooperative-4K-1-block"),
    ("P3b", "device", "cooperative-4K-16-blocks"),
    ("P4", "device", "fifo-64"),
    ("P4", "device", "fifo-64-one-thread"),
    ("P4u", "device", "fifo-64-user"),
    ("P5", "device", "any-256"),
    ("P6", "device", "device-ring-8B"),
    ("P6u", "device", "device-ring-user"),
    ("P7a", "graph", "worker-8B"),
    ("P7b", "graph", "worker-publishing-8B"),
    ("P7c", "graph", "worker-copied-4K"),
    ("P8a", "graph", "scheduler-8B"),
    ("P8b", "graph", "scheduler-publishing-8B"),
    ("P8c", "graph", "scheduler-gpu-memory-8B"),
    ("P8d", "graph", "scheduler-gpu-memory-publishing-8B"),
    ("P9", "latency", "host_call_closed_32 over two_flags_32"),
    ("P10", "latency", "host_call_pipelined_32 over ring_pipelined_32"),
    ("P11a", "pipeline", "passthrough-latency"),
    ("P11b", "pipeline", "kernel-70us-latency"),
    ("P12a", "pipeline", "passthrough-rate"),
    ("P12b", "pipeline", "kernel-70us-rate"),
    ("P12c", "graph", "workers-64"),
    ("P12g", "buffers", "kernel-70us-buffers-one-rate"),
    ("P12h", "buffers", "kernel-70us-buffers-two-rate"),
    ("P12i", "buffers", "kernel-70us-buffers-more-workers-rate"),
    ("P13", "host-pipeline", "decode-stage"),
    ("P14", "device", "idle-poll"),
    ("P15a", "device", "gpu-memory-echo-8B"),
    ("P15b", "device", "gpu-memory-fifo-64"),
    ("P15b", "device", "gpu-memory-fifo-64-one-thread"),
    ("P15u", "device", "gpu-memory-fifo-64-user"),
    ("P15b", "device", "gpu-memory-fifo-64-batches"),
    ("P16a", "device", "gpu-memory-cooperative-4K"),
    ("P16b", "device", "gpu-memory-last-word-4K"),
    ("P17", "pipeline", "staging-latency"),
    ("P17", "pipeline", "staging-rate"),
    ("P17", "pipeline", "staging-by-worker-latency"),
    ("P17", "pipeline", "staging-by-worker-rate"),
    ("P17", "pipeline", "staging-written-latency"),
    ("P17", "pipeline", "staging-written-rate"),
    ("P17z", "buffers", "staging-buffers-two-kernel-70us-rate"),
    ("P17z", "buffers", "two-streams-kernel-70us-rate"),
    ("P17z", "buffers", "two-streams-written-kernel-70us-rate"),
    ("P18", "pipeline", "resident-residual"),
    ("P18c", "host-pipeline", "host-predecoder-residual"),
    ("P20", "shm", "unified over in process"),
    ("P20k", "shm-kernel", "shm pinned over alone pinned"),
    ("P20k", "shm-kernel", "shm gpu over alone gpu"),
    ("P21", "udp", "unified over plain socket"),
    ("router", "route", "rules keys=16"),
    ("network", "learned", "learned-shot"),
    ("network", "learned", "learned-pipeline-latency"),
    ("network", "learned", "learned-pipeline-rate"),
    ("relay-bp", "relay-bp", "relay-bp-shot"),
    ("relay-bp", "relay-bp", "relay-bp-iteration"),
]


def with_unit(value, unit):
    """A value of a report as text; no value: an empty text."""
    if value is None:
        return ""
    if unit == "ns" and value >= 1000:
        value, unit = value / 1000, "us"
    if unit in ("1/s", "req/s"):
        return f"{value / 1e6:.2f} M/s" if value >= 1e6 else f"{value / 1e3:.0f} k/s"
    return f"{value:.4g} {unit}".strip()


def targets(page):
    """Of each number in the index, its good and aim; those of the first row."""
    found = {}
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 9:
            found.setdefault(cells[0], (cells[5], cells[6]))
    return found


def of_pair(values, of, over, unit):
    """One row: `of` over its floor `over`, two values of which either may be missing."""
    ours, floor = values.get(of), values.get(over)
    return [("", floor, ours, ours / floor if ours and floor else None, unit)] if ours else []


def figures(group, report, log, case):
    """Rows (what, floor, ours, ratio, unit) of a case."""
    if group in ("device", "graph"):
        rows = []
        for found in report["cases"]:
            if found["name"] != case:
                continue
            sides = []
            for side in ("floor", "ours"):
                of = found.get(side) or {}
                is_time = found["metric"].startswith("p50")
                sides.append(of["per_exchange"]["p50"] if is_time and of else of.get("per_second"))
            unit = found["ours"]["unit"] if found["metric"].startswith("p50") else "1/s"
            rows.append(("", sides[0], sides[1], found.get("ratio_to_floor"), unit))
        return rows
    if group in ("pipeline", "host-pipeline", "buffers", "learned", "relay-bp"):
        return [
            (f["what"].split(":")[0], f.get("floor"), f["value"], f.get("ratio"), f["unit"])
            for f in report["figures"]
            if f["name"] == case
        ]
    of, _, over = case.partition(" over ")
    if group == "latency":
        by_name = {c["name"]: c for c in report["cases"]}
        if "pipelined" in case:
            return of_pair({name: c["per_second"] for name, c in by_name.items()}, of, over, "1/s")
        return of_pair({name: c["latency_ns"]["p50"] for name, c in by_name.items()}, of, over, "ns")
    if group == "udp":
        return of_pair({name: row["p50_us"] * 1000 for name, row in report["rows"].items()}, of, over, "ns")
    if group == "route":
        rules = [row for name, row in report["rows"].items() if name.startswith(of + " ")]
        best = min(rules, key=lambda row: row["ns"], default={})
        return of_pair({of: best.get("ns"), "floor": best.get("floor_ns")}, of, "floor", "ns")
    # A table: name, min, p50, p99, p99.9, max.
    medians = {}
    for line in log.splitlines():
        cells = line.split()
        if len(cells) > 5 and all(cell.isdigit() for cell in cells[-5:]):
            medians[" ".join(cells[:-5])] = int(cells[-4])
    return of_pair(medians, of, over, "ns")


def main(folder, page):
    wanted = targets(page)
    state = dict(line.split(" ", 1) for line in (folder / "groups").read_text().splitlines())
    print("| # | case | floor | ours | ratio | good | aim |\n|---|---|---|---|---|---|---|")
    missing = []
    for number, group, case in FIGURES:
        if not state.get(group, "").startswith("measured"):
            continue
        path = folder / f"{group}.json"
        report = json.loads(path.read_text()) if path.exists() else {}
        rows = figures(group, report, (folder / f"{group}.log").read_text(), case)
        if not rows:
            missing.append(f"{number} ({group}: {case})")
        good, aim = wanted.get(number, ("", ""))
        for what, floor, ours, ratio, unit in rows:
            name = f"{case}, {what}" if what else case
            ratio_text = f"{ratio:.2f}" if ratio is not None else ""
            print(f"| {number} | {name} | {with_unit(floor, unit)} | {with_unit(ours, unit)} | {ratio_text} "
                  f"| {good} | {aim} |")
    print()
    for group, text in state.items():
        print(f"- {group}: {text}")
    if missing:
        print(f"- measured, but not in the reports: {', '.join(missing)}")


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
