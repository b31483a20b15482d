// SPDX-License-Identifier: Apache-2.0
// What the server did not take, as lines on stderr: full queues, and messages that are no requests.
#pragma once

#include "lib/qec/server/decoding_server.h"
#include "tools/services/transport_counters.h"

#include <chrono>
#include <cstdint>

namespace cudaq::realtime::tools {

/// Since the start.
struct refusal_counts {
  std::uint64_t busy = 0;    ///< answers of decoders whose queue was full
  std::uint64_t no_slot = 0; ///< requests for which the transport had no slot
  std::uint64_t noise = 0;   ///< messages that are no requests: without their magic number, or too short
};

/// The line for `now`, after one for `before`; "" if nothing has grown.
[[nodiscard]] std::string refusal_line(const refusal_counts &before, const refusal_counts &now);

/// One thread calls the functions. The threads that decode do nothing for it.
class refusal_log {
public:
  /// Both must live longer.
  refusal_log(const cudaq::qec::realtime::decoding_server &server, const provider_service &transport)
      : server_(server), transport_(transport) {}

  /// Prints a line if a count has grown since the last one: at once, and then at most once a minute. Again and again.
  void poll();
  /// The same without the minute, at the end.
  void poll_at_end();

private:
  [[nodiscard]] refusal_counts read() const;

  const cudaq::qec::realtime::decoding_server &server_;
  const provider_service &transport_;
  refusal_counts logged_;
  std::chrono::steady_clock::time_point next_{};
};

} // namespace cudaq::realtime::tools
