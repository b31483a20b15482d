// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// The weights of the shortest paths between all detectors, over edges between two detectors.
class event_distances {
public:
  /// A table of more is not made.
  static constexpr std::size_t kMaxDetectors = 2500;

  /// Null: there are more detectors, or a weight is negative. Throws std::bad_alloc.
  [[nodiscard]] static std::shared_ptr<const event_distances> of(std::size_t detectors,
                                                                 std::span<const weighted_edge> edges);
  [[nodiscard]] std::size_t detectors() const noexcept { return detectors_; }
  [[nodiscard]] float between(std::size_t a, std::size_t b) const noexcept { return table_[a * detectors_ + b]; }

private:
  std::size_t detectors_ = 0;
  std::vector<float> table_;
};

/// The least weights of a matching with and without an event at one more node, for shots of few events. For one thread.
///
/// The graph has two boundaries: the real one (left), and the node of an observable that is a detector (right), of
/// force_matched_observable. An event is at one end of a path: to another event, to the left, or to the right. The
/// number of paths to the right, and one from left to right that no event needs, decide whether the node fires. A path
/// between two events is worth a try only if it is shorter than two paths to the same side: so events are in groups,
/// and in a group each subset is tried. That is exact, and a matcher need not grow from one side to the other.
class both_values {
public:
  static constexpr std::size_t kMaxGroup = 12; ///< events

  /// `edges`: of the graph whose last node is the observable. None: a weight is negative. Throws std::bad_alloc.
  [[nodiscard]] static std::optional<both_values> of(std::shared_ptr<const event_distances> distances,
                                                     std::span<const weighted_edge> edges);

  /// `events`: detectors, each once. weights[1]: with an event at the node; infinite: no matching. False: a group has
  /// more than kMaxGroup events.
  [[nodiscard]] bool weigh(std::span<const std::uint64_t> events, std::array<double, 2> &weights) noexcept;

private:
  using pair = std::array<float, 2>; ///< without the node, and with it

  bool group_with(std::span<const std::uint64_t> events, std::size_t first) noexcept;
  pair weigh_group(std::span<const std::uint64_t> events) noexcept;

  std::shared_ptr<const event_distances> distances_;
  std::vector<pair> to_side_; ///< of each detector: to the left, to the right
  float across_ = 0;          ///< from left to right
  std::vector<std::uint8_t> is_grouped_;
  std::vector<std::uint32_t> group_; ///< indices of its events
  std::vector<pair> of_subset_;      ///< of the group
};

} // namespace cudaq::qec::realtime
