# SPDX-License-Identifier: Apache-2.0
"""What is read from circuits and models of Stim in the same way by heralds.py and readout.py."""
from __future__ import annotations

import argparse
import os
import sys
from typing import Callable, FrozenSet, TypeVar

import stim

Symptom = FrozenSet[stim.DemTarget]
Made = TypeVar("Made")


def measurements_of(one: stim.CircuitInstruction) -> int:
    alone = stim.Circuit()
    alone.append(one)
    return int(alone.num_measurements)


def symptom_of(targets: list[stim.DemTarget]) -> Symptom:
    """What an error flips; its components count together."""
    flipped: set[stim.DemTarget] = set()
    for target in targets:
        if not target.is_separator():
            flipped ^= {target}
    return frozenset(flipped)


def circuit_parser(module: str, description: str, circuit: str, table: str) -> argparse.ArgumentParser:
    """The command line of a module that writes the model of a circuit, and a table for it: --TABLE."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("circuit", help=circuit)
    parser.add_argument("--dem", required=True, metavar="FILE", help="gets the model")
    parser.add_argument(f"--{table}", required=True, metavar="FILE", help=f"gets the {table}, for this model only")
    parser.add_argument("--whole_errors", action="store_true", help="errors are not decomposed; for belief propagation")
    parser.add_argument("--approximate_disjoint_errors", action="store_true", help="as of stim analyze_errors")
    return parser


def write_model(given: argparse.Namespace, table: str, make: Callable[[stim.Circuit], Made]) -> Made | None:
    """Writes the members `dem` and `table` of what `make` makes of the circuit. None: the reason is on stderr. What
    `make` refuses is a ValueError."""
    table_file = getattr(given, table)
    try:
        if len({os.path.realpath(path) for path in (given.circuit, given.dem, table_file)}) < 3:
            raise ValueError(f"the circuit, --dem and --{table} are not three files: one would overwrite another")
        made = make(stim.Circuit.from_file(given.circuit))
        for path, what in ((given.dem, "dem"), (table_file, table)):
            with open(path, "w", encoding="ascii") as file:
                file.write(getattr(made, what))
        return made
    except (ValueError, OSError) as failure:
        print(f"{given.circuit}: {failure}", file=sys.stderr)
        return None
