// SPDX-License-Identifier: Apache-2.0
// The runs of `emulate --search-rate` as text, JSON and a page: of shots, and of the rounds of a stream.
#pragma once

#include "tools/common/interrupt.h"
#include "tools/common/latency_histogram.h"
#include "tools/common/report.h"
#include "tools/emulate/search/rate_search.h"

#include <functional>
#include <optional>
#include <string>

namespace cudaq::realtime::tools {

struct search_names {
  const char *played;   ///< "shots" or "rounds": what the rate counts
  const char *measured; ///< "shots" or "windows": what the latencies are of
  bool has_cycle;       ///< the report has times between two rounds, beside rates
};

/// Sets the latencies of a run.
void set_latencies(rate_trial &trial, const latency_histogram &times);
/// "p99.9 1.20 ms", or "" if it is at most the bound.
std::string above_bound(const rate_trial &trial, std::uint64_t bound_ns);

/// Searches, prints each run and the result, and writes the report: `body`, and what the search has found. `play`: as
/// that of search_rate; a run without progress sets `stalled` to the reason. Returns an exit_code.
int report_search(const rate_search &how, double bound_us, const search_names &names, json body,
                  const std::function<std::optional<rate_trial>(double rate, std::string &stalled)> &play,
                  const interrupt_guard &interrupts, const output &out);

} // namespace cudaq::realtime::tools
