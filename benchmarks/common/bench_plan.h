// SPDX-License-Identifier: Apache-2.0
// The cases of `device` and `graph`.
#pragma once

#include "benchmarks/common/bench.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::realtime::tools {

enum class bench_metric : std::uint8_t {
  p50_ratio,  ///< p50 divided by the floor's p50
  rate_ratio, ///< exchanges per second divided by the floor's
  rate,       ///< exchanges per second; the floor is for comparison only
};

struct bench_case {
  const char *name; ///< what it does: "echo-8B"
  const char *what;
  const char *floor;
  const char *unit; ///< of a single measurement: "ns" or "cycles"
  bench_metric metric;
};

std::span<const bench_case> all_bench_cases();
std::span<const bench_case> all_graph_cases();

/// `given` is the name of a case, or its first words: "regular-4K" names all cases of that beginning.
bool names_case(std::string_view given, std::string_view name);

/// The cases that `names` names, each once, in the order of `all`. No names: all cases. Throws usage_error for an
/// unknown name.
std::vector<bench_case> select_cases(const std::vector<std::string> &names,
                                     std::span<const bench_case> all = all_bench_cases());
/// Throws usage_error if a name names no case of `pipeline`.
void check_pipeline_cases(const std::vector<std::string> &names);

/// Measured exchanges and warm-up exchanges of one round. Their sum is a multiple of the ring's slots. So the
/// dispatcher of the next round continues at slot 0, where floors begin.
struct round_size {
  std::uint64_t exchanges = 0;
  std::uint64_t warm_up = 0;
};
round_size size_of_round(const bench_options &options, std::uint32_t slots);

} // namespace cudaq::realtime::tools
