// SPDX-License-Identifier: Apache-2.0
// What decodes of the running server do wrong, as lines on stderr.
#pragma once

#include "lib/qec/server/decoding_server.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace cudaq::realtime::tools {

/// From here on the decode of a request has taken far too long: 100 times the deadline of its decoder, and at least
/// 1 s; 10 s without a deadline.
[[nodiscard]] std::chrono::nanoseconds long_decode(std::uint64_t deadline_ns) noexcept;

/// One thread calls poll() again and again, about ten times a second. The threads that decode do nothing for it.
class decode_log {
public:
  /// `server` must live longer. Throws std::bad_alloc.
  explicit decode_log(cudaq::qec::realtime::decoding_server &server);

  /// Prints a line for each decoder with new failures, at most once a second; and one for each decode that takes long.
  void poll();
  /// Prints a line for each decoder with new failures: before the end, which comes before the next second.
  void poll_failures();

private:
  using clock = std::chrono::steady_clock;
  /// What the last polls have seen of a decoder.
  struct seen {
    std::uint64_t failures = 0, begun = 0;
    std::optional<clock::time_point> serving_since; ///< the same request, at each poll since
    bool reported = false;                          ///< its line is printed
  };

  void poll_decode(cudaq::qec::realtime::served_decoder &decoder, seen &before, clock::time_point now);

  cudaq::qec::realtime::decoding_server &server_;
  std::vector<seen> decoders_;
  clock::time_point failures_logged_{}; ///< when
};

} // namespace cudaq::realtime::tools
