// SPDX-License-Identifier: Apache-2.0
// Round trips of the host path beside the floor of the same two cores, measured in one run, alternating.
#pragma once

#include "tools/common/report.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools {

struct latency_options {
  std::uint64_t exchanges = 200000; ///< of each case, after warm-up, all rounds together
  std::uint32_t rounds = 20;
  bool quick = false; ///< a few thousand exchanges: shows that it works, figures mean little
  std::uint32_t slots = 64;
  bool in_place = false;
  std::vector<int> cores; ///< client, server; empty: chosen
  std::uint64_t seed = 1;
  double timeout_s = 10;
};

/// Returns an exit_code. Throws usage_error and api_error.
int run_latency(const latency_options &options, const output &out);

} // namespace cudaq::realtime::tools
