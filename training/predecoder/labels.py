# SPDX-License-Identifier: Apache-2.0
"""Brings errors to a representative that a network can learn.

Errors that differ by a product of these moves have the same events and the same effect on the observable, and a sampled
error is any of them at random. A network that is trained on sampled errors learns the mean of all, which corrects
nothing. The two families of moves are

    space  the flips of all data qubits of a stabilizer, in one layer: the stabilizer itself
    time   the flip of a data qubit in layers t and t + 1, and misread outcomes of its stabilizers in layer t

A move is made if it lowers the number of flips and misread outcomes. If it leaves the number as it is, it is made if it
lowers the next of these, in this order: the number of flips, the sum of their layers, of their rows, of their columns,
and of the products of row and column. Each move lowers this list of numbers, so that they come to an end. The idea of
homologically equivalent labels is that of C. Chamberland, L. Goncalves, P. Sivarajah, E. Peterson, S. Grimberg,
"Techniques for combining fast local decoders with global decoders under circuit-level noise", arXiv:2208.01178."""
import torch

from lattice import X, Z

CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))  # of a stabilizer on the padded grid of data qubits; the last is preferred


class Reducer:
    """Reduces the errors of one lattice. Moves of one step touch different qubits, so they are made at once."""

    def __init__(self, lattice):
        self.lattice = lattice
        d, layers = lattice.distance, lattice.layers
        device = lattice.data_mask.device
        padded = torch.zeros(d + 2, d + 2, dtype=torch.uint8, device=device)
        padded[1:d + 1, 1:d + 1] = 1
        self.space, self.time = [], []
        for kind in (X, Z):  # a stabilizer of X leaves the events of X flips, which are flips[Z]
            for i0, j0 in CORNERS:
                own = lattice.stabilizers[kind, i0::2, j0::2]
                if not own.any():
                    continue
                corners = [(slice(i0 + a, d + 1 + a, 2), slice(j0 + b, d + 1 + b, 2)) for a, b in CORNERS]
                there = [padded[rows, columns] * own for rows, columns in corners]
                last, later = [], torch.zeros_like(there[0])
                for mask in reversed(there):
                    last.insert(0, mask * (1 - later))
                    later = later | mask
                self.space.append((1 - kind, corners, there, last, sum(there)))
        for kind in (X, Z):
            for t0 in (0, 1):
                for i0, j0 in CORNERS:
                    times = slice(t0, layers - 1, 2), slice(t0 + 1, layers, 2)
                    cells = slice(i0, d, 2), slice(j0, d, 2)
                    around = [(slice(i0 + a, d + a, 2), slice(j0 + b, d + b, 2)) for a, b in CORNERS]
                    around = [(s, lattice.stabilizers[kind][s]) for s in around]
                    around = [(s, m.to(torch.uint8)) for s, m in around if m.any()]
                    first, second = (lattice.exists[kind, when].to(torch.uint8)[:, None, None] for when in times)
                    if first.shape[0]:
                        self.time.append((kind, times, cells, around, first, second))

    def reduce(self, flips, misread, passes=3):
        """Changes flips and misread in place. More passes find moves that earlier ones have made possible."""
        d = self.lattice.distance
        padded = flips.new_zeros(*flips.shape[:2], d + 2, d + 2, flips.shape[-1])
        inner = padded[:, :, 1:d + 1, 1:d + 1]
        inner.copy_(flips[:, :, :d, :d])
        for _ in range(passes):
            for step in self.time:
                self._move_in_time(step, inner, misread)
            for step in self.space:
                self._move_in_space(step, padded)
        flips[:, :, :d, :d] = inner

    @staticmethod
    def _move_in_space(step, padded):
        kind, corners, there, last, size = step
        values = [padded[kind][:, rows, columns] for rows, columns in corners]
        count = values[0] * there[0][..., None]
        tie = values[0] & last[0][..., None]
        for value, mask, one in zip(values[1:], there[1:], last[1:]):
            count = count + value * mask[..., None]
            tie = tie | (value & one[..., None])
        twice = 2 * count + tie  # odd: at equal weight, the move is to the preferred one
        move = (twice > size[..., None]).to(torch.uint8)
        for value, mask in zip(values, there):
            value ^= move * mask[..., None]

    @staticmethod
    def _move_in_time(step, inner, misread):
        kind, (now, then), (rows, columns), around, first, second = step
        e0, e1 = inner[kind, now][:, rows, columns], inner[kind, then][:, rows, columns]
        u = [misread[now][:, s[0], s[1]] for s, _ in around]
        count = e0 + e1
        size = first + second
        for value, (_, mask) in zip(u, around):
            count = count + value * mask[..., None]
            size = size + mask
        # At equal weight the later of the two flips, or the only one that exists, is given up.
        tie = torch.where(second[..., None] > 0, e1, e0)
        move = (2 * count + tie > size[..., None]).to(torch.uint8)
        e0 ^= move * first[..., None]
        e1 ^= move * second[..., None]
        for value, (_, mask) in zip(u, around):
            value ^= move * mask[..., None]
