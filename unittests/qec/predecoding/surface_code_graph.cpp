// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/predecoding/surface_code_graph.h"

#include "stim/gen/gen_surface_code.h"
#include "stim/simulators/error_analyzer.h"

#include <algorithm>

namespace cudaq::qec::realtime::test {
namespace {

stim::Circuit make_circuit(std::uint32_t distance, const std::string &noise) {
  constexpr double kP = 0.003, kLess = kP / 10;
  const bool uniform = noise == "uniform";
  stim::CircuitGenParameters parameters(distance, distance, "rotated_memory_z");
  parameters.after_clifford_depolarization = uniform ? kP : kLess;
  parameters.after_reset_flip_probability = uniform ? kP : kLess;
  parameters.before_measure_flip_probability = uniform ? kP : noise == "measurement" ? 4 * kP : kLess;
  parameters.before_round_data_depolarization = uniform ? kP : noise == "data" ? 3 * kP : kLess;
  return stim::generate_surface_code_circuit(parameters).circuit;
}

} // namespace

surface_code_graph make_surface_code_graph(std::uint32_t distance, const std::string &noise) {
  const stim::DetectorErrorModel model = stim::ErrorAnalyzer::circuit_to_detector_error_model(
      make_circuit(distance, noise), /*decompose_errors=*/true, /*fold_loops=*/true, /*allow_gauge_detectors=*/false,
      /*approximate_disjoint_errors_threshold=*/0, /*ignore_decomposition_failures=*/false,
      /*block_decomposition_from_introducing_remnant_edges=*/false);
  surface_code_graph graph{static_cast<std::uint32_t>(model.count_detectors()), {}};
  model.iter_flatten_error_instructions([&](const stim::DemInstruction &error) {
    const double p = error.arg_data[0];
    graph_edge edge;
    const auto add_component = [&] {
      std::ranges::sort(edge.first);
      double &merged = graph.probabilities[edge];
      merged = merged * (1 - p) + p * (1 - merged);
      edge = {};
    };
    for (const stim::DemTarget &target : error.target_data) {
      if (target.is_separator())
        add_component();
      else if (target.is_observable_id())
        edge.second = true;
      else
        edge.first.push_back(static_cast<std::uint32_t>(target.val()));
    }
    add_component();
  });
  return graph;
}

} // namespace cudaq::qec::realtime::test
