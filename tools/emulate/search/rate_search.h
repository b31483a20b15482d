// SPDX-License-Identifier: Apache-2.0
// The search for the highest rate that a server keeps: nothing lost, nothing late, no error, and p99.9 below a bound.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// A run at one rate. The latencies are of whole shots, or of the windows of a stream, from the moment at which the
/// rate's schedule has them, or the last round of the window: what begins late has a longer one, so a run that cannot
/// keep its rate cannot hide it.
struct rate_trial {
  double rate = 0;            ///< offered: shots, or rounds of a stream, per second of the schedule
  double answered = 0;        ///< answered per second
  std::uint64_t played = 0;   ///< shots, or rounds
  std::uint64_t measured = 0; ///< shots, or windows: the latencies
  std::uint64_t lost = 0, late = 0;
  std::uint64_t p50_ns = 0, p99_ns = 0, p999_ns = 0, max_ns = 0;
  std::string failure; ///< why the rate does not hold; "": it does
};

struct rate_search {
  double first = 1000; ///< per second, of the first run
  double lowest = 1, highest = 1e7;
  double precision = 0.02; ///< the search ends when a rate holds that is at most this much below one that does not
  std::uint32_t repeats = 3;
};

struct rate_search_result {
  double highest = 0; ///< the highest rate whose runs have all held; 0: none
  double failed = 0;  ///< the lowest rate above it of which a run has failed; 0: none, the highest one allowed holds
  bool ended = false; ///< a run did not end, so the search has not come to its end
  std::vector<rate_trial> trials; ///< all runs, in the order in which they were played
};

/// A rate holds if `repeats` runs in a row hold; the first one that fails ends its rate. From the first rate on, rates
/// are doubled until one fails, or halved until one holds; then the geometric mean of both is tried. For a server that
/// keeps 5000/s, with 10 % precision:
///
///   1000 holds, 2000 holds, 4000 holds, 8000 fails, 5657 fails, 4757 holds, 5187 fails   ->  4757, and 5187 fails
///
/// play: one run at this rate; nothing if it was ended before its end (Ctrl-C, the server has ended).
rate_search_result search_rate(const rate_search &how, const std::function<std::optional<rate_trial>(double)> &play);

} // namespace cudaq::realtime::tools
