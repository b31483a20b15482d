// SPDX-License-Identifier: Apache-2.0
// Matching graphs for the gate: Stim makes the circuit of a rotated surface code and analyses its errors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime::test {

/// The one or two detectors of an edge, in ascending order, and whether it flips the observable.
using graph_edge = std::pair<std::vector<std::uint32_t>, bool>;

struct surface_code_graph {
  std::uint32_t num_detectors;
  std::map<graph_edge, double> probabilities;
};

/// Memory in the Z basis, as many rounds as the distance. noise: "uniform" (0.003 everywhere), "data" (mostly of data
/// qubits between rounds), "measurement". The components of a decomposed error are independent; equal ones are merged.
[[nodiscard]] surface_code_graph make_surface_code_graph(std::uint32_t distance, const std::string &noise);

} // namespace cudaq::qec::realtime::test
