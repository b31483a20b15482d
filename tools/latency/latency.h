// SPDX-License-Identifier: Apache-2.0
// Round trips of the host path beside the floor of the same two cores, measured in one run, alternating.
#pragma once

#include "tools/common/measured_case.h"
#include "tools/common/report.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools {

/// cores: the client's, the server's.
struct latency_options : measuring_options {
  latency_options() {
    exchanges = 200000;
    rounds = 20;
  }

  std::uint32_t slots = 64;
  bool in_place = false;
};

/// Returns an exit_code. Throws usage_error and api_error.
int run_latency(const latency_options &options, const output &out);

} // namespace cudaq::realtime::tools
