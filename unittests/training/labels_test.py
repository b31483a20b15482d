# SPDX-License-Identifier: Apache-2.0
"""The reduction of labels keeps what an error does, and finds the same representative for errors that do the same."""
import unittest

import needs
import torch

from labels import Reducer
from lattice import X, Z, events_of, observable_of
from sampler import Sampler


class Labels(unittest.TestCase):
    @staticmethod
    def each():
        for basis in "xz":
            for distance, rounds in ((3, 4), (5, 4)):
                yield Sampler(distance, rounds, basis)

    def test_the_reduction_keeps_events_and_observable_and_lowers_the_weight(self):
        for sampler in self.each():
            lattice = sampler.lattice
            flips, misread = sampler.sample(2000, 0.02, torch.Generator().manual_seed(1))
            events, observable = events_of(lattice, flips, misread), observable_of(lattice, flips)
            weight = (flips.sum() + misread.sum()).item()
            Reducer(lattice).reduce(flips, misread)
            self.assertTrue(torch.equal(events_of(lattice, flips, misread), events))
            self.assertTrue(torch.equal(observable_of(lattice, flips), observable))
            self.assertLess((flips.sum() + misread.sum()).item(), 0.8 * weight)

    def test_the_reduction_comes_to_an_end(self):
        for sampler in self.each():
            flips, misread = sampler.sample(500, 0.02, torch.Generator().manual_seed(2))
            reducer = Reducer(sampler.lattice)
            reducer.reduce(flips, misread, passes=12)
            again, again_misread = flips.clone(), misread.clone()
            reducer.reduce(again, again_misread, passes=1)
            self.assertTrue(torch.equal(again, flips) and torch.equal(again_misread, misread))

    def test_each_stabilizer_and_each_move_in_time_is_reduced_to_nothing(self):
        for sampler in self.each():
            lattice = sampler.lattice
            errors = []
            for kind in (X, Z):
                for i, j in lattice.stabilizers[kind].nonzero().tolist():
                    for t in lattice.exists[1 - kind].nonzero().flatten().tolist():
                        flips, misread = self.nothing(lattice)
                        for r, c in ((i - 1, j - 1), (i - 1, j), (i, j - 1), (i, j)):
                            if 0 <= r < lattice.distance and 0 <= c < lattice.distance:
                                flips[1 - kind, t, r, c] = 1
                        errors.append((flips, misread))
                for r in range(lattice.distance):
                    for c in range(lattice.distance):
                        for t in range(lattice.rounds):
                            flips, misread = self.nothing(lattice)
                            flips[kind, t:t + 2, r, c] = lattice.exists[kind, t:t + 2].to(torch.uint8)
                            misread[t, r:r + 2, c:c + 2] = lattice.stabilizers[kind, r:r + 2, c:c + 2].to(torch.uint8)
                            errors.append((flips, misread))
            flips, misread = torch.stack([f for f, _ in errors], -1), torch.stack([m for _, m in errors], -1)
            self.assertEqual(events_of(lattice, flips, misread).sum(), 0)
            Reducer(lattice).reduce(flips, misread)
            self.assertEqual(flips.sum() + misread.sum(), 0)

    @staticmethod
    def nothing(lattice):
        shape = lattice.layers, lattice.width, lattice.width
        return torch.zeros(2, *shape, dtype=torch.uint8), torch.zeros(shape, dtype=torch.uint8)

    def test_an_error_and_the_same_error_with_a_stabilizer_get_one_label(self):
        for sampler in self.each():
            lattice = sampler.lattice
            if lattice.distance < 5:
                continue  # each stabilizer is beside one of the end of the code
            i, j = (lattice.stabilizers[X, 2:-2, 2:-2].nonzero()[0] + 1).tolist()  # the first of its data qubits
            pairs = [((i, j), (i + 1, j)), ((i, j), (i, j + 1)), ((i, j), (i + 1, j + 1))]
            labels = []
            for pair in pairs:
                flips, misread = self.nothing(lattice)
                for r, c in pair:
                    flips[Z, 1, r, c] = 1
                other = flips.clone()
                other[Z, 1, i:i + 2, j:j + 2] ^= 1
                both = torch.stack([flips, other], -1)
                Reducer(lattice).reduce(both, torch.stack([misread, misread], -1))
                self.assertTrue(torch.equal(both[..., 0], both[..., 1]))
                labels.append(both[..., 0])
            self.assertFalse(torch.equal(labels[0], labels[1]))


if __name__ == "__main__":
    needs.run()
