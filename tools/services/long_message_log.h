// SPDX-License-Identifier: Apache-2.0
// Messages that no slot has room for, as lines on stderr.
#pragma once

#include "tools/services/transport_counters.h"

#include <chrono>
#include <cstdint>
#include <functional>

namespace cudaq::realtime::tools {

/// One thread calls poll() again and again.
class long_message_log {
public:
  /// `transport` must live longer. `needed`: bytes of the longest request that is expected; 0: no slot is so large.
  long_message_log(const provider_service &transport, std::function<std::uint64_t()> needed)
      : transport_(transport), needed_(std::move(needed)) {}

  /// Prints a line if there were such messages since the last one, at most once a second: each message of a control
  /// system may be too long. Throws std::bad_alloc: the next poll prints it.
  void poll();

private:
  const provider_service &transport_;
  const std::function<std::uint64_t()> needed_;
  std::uint64_t logged_ = 0; ///< messages
  std::chrono::steady_clock::time_point next_{};
};

} // namespace cudaq::realtime::tools
