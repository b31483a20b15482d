// SPDX-License-Identifier: Apache-2.0
// A histogram of durations with constant relative precision and constant memory.
#pragma once

#include "lib/base/time_histogram.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

namespace cudaq::realtime::tools {

/// Its buckets are log_linear<7>.
///
/// Accuracy: a percentile is reported as the upper end of its bucket, but never above the largest value. So it is never
/// below the true order statistic, and at most 1/128 (0.8 %) above it. min, max, count and mean are exact. Values above
/// kLargest are counted in the last bucket. record() never allocates. One thread at a time.
class latency_histogram : public detail::log_linear<7> {
public:
  static constexpr std::uint64_t kLargest = (std::uint64_t{1} << 42) - 1; ///< 73 minutes in nanoseconds
  static constexpr double kRelativeError = 1.0 / (1u << kSubBits);

  latency_histogram() : buckets_(index_of(kLargest) + 1) {}

  void record(std::uint64_t value) noexcept {
    ++buckets_[index_of(std::min(value, kLargest))];
    ++count_;
    sum_ += value;
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }

  void merge(const latency_histogram &other) noexcept {
    for (std::size_t i = 0; i < buckets_.size(); ++i)
      buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t min() const noexcept { return count_ == 0 ? 0 : min_; }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  [[nodiscard]] double mean() const noexcept {
    return count_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }

  /// Smallest recorded value (see Accuracy) that at least `percent` of all values do not exceed. 0 if there are no
  /// values.
  [[nodiscard]] std::uint64_t percentile(double percent) const noexcept {
    if (count_ == 0)
      return 0;
    return std::clamp(upper_of(bucket_of_percentile(percent, buckets_, count_)), min_, max_);
  }

  /// Number of values in [low, high), with bucket precision.
  [[nodiscard]] std::uint64_t count_between(std::uint64_t low, std::uint64_t high) const noexcept {
    std::uint64_t n = 0;
    for (std::size_t i = index_of(std::min(low, kLargest)); i < buckets_.size() && lower_of(i) < high; ++i)
      if (lower_of(i) >= low)
        n += buckets_[i];
    return n;
  }

  /// Calls visit(upper end, count) for every bucket that holds a value, in ascending order.
  template <typename Visit>
  void each_bucket(Visit visit) const {
    for (std::size_t i = 0; i < buckets_.size(); ++i)
      if (buckets_[i] != 0)
        visit(std::clamp(upper_of(i), min_, max_), buckets_[i]);
  }

  /// Writes the text format of HdrHistogram's plotter: value, fraction, count up to that value, 1 / (1 - fraction).
  /// The values are divided by `unit`, e.g. 1000 writes nanoseconds as microseconds.
  void write_hgrm(std::ostream &out, double unit = 1.0) const;

private:
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t min_ = UINT64_MAX;
  std::uint64_t max_ = 0;
};

inline void latency_histogram::write_hgrm(std::ostream &out, double unit) const {
  const auto flags = out.flags();
  const auto precision = out.precision();
  out << "       Value     Percentile TotalCount 1/(1-Percentile)\n\n" << std::fixed;
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] == 0)
      continue;
    seen += buckets_[i];
    const double fraction = static_cast<double>(seen) / static_cast<double>(count_);
    out.precision(3);
    out.width(12);
    out << static_cast<double>(std::clamp(upper_of(i), min_, max_)) / unit << ' ';
    out.precision(12);
    out << fraction << ' ';
    out.width(10);
    out << seen;
    out.precision(2);
    if (seen < count_)
      out << ' ' << static_cast<double>(count_) / static_cast<double>(count_ - seen);
    out << '\n';
  }
  out.precision(3);
  out << "#[Mean = " << mean() / unit << ", Max = " << static_cast<double>(max()) / unit << ", Total count = " << count_
      << "]\n#[Buckets are at most 1/" << (1u << kSubBits) << " of their value wide]\n";
  out.flags(flags);
  out.precision(precision);
}

} // namespace cudaq::realtime::tools
