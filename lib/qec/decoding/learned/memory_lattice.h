// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/decoder_model.h"
#include "lib/qec/decoding/learned/predecoder_network.h"
#include "lib/qec/decoding/qec_expected.h"

#include <array>
#include <cstdint>
#include <vector>

namespace cudaq::qec::realtime {

/// Where the detectors of a memory of the rotated surface code are on the grid of a predecoder_network, and what its
/// outputs do. Cell (t, i, j) has data qubit (i, j) before measurement t, and the stabilizer around the corner of
/// qubits (i - 1, j - 1) and (i, j): training/predecoder/lattice.py, which has the same grid.
struct memory_lattice {
  enum kind : std::uint8_t { x = 0, z = 1 }; ///< of a stabilizer; x sees Z flips
  struct place {
    std::uint32_t cell;
    kind what;
  };
  /// Lists of an output: detectors, then observables. Empty: the output means nothing.
  struct effect {
    std::uint32_t first = 0, detectors = 0, observables = 0;
  };
  network_grid grid;
  std::vector<place> places;                                             ///< of each detector
  std::array<std::vector<effect>, predecoder_network::kOutputs> effects; ///< of each cell
  std::vector<std::uint32_t> lists;
};

/// Reads the coordinates of Stim's generated circuits: detectors (x, y, round), with even x and y. What a flip of a
/// data qubit does to the observables is taken from the errors of the model. Refused, with the reason: a model without
/// such coordinates, one whose detectors are not exactly those of Stim's circuit (so a code that is turned or
/// mirrored), and one whose errors are not those of this lattice or of the order of gates.
[[nodiscard]] expected<memory_lattice> read_memory_lattice(const decoder_model &model);

} // namespace cudaq::qec::realtime
