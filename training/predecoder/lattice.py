# SPDX-License-Identifier: Apache-2.0
"""Memory experiments of the rotated surface code on a grid, as tensors of one shape for every distance and basis.

Cell (i, j) of the grid of (d + 1) x (d + 1) cells holds data qubit (i, j), if i < d and j < d, and the stabilizer whose
data qubits are (i - 1, j - 1), (i - 1, j), (i, j - 1), (i, j), if there is one. Stim's coordinates of the two are
(2j + 1, 2i + 1) and (2j, 2i). A memory of `rounds` rounds has rounds + 1 layers; layer t of a tensor holds

    events  what measurement t and measurement t - 1 of a stabilizer differ in; layer `rounds` compares the stabilizers
            of the memory's basis with the readout of the data qubits
    flips   of data qubits after measurement t - 1 and before measurement t, seen by the whole of measurement t
    misread outcomes of measurement t; none in the last layer

Every error of the circuit is a set of such flips and misread outcomes: an error in the middle of a round is a flip that
some stabilizers of that round have not seen yet, so that these are misread. This is the form in which a predecoder
answers."""
import numpy
import stim
import torch

X, Z = 0, 1  # kind of a stabilizer; a Z stabilizer sees X flips
NOISE = ("after_clifford_depolarization", "after_reset_flip_probability", "before_measure_flip_probability",
         "before_round_data_depolarization")
UNIT = 2.0**-10  # probability in a circuit for a ratio of 1; the sampler scales it
# Ratios of the four probabilities to p, and the part of all depolarization that is phase flips instead.
RATIOS = {"uniform": (1, 1, 1, 1, 0), "readout": (1, 1, 5, 1, 0), "gates": (1, 0.2, 0.2, 0.2, 0),
          "biased": (1, 1, 1, 1, 0.8)}


def with_phase_flips(circuit, part):
    """Returns the circuit with a part of each depolarization as Z_ERROR: of its only qubit, or half of it of both."""
    changed = stim.Circuit()
    for op in circuit:
        if isinstance(op, stim.CircuitRepeatBlock):
            changed.append(stim.CircuitRepeatBlock(op.repeat_count, with_phase_flips(op.body_copy(), part)))
        elif op.name in ("DEPOLARIZE1", "DEPOLARIZE2"):
            p, = op.gate_args_copy()
            changed.append(op.name, op.targets_copy(), p * (1 - part))
            changed.append("Z_ERROR", op.targets_copy(), p * part / int(op.name[-1]))
        else:
            changed.append(op)
    return changed


def memory_circuit(distance, rounds, basis, p, ratios=RATIOS["uniform"]):
    """Returns Stim's circuit. basis: "x" or "z". ratios: as in RATIOS."""
    if distance < 3 or distance % 2 == 0 or rounds < 2 or basis not in ("x", "z"):
        raise ValueError(f"distance {distance}, rounds {rounds}, basis {basis!r}: an odd distance of 3 or more, "
                         "2 rounds or more, and the basis x or z are supported")
    circuit = stim.Circuit.generated(f"surface_code:rotated_memory_{basis}", distance=distance, rounds=rounds,
                                     **{name: ratio * p for name, ratio in zip(NOISE, ratios)})
    return with_phase_flips(circuit, ratios[4]) if ratios[4] else circuit


class Lattice:
    """Positions and masks of one memory experiment."""

    def __init__(self, distance, rounds, basis):
        self.distance, self.rounds, self.basis = distance, rounds, basis
        self.layers, self.width = rounds + 1, distance + 1
        circuit = memory_circuit(distance, rounds, basis, UNIT)
        x_measured = {t.value for op in circuit.flattened() if op.name == "H" for t in op.targets_copy()}
        self.cell, stabilizers, self.data_qubits = {}, numpy.zeros((2, self.width, self.width), bool), []
        for qubit, (x, y) in circuit.get_final_qubit_coordinates().items():
            i, j = int(y) // 2, int(x) // 2
            self.cell[qubit] = i * self.width + j
            if int(x) % 2:
                self.data_qubits.append(qubit)
            else:
                stabilizers[X if qubit in x_measured else Z, i, j] = True
        self.stabilizers = torch.from_numpy(stabilizers)
        memory = X if basis == "x" else Z  # the kind of stabilizer that the observable commutes with
        self.memory = memory
        # Which flips and events exist: those of the other kind have no first and no last layer, because their first
        # outcome is random and the readout does not show them.
        exists = torch.zeros(2, self.layers, dtype=torch.bool)
        exists[memory] = True
        exists[1 - memory, 1:rounds] = True
        self.exists = exists
        self.detector_mask = exists[:, :, None, None] & self.stabilizers[:, None]
        data = torch.zeros(self.width, self.width, dtype=torch.bool)
        data[:distance, :distance] = True
        self.data_mask = data
        # Place of each of Stim's detectors in a flattened [layers, width, width] tensor.
        coordinates = circuit.get_detector_coordinates()
        place = [(int(t) * self.width + int(y) // 2) * self.width + int(x) // 2
                 for x, y, t in (coordinates[k] for k in range(circuit.num_detectors))]
        self.detector_place = torch.tensor(place)
        order = [t.value for op in circuit.flattened() if op.name in ("M", "MX") for t in op.targets_copy()]
        wanted = [t.value for op in circuit.flattened() if op.name == "OBSERVABLE_INCLUDE" for t in op.targets_copy()]
        self.observable_cells = torch.tensor(sorted(self.cell[order[k]] for k in wanted))

    def to(self, device):
        for name, value in vars(self).items():
            if isinstance(value, torch.Tensor):
                setattr(self, name, value.to(device))
        return self

    def planes(self):
        """Returns the two constant input planes of the network: where events can be, float [2, layers, width, width].
        They also tell the network, by what is absent, where the code and the experiment end."""
        return self.detector_mask.float()


def syndrome(flips):
    """Returns the parity around each cell's stabilizer of uint8 [..., width, width, shots], last row and column 0."""
    down = torch.roll(flips, 1, -3)
    both = flips ^ down
    return both ^ torch.roll(both, 1, -2)


def events_of(lattice, flips, misread):
    """Returns the events of flips [2, layers, width, width, shots] (flips[Z] are X flips) and misread [layers, ...]."""
    events = syndrome(flips)
    events ^= misread
    events[:, 1:] ^= misread[:-1]
    return events * lattice.detector_mask[..., None]


def observable_of(lattice, flips):
    """Returns, for each shot, whether the flips toggle the observable."""
    own = flips[lattice.memory].flatten(1, 2)[:, lattice.observable_cells]
    return (own.sum((0, 1), dtype=torch.int32) & 1).bool()
