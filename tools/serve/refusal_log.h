// SPDX-License-Identifier: Apache-2.0
// What the server has refused or dropped, as lines on stderr: full queues, and messages that are no requests.
#pragma once

#include "lib/qec/server/decoding_server.h"
#include "tools/services/transport_counters.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace cudaq::realtime::tools {

/// Since the start.
struct refusal_counts {
  std::uint64_t decoder_busy = 0;   ///< requests that were answered BUSY: the queue of their decoder was full
  std::uint64_t transport_busy = 0; ///< the same: the transport had no free slot
  std::uint64_t dropped = 0;        ///< messages that are no requests: as `dropped` of message_refusals
};
[[nodiscard]] refusal_counts refusals_of(const cudaq::qec::realtime::decoding_server &server,
                                         const provider_service &transport);

/// The line for `now`, after one for `before`; "" if nothing has grown.
[[nodiscard]] std::string refusal_line(const refusal_counts &before, const refusal_counts &now);

/// One thread calls the functions. The threads that decode do nothing for it.
class refusal_log {
public:
  using clock = std::chrono::steady_clock;

  /// `read`: the counts now.
  explicit refusal_log(std::function<refusal_counts()> read) : read_(std::move(read)) {}

  /// Prints a line if a count has grown since the last one: at once, and then at most once a minute. Again and again.
  void poll(clock::time_point now = clock::now());
  /// The same without the minute, at the end.
  void poll_at_end(clock::time_point now = clock::now());

private:
  const std::function<refusal_counts()> read_;
  refusal_counts logged_; ///< the most of each: a transport that is gone counts nothing
  clock::time_point next_{};
};

} // namespace cudaq::realtime::tools
