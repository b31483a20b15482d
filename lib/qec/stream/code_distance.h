// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/dem.h"

#include <cstdint>

namespace cudaq::qec::realtime {

inline constexpr std::uint64_t kMaxSearchedEdges = std::uint64_t{1} << 30; ///< some seconds

/// The least number of components that flip an observable and no detector, of components with at most two detectors:
/// the distance of a code whose errors are edges. 0: there is none, or the
/// search looks at more than `max_edges` edges.
[[nodiscard]] std::uint64_t code_distance(const detector_error_model &model,
                                          std::uint64_t max_edges = kMaxSearchedEdges);

} // namespace cudaq::qec::realtime
