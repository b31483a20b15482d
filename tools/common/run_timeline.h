// SPDX-License-Identifier: Apache-2.0
// How latencies change over the time of a run, in constant memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace cudaq::realtime::tools {

/// Counts values in parts of equal time, at most kMostParts. A run that is longer makes each part twice as long: two
/// neighbours become one. Used by one thread.
///
///   parts of 1 ms:   [0] [1] [2] [3]      a value comes at 4 ms, and there are only 4 parts
///   parts of 2 ms:   [0   1] [2   3] [4]
class run_timeline {
public:
  static constexpr std::size_t kMostParts = 128;
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
    std::uint64_t index = (std::max(at_ns, begin_ns_) - begin_ns_) >> shift_;
    for (; index >= kMostParts; index >>= 1)
      join_neighbours();
    part &p = parts_[static_cast<std::size_t>(index)];
    ++p.count;
    p.sum += value;
    p.max = std::max(p.max, value);
    used_ = std::max(used_, static_cast<std::size_t>(index) + 1);
  }

  /// Parts from the begin to the last value.
  [[nodiscard]] std::size_t size() const noexcept { return used_; }
  [[nodiscard]] const part &operator[](std::size_t i) const noexcept { return parts_[i]; }
  [[nodiscard]] std::uint64_t part_ns() const noexcept { return std::uint64_t{1} << shift_; }

private:
  void join_neighbours() noexcept {
    for (std::size_t i = 0; i < kMostParts / 2; ++i) {
      const part &a = parts_[2 * i], &b = parts_[2 * i + 1];
      parts_[i] = {a.count + b.count, a.sum + b.sum, std::max(a.max, b.max)};
    }
    std::fill(parts_.begin() + kMostParts / 2, parts_.end(), part{});
    used_ = (used_ + 1) / 2;
    ++shift_;
  }

  std::array<part, kMostParts> parts_{};
  std::size_t used_ = 0;
  unsigned shift_ = 17; ///< parts of 0.13 ms at first
  std::uint64_t begin_ns_ = 0;
};

} // namespace cudaq::realtime::tools
