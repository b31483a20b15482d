// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/confidence/event_matching.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// An edge of a matching graph.
struct weighted_edge {
  std::size_t first, second; ///< nodes; second SIZE_MAX: the boundary
  double weight;
};

/// The weights of the shortest paths between all detectors that are not dropped, over edges between two detectors.
class event_distances {
public:
  /// A table of more is not made.
  static constexpr std::size_t kMaxDetectors = 2500;

  /// `is_dropped`: of each detector, whether no shot has an event of it; empty: none is. Null: there are more
  /// detectors, or a weight is negative. Throws std::bad_alloc.
  [[nodiscard]] static std::shared_ptr<const event_distances>
  of(std::size_t detectors, std::span<const weighted_edge> edges, const std::vector<bool> &is_dropped);
  [[nodiscard]] std::size_t detectors() const noexcept { return row_of_.size(); }
  /// From this detector to that of each column.
  [[nodiscard]] const float *from(std::size_t detector) const noexcept { return &table_[row_of_[detector] * rows_]; }
  [[nodiscard]] std::uint32_t column(std::size_t detector) const noexcept { return row_of_[detector]; }
  [[nodiscard]] float between(const float *from, std::size_t other) const noexcept { return from[row_of_[other]]; }

private:
  std::size_t rows_ = 0;
  std::vector<std::uint32_t> row_of_; ///< of each detector; those that are dropped have none
  std::vector<float> table_;
};

/// The least weights of a matching with and without an event at one more node, from distances of events. For one
/// thread.
///
/// The graph has two boundaries: the real one (left), and the node of an observable that is a detector (right), of
/// force_matched_observable. An event is at one end of a path: to another event, to the left, or to the right. The
/// number of paths to the right, and one from left to right that no event needs, decide whether the node fires. A path
/// between two events is worth a try only if it is shorter than two paths to the same side: so events are in groups,
/// which are solved apart. In a small one each subset is tried, in others event_matching is faster. Both are exact, and
/// no matcher grows through all detectors from one side to the other.
class both_values {
public:
  /// Events of a shot, of one whose events are put into groups, and of a group whose subsets are tried.
  static constexpr std::size_t kMaxEvents = 191, kMaxGrouped = 24, kMaxTried = 6;

  /// `edges`: of the graph whose last node is the observable. None: a weight is negative. Throws std::bad_alloc.
  [[nodiscard]] static std::optional<both_values> of(std::shared_ptr<const event_distances> distances,
                                                     std::span<const weighted_edge> edges);

  /// `events`: detectors, each once. weights[1]: with an event at the node; infinite: no matching. False: there
  /// are more than kMaxEvents, or a group has no matching.
  [[nodiscard]] bool weigh(std::span<const std::uint64_t> events, std::array<double, 2> &weights) noexcept;

  /// Whether one of these weights is less in spite of all roundings: here, and of a matcher whose weights are integers,
  /// the largest one 2^24. So its matching has that value, too.
  [[nodiscard]] bool decides(const std::array<double, 2> &weights) const noexcept {
    const auto [less, more] = std::minmax(weights[0], weights[1]);
    return more * (1 - relative_error_) > less * (1 + relative_error_) + absolute_error_;
  }

private:
  using pair = std::array<double, 2>; ///< without the node, and with it

  void group_with(std::span<const std::uint64_t> events, std::size_t first) noexcept;
  pair try_subsets(std::span<const std::uint64_t> events) noexcept;
  std::optional<pair> match_group(std::span<const std::uint64_t> events) noexcept;

  std::shared_ptr<const event_distances> distances_;
  std::vector<pair> to_side_; ///< of each detector: to the left, to the right
  double across_ = 0;         ///< from left to right
  double relative_error_ = 0, absolute_error_ = 0;
  std::vector<std::uint8_t> is_grouped_;
  std::vector<std::uint32_t> group_; ///< indices of its events
  std::vector<pair> of_subset_;      ///< of the group
  // Of each event of the group.
  std::array<std::uint32_t, kMaxEvents> column_{};
  std::array<float, kMaxEvents> between_{};
  event_matching matching_{kMaxEvents};
};

} // namespace cudaq::qec::realtime
