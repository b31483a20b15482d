// SPDX-License-Identifier: Apache-2.0
// The cases of `bench device` and `bench graph`, and their targets.
#pragma once

#include "tools/bench/bench.h"

#include <span>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

enum class bench_metric : std::uint8_t {
  p50_ratio,  ///< p50 over the floor's
  rate_ratio, ///< exchanges per second over the floor's
  rate,       ///< exchanges per second, the floor for orientation only
};

struct bench_case {
  const char *id;    ///< "P2a"
  const char *group; ///< "P2"
  const char *what;
  const char *floor;
  const char *unit; ///< of a single measurement: "ns" or "cycles"
  bench_metric metric;
  double good, aim; ///< 0: no target
};

std::span<const bench_case> all_bench_cases();
std::span<const bench_case> all_graph_cases();

/// The cases named by id or group, each once, in the order of `all`; none named: all. Throws usage_error.
std::vector<bench_case> select_cases(const std::vector<std::string> &names,
                                     std::span<const bench_case> all = all_bench_cases());

/// Exchanges of one round and those that warm it up; their sum is whole laps of a ring of `slots`, so that a dispatcher
/// that is started again goes on at slot 0, where floors begin.
struct round_size {
  std::uint64_t exchanges = 0;
  std::uint64_t warm_up = 0;
};
round_size size_of_round(const bench_options &options, std::uint32_t slots);

} // namespace cudaq::realtime::tools
