// SPDX-License-Identifier: Apache-2.0
// The main job: recorded surface-code shots through a ring, a host dispatcher and a decoder, every answer checked.
#pragma once

#include "report.h"

#include <cstdint>
#include <optional>
#include <string>

namespace cudaq::realtime::tools {

struct demo_options {
  std::optional<unsigned> distance; ///< none: 13, or 3 without PyMatching
  std::string noise = "0.005";
  std::uint64_t shots = 20000;      ///< per pass
  double duration_s = 0;            ///< > 0: per pass, instead of shots
  std::optional<double> cadence_us; ///< none: two passes; 0: as fast as it goes; else one shot each so often
  std::uint32_t slots = 64;
  std::uint32_t workers = 0;
  int core_producer = -1, core_consumer = -1, core_dispatcher = -1, core_workers = -1;
  unsigned client_threads = 0; ///< 0: decide by the number of cores
  std::string wait = "auto";
  bool in_place = false;
  std::string decoder = "auto";
  std::string data_folder;
  std::uint64_t seed = 0;
  double timeout_s = 10;
};

/// Returns an exit_code. Throws usage_error and api_error.
int run_demo(const demo_options &options, const output &out);

} // namespace cudaq::realtime::tools
