// SPDX-License-Identifier: Apache-2.0
// The live counters of a server, read from its Unix socket.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools {

/// Upper bound of each bucket in ns, and the requests up to it. The last bound is infinite.
using counted_buckets = std::vector<std::pair<double, std::uint64_t>>;

/// A stage of requests; "whole" is all of them.
struct counted_stage {
  std::string name;
  counted_buckets buckets; ///< empty: those of `whole` are the decoder's
  double worst_ns = 0;     ///< since the start
};

/// A detector whose rate differs from its model's. `sigma`: by how many standard deviations, without a sign.
struct counted_detector {
  std::uint64_t rank = 0, detector = 0; ///< rank 1 differs most
  double sigma = 0, rate = 0, model_rate = 0;
};

struct counted_decoder {
  std::uint64_t id = 0, requests = 0, shots = 0, waiting = 0, too_old = 0, padded = 0, exchanges = 0;
  std::uint64_t deadline_met = 0, deadline_missed = 0, deadline_late = 0;
  std::vector<std::pair<std::string, std::uint64_t>> answers; ///< by status
  std::vector<std::pair<std::string, std::uint64_t>> wins;    ///< by member of a race
  counted_buckets latency;
  std::vector<counted_stage> stages; ///< in the order of the page; none before the first answer
  double latency_sum_ns = 0;
  bool is_stream = false;
  std::uint64_t rounds_pushed = 0, rounds_committed = 0, lag_rounds = 0, worst_lag_rounds = 0;
  double tail_sum_ns = 0, worst_tail_ns = 0; ///< from the last bits of a stream to their answer
  std::uint64_t detectors = 0, detector_shots = 0, detectors_beyond = 0; ///< 0: detection events are not counted
  std::vector<counted_detector> worst_detectors;                         ///< by rank
};

/// A node of a router.
struct counted_node {
  std::string name;
  bool joined = false;
  std::uint64_t forwarded = 0, answered = 0, lost = 0, refused = 0, late = 0, joins = 0, losses = 0;
};

/// The counters of a server, or of a router, at one moment.
struct server_counters {
  std::string version;   ///< of the program; "" of one that does not say it
  double start_time = 0; ///< in seconds since 1970; 0: not known
  std::uint64_t processed = 0, in_flight = 0, strays = 0, reloads = 0;
  std::uint64_t bad_magic = 0; ///< dropped by the dispatcher, or by the transport before it
  /// All that the server counts besides its decoders and nodes, such as each reason of a drop, in the order of the
  /// page: "dropped_bad_magic", "transport dropped, long". What is new in a later server is here, too.
  std::vector<std::pair<std::string, std::uint64_t>> others;
  std::vector<counted_decoder> decoders;
  bool is_router = false; ///< then `processed` and `strays` are its requests and stray messages, and it has no decoder
  std::vector<counted_node> nodes;
};

/// The last line of the counters of a server or a router, as in OpenMetrics.
inline constexpr const char *kEndOfCounters = "# EOF\n";

/// Ctrl-C came while the program read.
struct reading_interrupted : std::runtime_error {
  reading_interrupted() : std::runtime_error("interrupted") {}
};

/// Reads Prometheus text. Lines of unknown names are ignored. Throws std::runtime_error if it is neither the text of a
/// server nor that of a router, or not all of it.
server_counters parse_counters(const std::string &text);

/// All that the server at the socket `path` gives to a connection. A page of counters that was cut is asked for again.
/// Throws std::runtime_error with the reason: no listener, no file, no answer within 10 s (a server that reloads
/// answers late); reading_interrupted.
std::string read_counters(const std::string &path);

} // namespace cudaq::realtime::tools
