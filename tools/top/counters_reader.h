// SPDX-License-Identifier: Apache-2.0
// The live counters of a server, read from its Unix socket.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools {

struct counted_decoder {
  std::uint64_t id = 0, requests = 0, shots = 0, waiting = 0, too_old = 0, failed_one_shots = 0, exchanges = 0;
  std::vector<std::pair<std::string, std::uint64_t>> answers; ///< by status
  /// Upper bound of each bucket in ns, and the requests up to it. The last bound is infinite.
  std::vector<std::pair<double, std::uint64_t>> latency;
  double latency_sum_ns = 0;
  bool is_stream = false;
  std::uint64_t rounds_pushed = 0, rounds_committed = 0, lag_rounds = 0, worst_lag_rounds = 0;
  double tail_sum_ns = 0, worst_tail_ns = 0; ///< from the last bits of a stream to their answer
};

/// The counters of a server at one moment.
struct server_counters {
  std::uint64_t processed = 0, in_flight = 0, strays = 0, bad_magic = 0, reloads = 0;
  std::vector<counted_decoder> decoders;
};

/// The last line of a server's counters, as in OpenMetrics.
inline constexpr const char *kEndOfCounters = "# EOF\n";

/// Ctrl-C came while the program read.
struct reading_interrupted : std::runtime_error {
  reading_interrupted() : std::runtime_error("interrupted") {}
};

/// Reads Prometheus text. Lines of unknown names are ignored. Throws std::runtime_error if it is not the text of a
/// server, or not all of it.
server_counters parse_counters(const std::string &text);

/// All that the server at the socket `path` gives to a connection. Throws std::runtime_error with the reason: no
/// listener, no file, no answer within 10 s (a server that reloads answers late); reading_interrupted.
std::string read_counters(const std::string &path);

} // namespace cudaq::realtime::tools
