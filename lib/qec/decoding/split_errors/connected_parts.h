// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/dem.h"

#include <cstdint>
#include <vector>

namespace cudaq::qec::realtime {

/// The detectors of a model in connected parts: two detectors are in one part if errors lead from one to the other. A
/// part whose errors flip no observable need not be decoded: its events are explained by its own errors only. In a
/// surface code's memory that is half of the detectors.
struct connected_parts {
  struct part {
    bool flips_observables = false;
    bool has_boundary = false; ///< an error with one detector, so that any events have a solution; only by component
  };

  std::vector<std::uint32_t> part_of; ///< for each detector
  std::vector<part> parts;

  /// `by_component`: each component of an error is an error of its own, as for matching. Else all detectors of an error
  /// are in one part, as for decoders that know which components belong together.
  connected_parts(const detector_error_model &model, bool by_component);
};

} // namespace cudaq::qec::realtime
