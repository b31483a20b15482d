// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/local_rule.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// The detector graph of a model. It has an edge for each pair of detectors that an error flips, and a boundary edge
/// for each detector that an error flips alone. Of errors with equal detectors only the likeliest counts, as in the
/// matcher.
class detector_graph {
public:
  /// Fails for a component with more than two detectors that decompose_errors() does not split.
  static expected<detector_graph> from_dem(const detector_error_model &model);
  static expected<detector_graph> from_text(std::string_view dem_text);

  /// Valid as long as this object exists, also after it is moved.
  [[nodiscard]] detector_graph_view view() const noexcept;
  /// Number of lists of observables, including the empty list.
  [[nodiscard]] std::uint32_t num_lists() const noexcept { return static_cast<std::uint32_t>(list_first_.size() - 1); }

private:
  std::uint32_t num_detectors_ = 0;
  std::uint32_t num_observables_ = 0;
  std::vector<std::uint32_t> edge_first_;
  std::vector<graph_edge> edges_;
  std::vector<std::uint32_t> boundary_;
  std::vector<std::uint32_t> list_first_;
  std::vector<std::uint32_t> lists_;
};

} // namespace cudaq::qec::realtime
