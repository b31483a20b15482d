// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/dem.h"

#include <cstdint>
#include <vector>

namespace cudaq::qec::realtime {

/// A model in which an observable is a detector, the last one: whether it fires says which of its two values the
/// correction of a decoder has.
struct forced_observable {
  detector_error_model model;
  /// For each detector of the first model 0 or 1; empty: all are 0. The new detector is the observable, flipped once
  /// for each event of a detector that has 1.
  std::vector<std::uint8_t> shift;
  bool is_fixed = false; ///< no error flips the new detector: the events alone decide the observable
};

/// For decoders whose errors flip any number of detectors: each error that flips the observable flips the new detector.
[[nodiscard]] forced_observable force_observable(const detector_error_model &model, std::uint64_t observable);

/// For matching: components keep to two detectors. `model`: one that check_matching_graph takes.
///
/// An error with two detectors has no room for a third. But an observable may be replaced by its sum with detectors:
/// for given events the two differ by a constant. Example, a repetition code whose observable is the middle qubit:
///
///   error D0        error D0 D1 L0        error D1
///
/// The sum of L0 and D1 is flipped by "error D1" alone, which now flips the new detector, too: it is the right end of
/// the code. So each detector gets a 0 or 1 (`shift`) with: an error with two detectors flips the observable if theirs
/// differ. If there are none, errors lead around from a detector to itself and flip the observable, as on a torus: the
/// reason has the line of one of them.
[[nodiscard]] expected<forced_observable> force_matched_observable(const detector_error_model &model,
                                                                   std::uint64_t observable);

} // namespace cudaq::qec::realtime
