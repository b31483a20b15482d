// SPDX-License-Identifier: Apache-2.0
// The measurements of a floor or of a case in all rounds, and the ratio of case and floor.
#pragma once

#include "tools/common/exchange.h"
#include "tools/common/report.h"

#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// How much is measured, with which payloads, and on which cores.
struct measuring_options {
  std::uint64_t exchanges = 100000; ///< of each case, after warm-up, all rounds together
  std::uint32_t rounds = 10;
  bool quick = false;     ///< a few thousand exchanges: a check that everything works; the figures mean little
  std::vector<int> cores; ///< of the client threads; empty: the program chooses
  std::uint64_t seed = 1; ///< of the payloads
  double timeout_s = 10;  ///< longest time without an answer
};

/// The options, with the changes that --quick makes.
template <typename Options>
Options effective(Options options) {
  if (options.quick) {
    options.exchanges = 4000;
    options.rounds = 2;
  }
  return options;
}

struct measured_case {
  std::string name;
  std::string what;
  std::size_t payload_bytes = 0;
  loop_result total;
  std::vector<double> round_p50; ///< in the unit of total.per_exchange: nanoseconds, unless its owner documents another
  std::vector<double> round_rate; ///< exchanges per second

  void add_round(const loop_result &round) {
    total.merge(round);
    round_p50.push_back(static_cast<double>(round.per_exchange.percentile(50)));
    round_rate.push_back(round.per_second());
  }
};

/// Ratio of a case to its floor: of all exchanges together, and the spread over the rounds. For a case without a floor:
/// its rate.
struct ratio_line {
  const char *what;
  double pooled = 0;
  double round_min = 0, round_median = 0, round_max = 0;
};

ratio_line latency_ratio(const char *what, const measured_case &c, const measured_case &floor);
ratio_line rate_ratio(const char *what, const measured_case &c, const measured_case &floor);
/// Exchanges per second, not a ratio.
ratio_line plain_rate(const char *what, const measured_case &c);

/// The ratio and its spread.
json ratio_json(const ratio_line &line);

} // namespace cudaq::realtime::tools
