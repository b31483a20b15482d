// SPDX-License-Identifier: Apache-2.0
// The difference of two readings of a server's counters, for people and for programs.
#pragma once

#include "tools/common/clock.h"
#include "tools/common/report.h"
#include "tools/top/counters_reader.h"

namespace cudaq::realtime::tools {

/// Requests of an interval by their time.
struct sampled_times {
  std::vector<std::pair<double, std::uint64_t>> buckets; ///< upper bound in ns, requests of the bucket
  std::uint64_t count = 0;

  /// The upper bound of the bucket that has the request of this rank: at most 25 % above its time, or the lowest
  /// bound. 0 without requests; infinite for a request above all bounds.
  [[nodiscard]] double percentile_ns(double percent) const;
};

/// A stage of the requests; its worst time is of all since the start.
struct sampled_stage {
  std::string name;
  sampled_times times;
  double worst_ns = 0;
};

/// Counts and rates of the interval; `waiting` is of its end.
struct sampled_decoder {
  std::uint64_t id = 0, requests = 0, shots = 0, waiting = 0, too_old = 0, padded = 0, exchanges = 0;
  std::uint64_t deadline_met = 0, deadline_missed = 0, deadline_late = 0;
  std::vector<std::pair<std::string, std::uint64_t>> answers; ///< by status
  std::vector<std::pair<std::string, std::uint64_t>> wins;    ///< by member of a race
  sampled_times latency;
  double latency_mean_ns = 0;
  std::vector<sampled_stage> stages; ///< none before the first answer
  counted_decoder total;             ///< since the start of the server
  double latency_limit_ns = 0;       ///< the highest finite bound
  bool is_stream = false;
  std::uint64_t rounds_pushed = 0, rounds_committed = 0, lag_rounds = 0, worst_lag_rounds = 0; ///< lags: at its end
  double tail_mean_ns = 0;  ///< of the streams that ended; 0 without one
  double worst_tail_ns = 0; ///< since the start
};

/// `total`: since the start of the router; its state is that of the end of the interval.
struct sampled_node {
  counted_node interval, total;
};

struct server_sample {
  double seconds = 0;
  std::string version; ///< as in server_counters, as the next one
  double start_time = 0;
  std::uint64_t total_processed = 0; ///< since the start
  std::uint64_t processed = 0, in_flight = 0, strays = 0, bad_magic = 0, reloads = 0;
  /// Besides decoders and nodes, such as each reason of a drop: of the interval, and since the start in this order.
  std::vector<std::pair<std::string, std::uint64_t>> others, total_others;
  std::vector<sampled_decoder> decoders;
  bool is_router = false;
  std::vector<sampled_node> nodes;
};

/// A counter that went down belongs to a server that was started again: it counts from 0.
server_sample sample_between(const server_counters &before, const server_counters &after, double seconds);

/// `now`: in seconds since 1970.
json sample_json(const server_sample &sample, double now = unix_seconds());
/// A line for the server, a table of the decoders, one each of streams, deadlines and races if there are any, and
/// one of all other counters that are not 0. Of a router a line, a table of its nodes, and the last one.
std::string sample_text(const server_sample &sample, double now = unix_seconds());

} // namespace cudaq::realtime::tools
