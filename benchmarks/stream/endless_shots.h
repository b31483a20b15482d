// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/model_sampler.h"
#include "lib/qec/stream/repeating_model.h"

#include <cstdint>
#include <random>
#include <vector>

namespace cudaq::realtime::tools {

namespace qec = cudaq::qec::realtime;

/// Samples experiments of any length from a model with a loop: each error happens or not, with its probability.
///
/// The errors are divided by their first detector: those of the first repetitions, those of some repetitions in the
/// middle, which are sampled as often as it takes, and those of the last repetitions. An error that flips detectors of
/// a later part is not cut.
class endless_sampler {
public:
  /// The reason: the model cannot be unrolled for a few repetitions.
  static qec::expected<endless_sampler> make(const qec::repeating_model &model);

  /// An experiment: one bit for each detector, k in bit k % 8 of byte k / 8, and the observables that its errors flip.
  struct shot {
    std::vector<std::uint8_t> events, observables;
    std::uint64_t detectors = 0;
  };
  /// `repetitions`: at least least_repetitions().
  [[nodiscard]] shot sample(std::uint64_t repetitions, std::mt19937_64 &random) const;
  [[nodiscard]] std::uint64_t least_repetitions() const noexcept { return 2 * border_; }

private:
  endless_sampler(const qec::repeating_model &model, const qec::detector_error_model &few, std::uint64_t border);

  std::uint64_t border_;                  ///< repetitions of the first and of the last part
  std::uint64_t head_, body_, tail_;      ///< detectors
  std::vector<qec::model_sampler> parts_; ///< first, one repetition, a block of repetitions, last
};

} // namespace cudaq::realtime::tools
