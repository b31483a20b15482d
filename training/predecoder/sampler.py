# SPDX-License-Identifier: Apache-2.0
"""Samples errors of a memory experiment on the device of the network. The distribution is that of Stim, correlated
depolarization included; sampler_test.py compares them.

A fault between measurement t - 1 and measurement t of the circuit flips data qubits of layer t and makes outcomes of
layer t misread (lattice.py), and touches no other layer. So one table for each kind of round says what a fault does. It
comes from Stim's circuit, by a Pauli frame for each fault. Sampling is then: draw a number for each place of a fault,
take the few that are faults, and toggle what the table says."""
import torch

from lattice import RATIOS, UNIT, Lattice, memory_circuit, syndrome

KINDS = {"X_ERROR": 1, "Z_ERROR": 1, "DEPOLARIZE1": 3, "DEPOLARIZE2": 15}
FIRST_X, FIRST_Z, SECOND_X, SECOND_Z = range(4)
# The Pauli errors that bit 0, 1, 2 and 3 of a kind stand for: kind 3 of DEPOLARIZE1 is X and Z.
BITS = {"X_ERROR": [FIRST_X], "Z_ERROR": [FIRST_Z], "DEPOLARIZE1": [FIRST_X, FIRST_Z],
        "DEPOLARIZE2": [FIRST_X, FIRST_Z, SECOND_X, SECOND_Z]}


class Segment:
    """The circuit up to a measurement, and what each of its faults does."""

    def __init__(self, lattice, num_qubits, operations):
        places = []  # [number of kinds, probability, qubits] of each place of a fault, and where it is
        for at, (name, targets, argument) in enumerate(operations):
            if name in KINDS and argument > 0:
                step = 2 if name == "DEPOLARIZE2" else 1
                places += [(at, name, targets[k:k + step], argument) for k in range(0, len(targets), step)]
        columns = [(place, bit) for place, (_, name, _, _) in enumerate(places) for bit in BITS[name]]
        x = torch.zeros(num_qubits, len(columns), dtype=torch.uint8)
        z = torch.zeros_like(x)
        begin = {}
        for column, (place, bit) in enumerate(columns):
            begin.setdefault(places[place][0], []).append((column, places[place][2], bit))
        misread = torch.zeros(lattice.width**2, len(columns), dtype=torch.uint8)
        cells = lattice.cell
        for at, (name, targets, _) in enumerate(operations):
            for column, qubits, bit in begin.get(at, ()):
                (z if bit in (FIRST_Z, SECOND_Z) else x)[qubits[bit in (SECOND_X, SECOND_Z)], column] = 1
            if name == "H":
                x[targets], z[targets] = z[targets], x[targets]
            elif name == "CX":
                x[targets[1::2]] ^= x[targets[::2]]
                z[targets[::2]] ^= z[targets[1::2]]
            elif name == "MR":
                misread[[cells[q] for q in targets]] = x[targets]
            elif name not in KINDS and name not in ("R", "RX", "M", "MX"):
                raise ValueError(f"the circuit has an instruction that the sampler does not know: {name}")
        effect = torch.zeros(3, lattice.width**2, len(columns), dtype=torch.uint8)
        data = [cells[q] for q in lattice.data_qubits]
        effect[0, data], effect[1, data] = z[lattice.data_qubits], x[lattice.data_qubits]
        effect[2] = misread
        grid = effect.view(3, lattice.width, lattice.width, -1)
        if operations[-1][0] == "MR":  # an outcome is misread if it is not the syndrome of all flips until then
            for kind in (0, 1):
                grid[2] ^= syndrome(grid[kind]) * lattice.stabilizers[kind].cpu()[..., None]
        effect = effect.flatten(0, 1)
        # toggles[place, bit of a kind] lists cells of the three planes; the rest is the cell after the last one.
        max_toggles = max(int(effect.sum(0, dtype=torch.int32).max()), 1)
        toggles = torch.full((len(places), 4, max_toggles), len(effect))
        for column, (place, bit) in enumerate(columns):
            found = effect[:, column].nonzero()[:, 0]
            toggles[place, BITS[places[place][1]].index(bit), :len(found)] = found
        device = lattice.data_mask.device
        self.toggles = toggles.to(device)
        self.kinds = torch.tensor([float(KINDS[name]) for _, name, _, _ in places], device=device)
        self.ratios = torch.tensor([argument / UNIT for _, _, _, argument in places], device=device)


class Sampler:
    """Samples one experiment. ratios: as in lattice.RATIOS."""

    def __init__(self, distance, rounds, basis, device="cpu", ratios=RATIOS["uniform"]):
        self.device = device
        lattice = self.lattice = Lattice(distance, rounds, basis).to(device)
        circuit = memory_circuit(distance, 3, basis, UNIT, ratios)  # one round of each kind: each later one is the same
        parts, part = [], []
        for op in circuit.flattened():
            if op.name in ("QUBIT_COORDS", "DETECTOR", "OBSERVABLE_INCLUDE", "TICK", "SHIFT_COORDS"):
                continue
            part.append((op.name, [t.value for t in op.targets_copy()], (op.gate_args_copy() or [0.0])[0]))
            if op.name in ("MR", "M", "MX"):
                parts.append(part)
                part = []
        first, middle, _, last = (Segment(lattice, circuit.num_qubits, part) for part in parts)
        self.segments = (first, 0, 1), (middle, 1, rounds), (last, rounds, rounds + 1)

    def sample(self, shots, p, generator):
        """Returns uint8 tensors flips [2, layers, width, width, shots] and misread [layers, width, width, shots]. p, a
        number or a tensor [shots], is the noise of ratio 1. Flips of the kind that the memory does not protect are 0 in
        the first and last layer."""
        lattice, device = self.lattice, self.device
        p = torch.as_tensor(p, dtype=torch.float32, device=device).expand(shots)
        size = 3 * lattice.width**2
        toggled = torch.zeros(lattice.layers, size + 1, shots, dtype=torch.int32, device=device)
        for segment, begin, end in self.segments:
            places = len(segment.kinds)
            u = torch.rand(end - begin, places, shots, device=device, generator=generator)
            layer, place, shot = (u < segment.ratios[:, None] * p).nonzero(as_tuple=True)
            # A number below the probability, divided by it, says which kind of fault; it may round to 1.
            part = u[layer, place, shot] / (segment.ratios[place] * p[shot])
            kind = (part * segment.kinds[place]).long().minimum(segment.kinds[place].long() - 1) + 1
            cells = torch.where((kind[:, None] >> torch.arange(4, device=device) & 1)[..., None].bool(),
                                segment.toggles[place], size)
            index = ((layer + begin)[:, None, None] * (size + 1) + cells) * shots + shot[:, None, None]
            index = index[cells < size]
            toggled.view(-1).scatter_add_(0, index, torch.ones_like(index, dtype=torch.int32))
        planes = (toggled[:, :-1] & 1).to(torch.uint8).view(lattice.layers, 3, lattice.width, lattice.width, shots)
        planes = planes.transpose(0, 1).contiguous()
        return planes[:2] * lattice.exists[:, :, None, None, None], planes[2]
