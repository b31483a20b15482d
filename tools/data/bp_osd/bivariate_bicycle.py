#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bivariate bicycle codes, and their memory experiment with circuit noise as a Stim circuit.

    venv/bin/python bivariate_bicycle.py [--code 72|90|108|144|288] [--rounds 6] [--noise 0.003] [--both] > circuit.stim

Codes, syndrome cycle and noise are those of S. Bravyi et al., "High-threshold and low-overhead fault-tolerant quantum
memory", Nature 627, 778 (2024), arXiv:2308.07915: section "Syndrome measurement circuit". A cycle has 8 time steps; 7
of them have CNOT gates. Noise with one probability p: depolarisation after each CNOT, and of each data qubit that
waits for a step; flips after each reset and before each measurement.

Memory in the Z basis: data qubits are reset to 0; after the rounds they are measured (with flips). Detectors compare
each check with its last value; the last round compares Z checks with the data. By default only Z checks have
detectors: X checks say something about the observables only through Y errors, and the paper, too, decodes the two kinds
apart. With --both all checks have detectors. Observables: all logical Z operators.
"""

import argparse

import numpy as np
import stim

# Shifts l, m; A = x^a1 + y^a2 + y^a3, B = y^b1 + x^b2 + x^b3.
CODES = {72: (6, 6, (3, 1, 2), (3, 1, 2)), 90: (15, 3, (9, 1, 2), (0, 2, 7)),
         108: (9, 6, (3, 1, 2), (3, 1, 2)), 144: (12, 6, (3, 1, 2), (3, 1, 2)),
         288: (12, 12, (3, 2, 7), (3, 1, 2))}
# The neighbour that each kind of check uses in each step; None: it waits, is reset or measured.
X_STEPS = (None, 1, 4, 3, 5, 0, 2)
Z_STEPS = (3, 5, 0, 1, 2, 4, None)


def shift(size, power):
    return np.roll(np.eye(size, dtype=np.uint8), power, axis=1)


def monomials(code):
    length, width, a, b = CODES[code]
    x = lambda k: np.kron(shift(length, k), np.eye(width, dtype=np.uint8))
    y = lambda k: np.kron(np.eye(length, dtype=np.uint8), shift(width, k))
    return (x(a[0]), y(a[1]), y(a[2])), (y(b[0]), x(b[1]), x(b[2]))


def check_matrices(code):
    """hx, hz: a row for each check."""
    a_terms, b_terms = monomials(code)
    a, b = sum(a_terms) % 2, sum(b_terms) % 2
    return np.hstack([a, b]), np.hstack([b.T, a.T])


def reduced(rows):
    """Row echelon form mod 2 without zero rows, and the pivot columns."""
    rows = rows.copy() % 2
    pivots = []
    for column in range(rows.shape[1]):
        found = np.flatnonzero(rows[len(pivots):, column])
        if not found.size:
            continue
        at = len(pivots)
        rows[[at, at + found[0]]] = rows[[at + found[0], at]]
        others = np.flatnonzero(rows[:, column])
        rows[others[others != at]] ^= rows[at]
        pivots.append(column)
        if len(pivots) == rows.shape[0]:
            break
    return rows[:len(pivots)], pivots


def kernel(matrix):
    rows, pivots = reduced(matrix)
    free = [c for c in range(matrix.shape[1]) if c not in pivots]
    result = np.zeros((len(free), matrix.shape[1]), dtype=np.uint8)
    for k, column in enumerate(free):
        result[k, column] = 1
        result[k, pivots] = rows[:, column]
    return result


def logical_z(code):
    """Rows that commute with all X checks and are independent of each other and of the Z checks."""
    hx, hz = check_matrices(code)
    found = []
    basis = reduced(hz)[0]
    for row in kernel(hx):
        extended = reduced(np.vstack([basis, row]))[0]
        if len(extended) > len(basis):
            basis = extended
            found.append(row)
    return np.array(found)


def neighbours(code):
    """For each kind of check: 6 lists, the data qubit of each check. Left qubits are 0 to n/2 - 1."""
    a_terms, b_terms = monomials(code)
    half = a_terms[0].shape[0]
    along = lambda matrix: [int(np.flatnonzero(row)[0]) for row in matrix]
    right = lambda qubits: [half + q for q in qubits]
    x = [along(m) for m in a_terms] + [right(along(m)) for m in b_terms]
    z = [along(m.T) for m in b_terms] + [right(along(m.T)) for m in a_terms]
    return x, z


class Experiment:
    def __init__(self, code, rounds, p, both):
        self.p, self.rounds, self.half, self.both = p, rounds, code // 2, both
        self.data = list(range(code))
        self.x_checks = list(range(code, code + self.half))
        self.z_checks = list(range(code + self.half, 2 * code))
        self.x_next, self.z_next = neighbours(code)
        self.z_rows, self.logicals = check_matrices(code)[1], logical_z(code)

    def cycle(self, first):
        c = stim.Circuit()
        reset = lambda gate, flip, qubits: (c.append(gate, qubits), c.append(flip, qubits, self.p))
        measure = lambda gate, flip, qubits: (c.append(flip, qubits, self.p), c.append(gate, qubits))
        if first:
            reset("R", "X_ERROR", self.z_checks)
        for step in range(7):
            if step == 0:
                reset("RX", "Z_ERROR", self.x_checks)
            pairs = []
            if X_STEPS[step] is not None:
                for check, data in zip(self.x_checks, self.x_next[X_STEPS[step]]):
                    pairs += [check, data]
            if Z_STEPS[step] is not None:
                for check, data in zip(self.z_checks, self.z_next[Z_STEPS[step]]):
                    pairs += [data, check]
            c.append("CX", pairs)
            c.append("DEPOLARIZE2", pairs, self.p)
            idle = [q for q in self.data if q not in pairs]
            if idle:
                c.append("DEPOLARIZE1", idle, self.p)
            if step == 6:
                measure("M", "X_ERROR", self.z_checks)
            c.append("TICK")
        c.append("DEPOLARIZE1", self.data, self.p)
        measure("MX", "Z_ERROR", self.x_checks)
        reset("R", "X_ERROR", self.z_checks)
        c.append("TICK")
        n = self.half
        for k in range(n):
            z = [stim.target_rec(-2 * n + k)] + ([] if first else [stim.target_rec(-4 * n + k)])
            c.append("DETECTOR", z, (k, 0, 0))
        if self.both and not first:
            for k in range(n):
                c.append("DETECTOR", [stim.target_rec(-n + k), stim.target_rec(-3 * n + k)], (k, 1, 0))
        c.append("SHIFT_COORDS", [], (0, 0, 1))
        return c

    def circuit(self):
        n = self.half
        c = stim.Circuit()
        c.append("R", self.data)
        c.append("X_ERROR", self.data, self.p)
        c += self.cycle(True)
        if self.rounds > 1:
            c.append(stim.CircuitRepeatBlock(self.rounds - 1, self.cycle(False)))
        c.append("X_ERROR", self.data, self.p)
        c.append("M", self.data)
        for k in range(n):
            targets = [stim.target_rec(-2 * n + int(q)) for q in np.flatnonzero(self.z_rows[k])]
            c.append("DETECTOR", targets + [stim.target_rec(-4 * n + k)], (k, 0, 0))
        for k, row in enumerate(self.logicals):
            c.append("OBSERVABLE_INCLUDE", [stim.target_rec(-2 * n + int(q)) for q in np.flatnonzero(row)], k)
        return c


def make_circuit(code, rounds, p, both=False):
    return Experiment(code, rounds, p, both).circuit()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--code", type=int, default=72, choices=sorted(CODES))
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--noise", type=float, default=0.003)
    parser.add_argument("--both", action="store_true", help="detectors of X checks too")
    args = parser.parse_args()
    print(make_circuit(args.code, args.rounds, args.noise, args.both))


if __name__ == "__main__":
    main()
