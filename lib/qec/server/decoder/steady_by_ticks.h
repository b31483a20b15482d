// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/base/runner.h"
#include "lib/base/ticks.h"

#include <chrono>
#include <cstdint>

namespace cudaq::qec::realtime {

/// The time of steady_clock at moments that are known in ticks, for one thread at a time. It reads steady_clock when
/// the last read is 10 ms old: a read for each request costs more than all of the request's moments but two. The rate
/// of the ticks is known to about 1e-5, so the result is wrong by some 100 ns at most.
class steady_by_ticks {
public:
  using clock = cudaq::realtime::detail::steady_clock;

  [[nodiscard]] clock::time_point at(std::uint64_t ticks, const cudaq::realtime::detail::tick_clock &by) noexcept {
    using std::chrono::nanoseconds;
    if (read_.time_since_epoch().count() == 0 || ticks < ticks_ || by.ns_between(ticks_, ticks) > kLongest) {
      read_ = clock::now();
      ticks_ = by.about_now();
      return read_ - nanoseconds(by.ns_between(ticks, ticks_));
    }
    return read_ + nanoseconds(by.ns_between(ticks_, ticks));
  }

private:
  static constexpr std::uint64_t kLongest = 10'000'000;

  clock::time_point read_{};
  std::uint64_t ticks_ = 0;
};

} // namespace cudaq::qec::realtime
