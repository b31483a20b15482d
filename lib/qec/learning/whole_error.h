// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/dem.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cudaq::qec::realtime {

/// An error with all of its components, which happen together.
struct whole_error {
  double probability;
  std::uint64_t line;
  std::uint32_t mechanism;
  std::vector<std::uint32_t> detectors; ///< that it flips, ascending; may be empty
};

/// In the order of the text.
inline std::vector<whole_error> whole_errors_of(const detector_error_model &model) {
  std::vector<whole_error> errors;
  std::uint32_t last = 0;
  for (const dem_component &c : model.components) {
    if (errors.empty() || c.mechanism != last)
      errors.push_back({c.probability, c.line, c.mechanism, {}});
    last = c.mechanism;
    for (const std::uint64_t d : model.detectors_of(c))
      errors.back().detectors.push_back(static_cast<std::uint32_t>(d));
  }
  for (whole_error &error : errors) {
    std::vector<std::uint32_t> &all = error.detectors, once;
    std::ranges::sort(all);
    for (std::size_t k = 0; k < all.size(); ++k) {
      const bool cancels = k + 1 < all.size() && all[k] == all[k + 1];
      if (!cancels)
        once.push_back(all[k]);
      k += cancels ? 1 : 0;
    }
    all = std::move(once);
  }
  return errors;
}

} // namespace cudaq::qec::realtime
