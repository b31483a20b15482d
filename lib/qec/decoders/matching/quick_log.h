// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace cudaq::qec::realtime {

/// The natural logarithm to 1e-10, for finite numbers from 2^-1022 on; others give any value. Inlined: a call of
/// std::log took a quarter of the time of a list.
///
/// A number is 2^k m with m from 1 to 2. The table has the middle c of the range of m among 128. With r = m / c - 1, at
/// most 1/256, the logarithm is k log(2) + log(c) + r - r^2 / 2 + r^3 / 3. The rest, about r^4 / 4, is below 6e-11.
class quick_log {
public:
  quick_log() noexcept {
    for (std::size_t k = 0; k < table_.size(); ++k) {
      const double middle = 1 + (static_cast<double>(k) + 0.5) / kRanges;
      table_[k] = {1 / middle, std::log(middle)};
    }
  }

  [[nodiscard]] double operator()(double of) const noexcept {
    const auto bits = std::bit_cast<std::uint64_t>(of);
    const entry &at = table_[bits >> 45 & (kRanges - 1)];
    const double r = std::bit_cast<double>((bits & 0xfffffffffffffU) | 0x3ff0000000000000U) * at.inverse - 1;
    return static_cast<double>(static_cast<std::int32_t>(bits >> 52) - 1023) * 0.693147180559945309 + at.log +
           r * (1 + r * (r * (1 / 3.0) - 0.5));
  }

private:
  static constexpr std::uint64_t kRanges = 128;
  struct entry {
    double inverse, log;
  };
  std::array<entry, kRanges> table_;
};

} // namespace cudaq::qec::realtime
