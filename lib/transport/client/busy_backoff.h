// SPDX-License-Identifier: Apache-2.0
// When a request that was answered BUSY is sent again.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cudaq::realtime::detail {

/// 20 us after the first such answer, then twice as long after each, at most 10 ms. Times in ns of any clock.
class busy_backoff {
public:
  void refused(std::uint64_t now) {
    if (wait_ == 0)
      since_ = now;
    wait_ = wait_ == 0 ? kFirst : std::min(2 * wait_, kMax);
    until_ = now + wait_;
  }
  void accepted() { wait_ = until_ = 0; }
  [[nodiscard]] bool is_over(std::uint64_t now) const { return now >= until_; }
  [[nodiscard]] std::uint64_t until() const { return until_; }
  /// It has been refused for so long.
  [[nodiscard]] bool lasts(std::uint64_t now, std::uint64_t limit) const { return wait_ != 0 && now - since_ > limit; }

private:
  static constexpr std::uint64_t kFirst = 20'000, kMax = 10'000'000;
  std::uint64_t wait_ = 0, until_ = 0, since_ = 0;
};

} // namespace cudaq::realtime::detail
