// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/learning/learned_rates.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cudaq::qec::realtime {

/// "0.00123"
[[nodiscard]] std::string short_number(double value);

/// `exponents`: of each detector, by the model: the sum of those of its errors.
[[nodiscard]] std::vector<detector_rate> beside_model(const std::vector<double> &exponents, const event_counts &counts);

/// A set of at least two detectors that errors flip together: exponents by the model, and by the counts.
struct set_change {
  std::span<const std::uint32_t> detectors;
  double model, now, sigma;
};

/// learned_rates::refusals; of `rates` all else must be known.
[[nodiscard]] std::vector<std::string> refusals_of(const learned_rates &rates, const event_counts &counts,
                                                   const std::vector<set_change> &changes,
                                                   const learning_options &options);

} // namespace cudaq::qec::realtime
