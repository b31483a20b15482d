// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/or_error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// One component of an error: the targets between two `^`. A decoder treats the components of a decomposed error as
/// independent errors.
struct dem_component {
  double probability;
  std::uint64_t line;        ///< of the instruction in the text, from 1
  std::size_t first_target;  ///< into detector_error_model::targets
  std::uint32_t detectors;   ///< targets [first_target, + detectors): absolute detector indices, ascending
  std::uint32_t observables; ///< number of observable indices after these, ascending
};

/// A detector error model with its loops unrolled.
struct detector_error_model {
  std::uint64_t num_detectors = 0; ///< one more than the highest index seen, in any instruction
  std::uint64_t num_observables = 0;
  std::vector<dem_component> components;
  std::vector<std::uint64_t> targets;

  std::span<const std::uint64_t> detectors_of(const dem_component &c) const noexcept {
    return std::span(targets).subspan(c.first_target, c.detectors);
  }
  std::span<const std::uint64_t> observables_of(const dem_component &c) const noexcept {
    return std::span(targets).subspan(c.first_target + c.detectors, c.observables);
  }
};

/// Parses Stim's text format: error, detector, logical_observable, shift_detectors, repeat (nested), `^`, comments,
/// tags. Errors of probability 0 count for the size of the model, but are not in `components`. An error text begins
/// "line N: ".
///
/// Refused, although Stim accepts it: a target twice in one component; more than 2^24 detectors or 2^20 observables;
/// more than 2^24 instructions after loops are unrolled.
[[nodiscard]] or_error<detector_error_model> parse_dem(std::string_view text);

} // namespace cudaq::qec::realtime
