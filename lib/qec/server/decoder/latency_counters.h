// SPDX-License-Identifier: Apache-2.0
// How long requests took, as counts that any thread adds to and any thread reads, without a lock and without memory
// of its own.
#pragma once

#include "cudaq/realtime/detail/base/shared_word.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace cudaq::qec::realtime {

/// Bucket k counts the durations above bound_ns(k - 1), up to bound_ns(k). Each power of two from 256 ns to 8.6 s is
/// divided into 4 equal buckets, so a bound is at most 25 % above the durations of its bucket:
///
///   bucket      0    1    2    3    4    5    6  ...  100    101
///   bound (ns)  256  320  384  448  512  640  768     8.6 s  none
class latency_counters {
public:
  static constexpr std::size_t kBounds = 101, kBuckets = kBounds + 1;
  struct counts {
    std::array<std::uint64_t, kBuckets> buckets{};
    std::uint64_t sum_ns = 0;
  };

  static constexpr std::uint64_t bound_ns(std::size_t bucket) noexcept {
    return (std::uint64_t{4} + bucket % 4) << (bucket / 4 + 6);
  }
  static constexpr std::size_t bucket_of(std::uint64_t ns) noexcept {
    if (ns <= bound_ns(0))
      return 0;
    const unsigned shift = static_cast<unsigned>(std::bit_width(ns - 1)) - 3; // leaves the highest three bits: 4 to 7
    return std::min<std::size_t>(4 * std::size_t{shift - 6} + static_cast<std::size_t>((ns - 1) >> shift) - 3, kBounds);
  }

  void record(std::uint64_t ns) noexcept {
    buckets_[bucket_of(ns)].add();
    sum_ns_.add(ns);
  }
  [[nodiscard]] counts read() const noexcept {
    counts now;
    for (std::size_t k = 0; k < kBuckets; ++k)
      now.buckets[k] = buckets_[k].value();
    now.sum_ns = sum_ns_.value();
    return now;
  }

private:
  std::array<cudaq::realtime::detail::counter, kBuckets> buckets_;
  cudaq::realtime::detail::counter sum_ns_;
};

} // namespace cudaq::qec::realtime
