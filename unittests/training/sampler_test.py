# SPDX-License-Identifier: Apache-2.0
"""The sampler has the distribution of Stim's detector sampler."""
import unittest

import needs
import numpy
import torch

from lattice import RATIOS, Lattice, events_of, memory_circuit, observable_of
from sampler import Sampler

SHOTS = 100000


def deviations(mine, theirs):
    """Differences of the rates of all pairs of columns, in standard deviations. The diagonal has the single rates."""
    a, b = mine.T @ mine / SHOTS, theirs.T @ theirs / SHOTS
    return numpy.abs(a - b) / numpy.sqrt((a + b + 2 / SHOTS) / SHOTS)


class SamplerOfErrors(unittest.TestCase):
    def test_rates_of_detectors_and_of_their_pairs_are_those_of_stim(self):
        for basis, ratios in (("x", RATIOS["uniform"]), ("z", RATIOS["uniform"]), ("z", (0.5, 0, 3, 0.2, 0)),
                              ("x", RATIOS["biased"])):
            with self.subTest(basis=basis, ratios=ratios):
                sampler = Sampler(3, 2, basis, ratios=ratios)
                lattice = sampler.lattice
                flips, misread = sampler.sample(SHOTS, 0.06, torch.Generator().manual_seed(4))
                events = events_of(lattice, flips, misread).sum(0).flatten(0, 2)[lattice.detector_place]
                mine = numpy.concatenate([events.numpy(), observable_of(lattice, flips).numpy()[None]]).T
                circuit = memory_circuit(3, 2, basis, 0.06, ratios)
                theirs = numpy.concatenate(circuit.compile_detector_sampler(seed=5).sample(
                    SHOTS, separate_observables=True), axis=1)
                found = deviations(mine.astype(float), theirs.astype(float))
                self.assertLess(found.max(), 4.5)
                self.assertLess((found > 2).mean(), 0.1)

    def test_the_noise_of_a_shot_is_its_own(self):
        sampler = Sampler(3, 3, "z")
        p = torch.tensor([0.0, 0.02]).repeat(5000)
        flips, misread = sampler.sample(len(p), p, torch.Generator().manual_seed(6))
        counts = events_of(sampler.lattice, flips, misread).sum((0, 1, 2, 3))
        self.assertEqual(counts[::2].sum(), 0)
        alone = sampler.sample(5000, 0.02, torch.Generator().manual_seed(7))
        expected = events_of(sampler.lattice, *alone).sum().item()
        self.assertAlmostEqual(counts[1::2].sum().item() / expected, 1, delta=0.05)

    def test_each_detector_of_stim_has_a_cell_of_its_own(self):
        for basis in "xz":
            lattice = Lattice(5, 4, basis)
            there = lattice.detector_mask.any(0).flatten().nonzero().flatten().tolist()
            self.assertEqual(sorted(lattice.detector_place.tolist()), there)

    def test_sizes_without_a_lattice_are_refused(self):
        for distance, rounds, basis in ((4, 3, "z"), (1, 3, "z"), (3, 1, "z"), (3, 3, "y")):
            with self.assertRaisesRegex(ValueError, "odd distance"):
                memory_circuit(distance, rounds, basis, 0.01)


if __name__ == "__main__":
    needs.run()
