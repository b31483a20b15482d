// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::realtime::tools {

/// The rounds of one experiment after another, with their soft values and flags: drawn, or recorded. One thread at a
/// time.
class experiment_rounds {
public:
  virtual ~experiment_rounds() = default;

  /// Begins experiment number k: the same rounds for the same seed and k.
  virtual void begin(std::uint64_t seed, std::uint64_t k) = 0;
  /// The detection events of the next round: 0 or 1 for each detector. Valid until the next call. At most rounds()
  /// calls after begin().
  [[nodiscard]] virtual std::span<const std::uint8_t> next_round() = 0;
  /// After all rounds: the observables that the errors have flipped, in packed bits. Empty: they are not known.
  [[nodiscard]] virtual std::span<const std::uint8_t> observables() const noexcept = 0;

  /// Of head, repetitions and tail.
  [[nodiscard]] virtual std::uint64_t rounds() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t rounds_before_tail() const noexcept = 0;

  /// The soft values [from, to) as bytes, and the flags, each from a whole byte on.
  virtual void append_soft(std::uint64_t from, std::uint64_t to, std::vector<std::uint8_t> &bytes) const = 0;
  virtual void append_flags(std::uint64_t from, std::uint64_t to, std::vector<std::uint8_t> &bytes) const = 0;
};

} // namespace cudaq::realtime::tools
