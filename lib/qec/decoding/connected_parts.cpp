// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/connected_parts.h"

#include <numeric>

namespace cudaq::qec::realtime {
namespace {

/// Sets that are joined step by step (union-find with path halving).
class joined_sets {
public:
  explicit joined_sets(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }

  std::size_t root(std::size_t of) {
    while (parent_[of] != of)
      of = parent_[of] = parent_[parent_[of]];
    return of;
  }
  void join(std::size_t a, std::size_t b) { parent_[root(a)] = root(b); }

private:
  std::vector<std::size_t> parent_;
};

} // namespace

connected_parts::connected_parts(const detector_error_model &model, bool by_component) {
  constexpr std::uint32_t kNone = UINT32_MAX;
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
  std::vector<std::uint32_t> number(model.num_detectors, kNone);
  for (std::uint64_t detector = 0; detector < model.num_detectors; ++detector) {
    std::uint32_t &of = number[sets.root(detector)];
    if (of == kNone) {
      of = static_cast<std::uint32_t>(parts.size());
      parts.emplace_back();
    }
    part_of.push_back(of);
  }
  for (std::size_t k = 0; k < model.components.size(); ++k) {
    if (first[k] == kNoDetector)
      continue;
    part &of = parts[part_of[first[k]]];
    of.flips_observables |= model.components[k].observables != 0;
    of.has_boundary |= model.components[k].detectors == 1;
  }
}

} // namespace cudaq::qec::realtime
