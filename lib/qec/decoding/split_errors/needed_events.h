// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/split_errors/connected_parts.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace cudaq::qec::realtime {

/// Of the events of a shot those that a matcher needs for the observables: those of connected parts that flip some. For
/// one thread; a call allocates nothing.
class needed_events {
public:
  /// Each component of the model is an error of its own.
  explicit needed_events(const detector_error_model &model) {
    connected_parts parts(model, /*by_component=*/true);
    const auto flips = [](const connected_parts::part &part) { return part.flips_observables; };
    if (std::ranges::all_of(parts.parts, flips))
      return;
    needed_.reserve(static_cast<std::size_t>(model.num_detectors));
    odd_.resize(parts.parts.size());
    parts_ = std::move(parts);
  }

  /// False: all events are needed.
  [[nodiscard]] bool drops_some() const noexcept { return parts_.has_value(); }

  /// For each detector, whether of() drops its events. Only with drops_some().
  [[nodiscard]] std::vector<bool> dropped() const {
    std::vector<bool> is_dropped;
    for (const std::uint32_t part : parts_->part_of)
      is_dropped.push_back(!parts_->parts[part].flips_observables);
    return is_dropped;
  }

  /// Only with drops_some(). The others have a solution, which flips nothing; null: they have none.
  [[nodiscard]] const std::vector<std::uint64_t> *of(const std::vector<std::uint64_t> &events) noexcept {
    needed_.clear();
    std::uint32_t odd_parts = 0; // without a boundary
    for (const std::uint64_t event : events) {
      const std::uint32_t number = parts_->part_of[event];
      const connected_parts::part &part = parts_->parts[number];
      if (part.flips_observables)
        needed_.push_back(event);
      else if (!part.has_boundary)
        odd_parts += (odd_[number] ^= 1) != 0 ? 1 : UINT32_MAX; // minus 1
    }
    if (odd_parts == 0) // else some of odd_ are 1
      return &needed_;
    for (const std::uint64_t event : events)
      odd_[parts_->part_of[event]] = 0;
    return nullptr;
  }

private:
  std::optional<connected_parts> parts_;
  std::vector<std::uint8_t> odd_;     ///< of each part without a boundary: odd number of events; 0 between shots
  std::vector<std::uint64_t> needed_; ///< room for all detectors
};

} // namespace cudaq::qec::realtime
