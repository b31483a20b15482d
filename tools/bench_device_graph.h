// SPDX-License-Identifier: Apache-2.0
// Graph dispatch from the device beside its floor: from the CPU's flag to the signal of the graph that a scheduler on the
// GPU has launched for it, one request at a time.
#pragma once

#include "latency_histogram.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct device_graph_plan {
  std::uint64_t exchanges = 100000; ///< of each case
  std::uint64_t warm_up = 1000;     ///< of each segment
  std::uint32_t segments = 4;       ///< cases take turns so often
  std::uint32_t schedulers = 0;     ///< of the rotation; 0: as usual
  bool own_streams = false;
};

struct device_graph_case {
  std::string name;
  int floor = -1; ///< position of the case that this one is compared with
  latency_histogram ns;
  std::uint64_t wrong = 0; ///< answers that were none
};

/// Runs all cases. Throws std::runtime_error if a call fails or nothing comes back.
std::vector<device_graph_case> measure_device_graphs(const device_graph_plan &plan);

} // namespace cudaq::realtime::tools
