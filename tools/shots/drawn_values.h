// SPDX-License-Identifier: Apache-2.0
// The soft values and flags of an endless experiment that was not measured.
#pragma once

#include "lib/qec/stream/stream_readout.h"

#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::realtime::tools {

namespace qec = cudaq::qec::realtime;

/// Drawn from the Gaussians of the table: value k depends on the seed, the experiment and k alone, so it need not be
/// kept. Its distance from the mean is one of 16384 that are drawn once. So are flags, each on its own.
class drawn_values {
public:
  /// `readout` must outlive it. `leaked`: the probability of a flag to be 2, and to be 1; else it is 0. Throws
  /// usage_error: the table does not say how values of this kind are spread.
  drawn_values(const qec::stream_readout &readout, qec::soft_kind kind, std::uint64_t repetitions, double leaked);

  [[nodiscard]] const qec::stream_readout &readout() const noexcept { return readout_; }
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  /// Begins experiment number k.
  void begin(std::uint64_t seed, std::uint64_t k) noexcept;
  /// The values [from, to) as bytes, from a whole byte on. A value that misreads no error is 0.
  void append(std::uint64_t from, std::uint64_t to, std::vector<std::uint8_t> &bytes) const;
  void append_flags(std::uint64_t from, std::uint64_t to, std::vector<std::uint8_t> &bytes) const;
  /// The probability of an error that has this one without misread measurements and flags. `repetitions`: that its
  /// readings and listings are later.
  [[nodiscard]] double probability(double rest, std::span<const qec::read_errors::reading> readings,
                                   std::span<const qec::read_errors::listing> listings,
                                   std::uint64_t repetitions) const noexcept;

private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  [[nodiscard]] double drawn(std::uint64_t number, std::uint32_t calibration) const noexcept;
  [[nodiscard]] unsigned flag(std::uint64_t number) const noexcept;
  /// kNone: no error is misread by this value.
  [[nodiscard]] std::uint32_t calibration_of(std::uint64_t number) const noexcept;

  const qec::stream_readout &readout_;
  const qec::soft_kind kind_;
  const std::uint64_t body_, body_flags_, repetitions_, total_;
  const double leaked_;
  std::vector<std::uint32_t> head_, tail_;   ///< calibrations of the first values, and of the last ones
  std::vector<std::uint32_t> in_body_;       ///< of the values of a repetition, modulo body_
  std::vector<std::uint64_t> first_in_body_; ///< the number of such a value in the first repetition
  std::vector<double> normal_;               ///< normal with mean 0 and standard deviation 1
  std::uint64_t key_ = 0, flags_key_ = 0;
};

} // namespace cudaq::realtime::tools
