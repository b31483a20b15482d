// SPDX-License-Identifier: Apache-2.0
// `stream`: sends the rounds of sampled experiments to a stream decoder at the pace of hardware, and reports how far
// corrections are after the rounds, and how long the end of an experiment takes.
#pragma once

#include "tools/common/report.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::tools {

struct bench_stream_options {
  std::string dem_file;
  std::string decoder = "auto", rule = "time", mode = "automatic";
  std::uint64_t commit = 0, buffer = 0, queue_rounds = 0;
  std::uint32_t workers = 0;
  std::uint64_t rounds = 1'000'000; ///< of each experiment, head and tail included; more up to a whole repetition
  std::uint64_t experiments = 1;
  bool random_stops = false; ///< experiments end after rounds / 2 to rounds
  double cycle_us = 1;       ///< 0: as fast as it goes
  std::uint64_t seed = 1;
};

/// Returns an exit_code. Throws usage_error for a model or a decoder that cannot be used.
int run_bench_stream(const bench_stream_options &options, const output &out);

} // namespace cudaq::realtime::tools
