// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/dem.h"

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// Uniform in (0, 1]. Not std::uniform_real_distribution: an equal seed must give equal shots with every library.
[[nodiscard]] inline double uniform(std::mt19937_64 &random) {
  return static_cast<double>((random() >> 11) + 1) * 0x1p-53;
}

/// Samples shots from a detector error model: each error instruction happens or not, with its probability, on its own;
/// the components of a decomposed error happen together. One thread at a time.
class model_sampler {
public:
  explicit model_sampler(const detector_error_model &model);

  /// Adds a shot to `shot`: detector k in bit k % 8 of byte k / 8, and to `observables` likewise. Both are 0 on entry.
  void sample(std::mt19937_64 &random, std::span<std::uint8_t> shot, std::span<std::uint8_t> observables) const;

  /// The same for a shot with exactly `errors` errors, distributed as the shots of sample() with this number.
  /// can_sample(errors) must be true.
  void sample_exactly(std::uint32_t errors, std::mt19937_64 &random, std::span<std::uint8_t> shot,
                      std::span<std::uint8_t> observables) const;
  /// False if nearly every draw of `errors` errors would have one of them twice, or no error can happen.
  [[nodiscard]] bool can_sample(std::uint32_t errors) const noexcept;

  [[nodiscard]] double expected_errors() const noexcept { return expected_; }
  [[nodiscard]] std::size_t shot_bytes() const noexcept { return shot_bytes_; }
  [[nodiscard]] std::size_t observable_bytes() const noexcept { return observable_bytes_; }

private:
  struct mechanism {
    double probability;
    std::uint32_t first, detectors, last; ///< targets: detectors [first, detectors), observables [detectors, last)
  };
  void flip(const mechanism &m, std::span<std::uint8_t> shot, std::span<std::uint8_t> observables) const;

  std::size_t shot_bytes_, observable_bytes_;
  std::vector<mechanism> mechanisms_; ///< likeliest first
  std::vector<std::uint32_t> groups_; ///< ends of runs of mechanisms whose probabilities differ less than by a factor 2
  std::vector<std::uint32_t> targets_;
  std::vector<double> odds_up_to_; ///< sums of p / (1 - p)
  double expected_ = 0, collisions_ = 0;
};

} // namespace cudaq::qec::realtime
