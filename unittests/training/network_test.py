# SPDX-License-Identifier: Apache-2.0
"""The network, what its outputs mean, and its file."""
import pathlib
import tempfile
import unittest

import needs
import torch

import network
from labels import Reducer
from lattice import events_of, observable_of
from sampler import Sampler


class PredecoderNetwork(unittest.TestCase):
    def test_outputs_that_are_the_labels_leave_no_event_and_have_the_right_observable(self):
        for basis in "xz":
            sampler = Sampler(5, 3, basis)
            lattice = sampler.lattice
            flips, misread = sampler.sample(300, 0.02, torch.Generator().manual_seed(1))
            events = events_of(lattice, flips, misread)
            observable = observable_of(lattice, flips)
            Reducer(lattice).reduce(flips, misread)
            logits = torch.cat([flips, misread[None]]).permute(4, 0, 1, 2, 3).float() - 0.5
            chosen, read = network.corrections(lattice, logits)
            self.assertTrue(torch.equal(events_of(lattice, chosen, read), events))
            self.assertTrue(torch.equal(observable_of(lattice, chosen), observable))

    def test_outputs_outside_the_code_are_ignored(self):
        lattice = Sampler(3, 2, "z").lattice
        chosen, read = network.corrections(lattice, torch.ones(1, 3, 3, 4, 4))
        self.assertEqual(chosen[1].sum(), 3 * 9)  # X flips in three layers
        self.assertEqual(chosen[0].sum(), 9)      # Z flips in the one between
        self.assertEqual(read.sum(), 2 * 8)       # no outcome of the last layer, which is the readout

    def test_all_forms_of_the_convolution_agree(self):
        torch.manual_seed(3)
        x, weight, bias = torch.randn(2, 4, 5, 4, 4), torch.randn(3, 4, 3, 3, 3), torch.randn(3)
        for form in network.FORMS[1:]:
            torch.testing.assert_close(form(x, weight, bias), network.conv3d(x, weight, bias), rtol=1e-4, atol=1e-4)

    def test_a_deeper_network_begins_as_the_one_that_it_is_given(self):
        torch.manual_seed(4)
        small, deep = network.Network(3, 3), network.Network(3, 6)
        torch.nn.init.normal_(small.biases[1])
        network.begin_with(deep, small)
        x = torch.rand(2, 4, 4, 4, 4)
        torch.testing.assert_close(deep(x), small(x))
        for other in (network.Network(4, 3), network.Network(3, 7)):
            with self.assertRaisesRegex(ValueError, "cannot begin with"):
                network.begin_with(deep, other)

    def test_a_file_has_weights_and_card(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.safetensors"
            net = network.Network(5, 4)
            network.save(path, net.state_dict(), {"seed": 7})
            again, card = network.load(path)
            self.assertEqual(card["seed"], "7")
            for name, value in net.state_dict().items():
                self.assertTrue(torch.equal(value, again.state_dict()[name]), name)
            network.save(path, net.state_dict(), {}, torch.float16)
            for name, value in network.load(path)[0].state_dict().items():
                self.assertTrue(torch.equal(net.state_dict()[name].half().float(), value), name)
            path.write_bytes(path.read_bytes().replace(b"predecoder 1", b"predecoder 9"))
            with self.assertRaisesRegex(ValueError, "format 'cudaq-realtime predecoder 9'"):
                network.load(path)


if __name__ == "__main__":
    needs.run()
