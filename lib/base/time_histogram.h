// SPDX-License-Identifier: Apache-2.0
// Histograms of durations with constant relative precision and constant memory: the buckets, and a histogram that other
// threads read while one thread writes it.
#pragma once

#include "cudaq/realtime/detail/base/shared_word.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

namespace cudaq::realtime::detail {

/// Every power of two is divided into 2^SubBits equal buckets; values below 2^(SubBits + 1) have one bucket each. With
/// SubBits 7:
///
///   value        bucket width   buckets
///   0 .. 255          1          0 .. 255
///   256 .. 511        2        256 .. 383    300 -> bucket 256 + (300 - 256) / 2 = 278, which holds 300 and 301
///   512 .. 1023       4        384 .. 511
template <unsigned SubBits>
struct log_linear {
  static constexpr unsigned kSubBits = SubBits;

  static constexpr std::size_t index_of(std::uint64_t value) noexcept {
    const unsigned width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > SubBits + 1 ? width - (SubBits + 1) : 0;
    return (static_cast<std::size_t>(shift) << SubBits) + static_cast<std::size_t>(value >> shift);
  }
  static constexpr std::uint64_t lower_of(std::size_t index) noexcept {
    if (index < (std::size_t{2} << SubBits))
      return index;
    const std::size_t shift = (index >> SubBits) - 1;
    return static_cast<std::uint64_t>(index - (shift << SubBits)) << shift;
  }
  static constexpr std::uint64_t upper_of(std::size_t index) noexcept { return lower_of(index + 1) - 1; }

  /// The bucket of the smallest value that at least `percent` of all values do not exceed. `counts`: of the buckets, of
  /// which each holds a number; `count`: their sum, more than 0.
  template <class Counts>
  static std::size_t bucket_of_percentile(double percent, const Counts &counts, std::uint64_t count) noexcept {
    // Slightly below the product: 99.9 has no exact binary form, and 99.9 % of 1000 values must give the 999th.
    const double exact = std::clamp(percent, 0.0, 100.0) / 100.0 * static_cast<double>(count);
    const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(exact * (1.0 - 1e-12))), 1, count);
    std::uint64_t seen = 0;
    std::size_t i = 0;
    for (const std::size_t last = std::size(counts) - 1; i < last; ++i) {
      seen += counts[i];
      if (seen >= rank)
        break;
    }
    return i;
  }
};

/// Durations in nanoseconds, for one writing thread and any number of readers; with many_writers for any number of
/// writers. A bucket is at most 1/32 (3.1 %) of its values wide. Durations from 2^40 ns (18 minutes) on are in the last
/// bucket. 9.2 KB; recording does not allocate.
class time_histogram {
public:
  using buckets = log_linear<5>;
  static constexpr std::uint64_t kLargest = (std::uint64_t{1} << 40) - 1;
  static constexpr std::size_t kBuckets = buckets::index_of(kLargest) + 1;

  void record(std::uint64_t ns, bool many_writers = false) noexcept {
    counter &bucket = counts_[buckets::index_of(std::min(ns, kLargest))];
    if (many_writers) {
      sum_ns_.add(ns);
      for (std::uint64_t seen = max_ns_.peek(); ns > seen && !max_ns_.claim(seen, ns); seen = max_ns_.peek()) {
      }
      bucket.add();
      return;
    }
    sum_ns_.bump(ns);
    if (ns > max_ns_.peek())
      max_ns_.set(ns);
    bucket.bump();
  }

  /// The values of one or several histograms at one moment. Values that are recorded during `add` may be missing, or be
  /// in sum_ns and max_ns only.
  struct snapshot {
    std::array<std::uint64_t, kBuckets> counts{};
    std::uint64_t count = 0; ///< the sum of counts
    std::uint64_t sum_ns = 0;
    std::uint64_t max_ns = 0;

    void add(const time_histogram &from) noexcept {
      for (std::size_t i = 0; i < kBuckets; ++i) {
        const std::uint64_t n = from.counts_[i].value();
        counts[i] += n;
        count += n;
      }
      sum_ns += from.sum_ns_.value();
      max_ns = std::max(max_ns, from.max_ns_.peek());
    }
    /// The upper end of the bucket, but never above max_ns; 0 without values.
    std::uint64_t percentile(double percent) const noexcept {
      if (count == 0)
        return 0;
      return std::min(buckets::upper_of(buckets::bucket_of_percentile(percent, counts, count)), max_ns);
    }
  };

private:
  std::array<counter, kBuckets> counts_{};
  counter sum_ns_;
  shared_word<std::uint64_t> max_ns_;
};

} // namespace cudaq::realtime::detail
