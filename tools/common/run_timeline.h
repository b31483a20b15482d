// SPDX-License-Identifier: Apache-2.0
// How latencies change over the time of a run, in constant memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace cudaq::realtime::tools {

/// Counts values in parts of equal time, at most kMaxParts. A run that is longer makes each part twice as long, then
/// five times: parts always take 1 or 2 times a power of ten. Neighbours become one. Used by one thread.
///
///   parts of 1 ms:   [0] [1] [2] [3]      a value comes at 4 ms, and there are only 4 parts
///   parts of 2 ms:   [0   1] [2   3] [4]
class run_timeline {
public:
  static constexpr std::size_t kMaxParts = 250;
  struct part {
    std::uint64_t count = 0, sum = 0, max = 0;
    [[nodiscard]] double mean() const noexcept {
      return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
    }
  };

  /// `at_ns` is a time of any clock that does not go back; the first one is the begin of the run.
  void record(std::uint64_t at_ns, std::uint64_t value) noexcept {
    if (used_ == 0)
      begin_ns_ = at_ns;
    const std::uint64_t since = std::max(at_ns, begin_ns_) - begin_ns_;
    while (since / part_ns_ >= kMaxParts)
      join_neighbours();
    const std::uint64_t index = since / part_ns_;
    part &p = parts_[static_cast<std::size_t>(index)];
    ++p.count;
    p.sum += value;
    p.max = std::max(p.max, value);
    used_ = std::max(used_, static_cast<std::size_t>(index) + 1);
  }

  /// Parts from the begin to the last value.
  [[nodiscard]] std::size_t size() const noexcept { return used_; }
  [[nodiscard]] const part &operator[](std::size_t i) const noexcept { return parts_[i]; }
  [[nodiscard]] std::uint64_t part_ns() const noexcept { return part_ns_; }

private:
  void join_neighbours() noexcept {
    const std::size_t joined = next_joined_;
    for (std::size_t i = 0; i < kMaxParts; ++i) {
      const part p = std::exchange(parts_[i], {});
      part &all = parts_[i / joined];
      all = {all.count + p.count, all.sum + p.sum, std::max(all.max, p.max)};
    }
    used_ = (used_ + joined - 1) / joined;
    part_ns_ *= joined;
    next_joined_ = joined == 2 ? 5 : 2;
  }

  std::array<part, kMaxParts> parts_{};
  std::size_t used_ = 0;
  std::uint64_t part_ns_ = 100'000;
  std::size_t next_joined_ = 2; ///< how many parts become one
  std::uint64_t begin_ns_ = 0;
};

} // namespace cudaq::realtime::tools
