// SPDX-License-Identifier: Apache-2.0
// Clients that come and go, as lines on stderr.
#pragma once

#include "tools/services/transport_counters.h"

#include <chrono>

namespace cudaq::realtime::tools {

/// One thread calls poll() again and again. A transport that does not know its clients (clients_of) has no lines.
class client_log {
public:
  /// `transport` must live longer.
  explicit client_log(const provider_service &transport) : transport_(transport) {}

  /// Prints a line if clients have come or gone since the last one, at most once a second.
  void poll();

private:
  const provider_service &transport_;
  client_counts logged_;
  std::chrono::steady_clock::time_point next_{};
};

} // namespace cudaq::realtime::tools
