// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/confidence/forced_observable.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

/// Sets of detectors that are joined step by step, each with a bit relative to the first of its set.
class shifted_sets {
public:
  explicit shifted_sets(std::size_t size) : parent_(size), bit_(size) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }

  /// From now on the bits of `a` and `b` differ by `bit`; false: they already differ by the other one.
  [[nodiscard]] bool join(std::size_t a, std::size_t b, std::uint8_t bit) {
    const auto [root_a, bit_a] = root(a);
    const auto [root_b, bit_b] = root(b);
    const std::uint8_t between = bit_a ^ bit_b ^ bit;
    if (root_a == root_b)
      return between == 0;
    parent_[root_a] = root_b;
    bit_[root_a] = between;
    return true;
  }
  [[nodiscard]] std::uint8_t bit(std::size_t of) { return root(of).second; }

private:
  std::pair<std::size_t, std::uint8_t> root(std::size_t of) {
    std::uint8_t sum = 0;
    while (parent_[of] != of) {
      const std::size_t next = parent_[of];
      bit_[of] ^= bit_[next]; // of a root it is 0
      parent_[of] = parent_[next];
      sum ^= bit_[of];
      of = parent_[of];
    }
    return {of, sum};
  }

  std::vector<std::size_t> parent_;
  std::vector<std::uint8_t> bit_; ///< to the parent
};

bool flips(const detector_error_model &model, const dem_component &c, std::uint64_t observable) {
  return std::ranges::binary_search(model.observables_of(c), observable);
}

/// The model with the new detector in each component for which `has_it`.
template <class Predicate>
forced_observable with_detector(const detector_error_model &model, const Predicate &has_it) {
  forced_observable made{
      {model.num_detectors + 1, model.num_observables, model.num_errors, {}, {}}, {}, /*is_fixed=*/true};
  made.model.components.reserve(model.components.size());
  made.model.targets.reserve(model.targets.size() + model.components.size());
  std::vector<std::uint64_t> detectors;
  for (const dem_component &c : model.components) {
    const auto own = model.detectors_of(c);
    detectors.assign(own.begin(), own.end());
    if (has_it(c)) {
      detectors.push_back(model.num_detectors);
      made.is_fixed = false;
    }
    made.model.add(c, detectors, model.observables_of(c));
  }
  return made;
}

} // namespace

forced_observable force_observable(const detector_error_model &model, std::uint64_t observable) {
  return with_detector(model, [&](const dem_component &c) { return flips(model, c, observable); });
}

expected<forced_observable> force_matched_observable(const detector_error_model &model, std::uint64_t observable) {
  shifted_sets sets(static_cast<std::size_t>(model.num_detectors));
  for (const dem_component &c : model.components) {
    if (c.detectors != 2)
      continue;
    const auto detectors = model.detectors_of(c);
    if (!sets.join(detectors[0], detectors[1], flips(model, c, observable) ? 1 : 0))
      return reason("line " + std::to_string(c.line) + ": with the component D" + std::to_string(detectors[0]) + " D" +
                    std::to_string(detectors[1]) + " errors lead from a detector back to it and flip L" +
                    std::to_string(observable) +
                    ", as on a torus: matching cannot give the observable a value; the decoder bp-osd gives an "
                    "approximate gap");
  }
  std::vector<std::uint8_t> shift(static_cast<std::size_t>(model.num_detectors));
  for (std::size_t detector = 0; detector < shift.size(); ++detector)
    shift[detector] = sets.bit(detector);
  forced_observable made = with_detector(model, [&](const dem_component &c) {
    std::uint8_t bit = flips(model, c, observable) ? 1 : 0;
    for (const std::uint64_t detector : model.detectors_of(c))
      bit ^= shift[detector];
    return bit != 0; // never with two detectors
  });
  made.shift = std::move(shift);
  return made;
}

} // namespace cudaq::qec::realtime
