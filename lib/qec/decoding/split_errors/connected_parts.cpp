// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/split_errors/connected_parts.h"

#include "lib/qec/decoding/split_errors/joined_sets.h"

#include <algorithm>

namespace cudaq::qec::realtime {

connected_parts::connected_parts(const detector_error_model &model, bool by_component) {
  constexpr std::uint64_t kNoDetector = UINT64_MAX;
  joined_sets sets(model.num_detectors);
  // A detector of each error, and of each component.
  std::uint64_t of_error = kNoDetector;
  std::vector<std::uint64_t> first(model.components.size(), kNoDetector);
  for (std::size_t k = 0; k < model.components.size(); ++k) {
    const dem_component &c = model.components[k];
    if (by_component || k == 0 || model.components[k - 1].mechanism != c.mechanism)
      of_error = kNoDetector;
    for (const std::uint64_t detector : model.detectors_of(c)) {
      if (of_error != kNoDetector)
        sets.join(detector, of_error);
      of_error = detector;
    }
    first[k] = of_error;
  }
  // A component without detectors belongs to those that come after it, too.
  for (std::size_t k = model.components.size(); !by_component && k-- > 1;)
    if (first[k - 1] == kNoDetector && model.components[k - 1].mechanism == model.components[k].mechanism)
      first[k - 1] = first[k];
  part_of = sets.numbers();
  parts.resize(part_of.empty() ? 0 : *std::ranges::max_element(part_of) + std::size_t{1});
  for (std::size_t k = 0; k < model.components.size(); ++k) {
    if (first[k] == kNoDetector)
      continue;
    part &of = parts[part_of[first[k]]];
    of.flips_observables |= model.components[k].observables != 0;
    of.has_boundary |= model.components[k].detectors == 1;
  }
}

} // namespace cudaq::qec::realtime
