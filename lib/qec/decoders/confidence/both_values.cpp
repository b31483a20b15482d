// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/confidence/both_values.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

constexpr float kFar = std::numeric_limits<float>::infinity();
constexpr double kSteps = 1048576; ///< of a weight of 1, in event_matching

/// The edges between two detectors, by their ends.
struct neighbours {
  struct one {
    std::uint32_t node;
    float weight;
  };
  std::vector<std::vector<one>> of;

  neighbours(std::size_t detectors, std::span<const weighted_edge> edges) : of(detectors) {
    for (const weighted_edge &e : edges)
      if (e.first < detectors && e.second < detectors) {
        of[e.first].push_back({static_cast<std::uint32_t>(e.second), static_cast<float>(e.weight)});
        of[e.second].push_back({static_cast<std::uint32_t>(e.first), static_cast<float>(e.weight)});
      }
  }

  /// Dijkstra's algorithm: `distance` has that of the starts, and gets all others.
  void spread(std::span<float> distance) const {
    using item = std::pair<float, std::uint32_t>;
    std::priority_queue<item, std::vector<item>, std::greater<>> next;
    for (std::uint32_t node = 0; node < distance.size(); ++node)
      if (distance[node] != kFar)
        next.emplace(distance[node], node);
    while (!next.empty()) {
      const auto [far, node] = next.top();
      next.pop();
      if (far > distance[node])
        continue;
      for (const one &other : of[node])
        if (far + other.weight < distance[other.node])
          next.emplace(distance[other.node] = far + other.weight, other.node);
    }
  }
};

bool has_negative(std::span<const weighted_edge> edges) {
  return std::ranges::any_of(edges, [](const weighted_edge &e) { return e.weight < 0; });
}

} // namespace

std::shared_ptr<const event_distances> event_distances::of(std::size_t detectors, std::span<const weighted_edge> edges,
                                                           const std::vector<bool> &is_dropped) {
  const auto made = std::make_shared<event_distances>();
  std::vector<std::size_t> with_row;
  for (std::size_t detector = 0; detector < detectors; ++detector) {
    made->row_of_.push_back(static_cast<std::uint32_t>(with_row.size()));
    if (is_dropped.empty() || !is_dropped[detector])
      with_row.push_back(detector);
  }
  made->rows_ = with_row.size();
  if (made->rows_ > kMaxDetectors || has_negative(edges))
    return nullptr;
  made->table_.reserve(made->rows_ * made->rows_);
  const neighbours graph(detectors, edges);
  std::vector<float> distance;
  for (const std::size_t from : with_row) {
    distance.assign(detectors, kFar);
    distance[from] = 0;
    graph.spread(distance);
    for (const std::size_t to : with_row)
      made->table_.push_back(distance[to]);
  }
  return made;
}

std::optional<both_values> both_values::of(std::shared_ptr<const event_distances> distances,
                                           std::span<const weighted_edge> edges) {
  if (distances == nullptr || has_negative(edges))
    return std::nullopt;
  both_values made;
  const std::size_t detectors = distances->detectors();
  made.distances_ = std::move(distances);
  made.across_ = kFar;
  std::array<std::vector<float>, 2> to;
  for (std::vector<float> &side : to)
    side.assign(detectors, kFar);
  for (const weighted_edge &e : edges) {
    const auto weight = static_cast<float>(e.weight);
    if (e.first == detectors || (e.first < detectors && e.second >= detectors)) {
      if (e.first == detectors)
        made.across_ = std::min(made.across_, double{weight});
      else if (float &least = to[e.second == detectors ? 1 : 0][e.first]; weight < least)
        least = weight;
    }
  }
  const neighbours graph(detectors, edges);
  for (std::vector<float> &side : to)
    graph.spread(side);
  // A path, or a matching of least weight, has fewer edges than this. Each is rounded to float, and so is each sum of a
  // path; each path is rounded to a step. A matcher rounds each edge to an integer. There are two matchings.
  const auto nodes = static_cast<double>(detectors + 2);
  double largest = 0;
  for (const weighted_edge &e : edges)
    largest = std::max(largest, e.weight);
  made.relative_error_ = (2 * nodes) / (1 << 24);
  made.absolute_error_ = (kMaxEvents + 1) / kSteps + 2 * nodes * largest / (1 << 24);
  for (std::size_t node = 0; node < detectors; ++node) {
    made.to_side_.push_back({to[0][node], to[1][node]});
    made.across_ = std::min(made.across_, made.to_side_[node][0] + made.to_side_[node][1]);
  }
  made.is_grouped_.resize(detectors);
  made.group_.reserve(kMaxEvents);
  made.of_subset_.resize(std::size_t{1} << kMaxTried);
  return made;
}

bool both_values::weigh(std::span<const std::uint64_t> events, std::array<double, 2> &weights) noexcept {
  if (events.size() > kMaxEvents)
    return false;
  std::fill_n(is_grouped_.begin(), events.size(), std::uint8_t{0});
  pair all{0, kFar};
  for (std::size_t first = 0; first < events.size(); ++first) {
    if (is_grouped_[first] != 0)
      continue;
    group_with(events, first);
    const std::optional<pair> more = group_.size() <= kMaxTried ? try_subsets(events) : match_group(events);
    if (!more)
      return false;
    all = {std::min(all[0] + (*more)[0], all[1] + (*more)[1]), std::min(all[0] + (*more)[1], all[1] + (*more)[0])};
  }
  weights = {std::min(all[0], all[1] + across_), std::min(all[1], all[0] + across_)};
  return true;
}

/// Sets group_ to the events that are in a group with this one. So many events are hardly in several.
void both_values::group_with(std::span<const std::uint64_t> events, std::size_t first) noexcept {
  const bool is_whole = events.size() > kMaxGrouped;
  group_.assign(1, static_cast<std::uint32_t>(first));
  is_grouped_[first] = 1;
  for (std::size_t k = 0; k < group_.size(); ++k) {
    const std::uint64_t a = events[group_[k]];
    const float *const from_a = distances_->from(a);
    for (std::uint32_t other = 0; other < events.size(); ++other) {
      const std::uint64_t b = events[other];
      const pair &of_a = to_side_[a], &of_b = to_side_[b];
      if (is_grouped_[other] != 0 ||
          (!is_whole && distances_->between(from_a, b) >= std::min(of_a[0] + of_b[0], of_a[1] + of_b[1])))
        continue;
      is_grouped_[other] = 1;
      group_.push_back(other);
    }
    if (group_.size() == events.size())
      return;
  }
}

both_values::pair both_values::try_subsets(std::span<const std::uint64_t> events) noexcept {
  const std::size_t count = group_.size();
  std::array<std::array<float, kMaxTried>, kMaxTried> between; // NOLINT: what is read is written
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b)
      between[a][b] = distances_->between(distances_->from(events[group_[a]]), events[group_[b]]);
  of_subset_[0] = {0, kFar};
  for (std::uint32_t subset = 1; subset < 1U << count; ++subset) {
    // The first event of the subset has a path to a side, or to one of the others.
    const auto a = static_cast<std::size_t>(std::countr_zero(subset));
    const std::uint32_t others = subset & (subset - 1);
    const pair &to = to_side_[events[group_[a]]], &rest = of_subset_[others];
    pair least{std::min(rest[0] + to[0], rest[1] + to[1]), std::min(rest[1] + to[0], rest[0] + to[1])};
    for (std::uint32_t left = others; left != 0; left &= left - 1) {
      const double path = between[a][static_cast<std::size_t>(std::countr_zero(left))];
      const pair &without = of_subset_[others & ~(left & -left)];
      least = {std::min(least[0], without[0] + path), std::min(least[1], without[1] + path)};
    }
    of_subset_[subset] = least;
  }
  return of_subset_[(std::size_t{1} << count) - 1];
}

std::optional<both_values::pair> both_values::match_group(std::span<const std::uint64_t> events) noexcept {
  constexpr double kShift = 6755399441055744.0; // 1.5 * 2^52: the sum has no digits after the point
  const auto even = [](double weight) { return 2 * (weight * kSteps + kShift - kShift); };
  const std::size_t count = group_.size();
  matching_.begin(count, even(across_));
  for (std::size_t a = 0; a < count; ++a) {
    const pair &of_a = to_side_[events[group_[a]]];
    column_[a] = distances_->column(events[group_[a]]);
    matching_.set_boundaries(a, even(of_a[0]), even(of_a[1]));
  }
  for (std::size_t a = 0; a < count; ++a) {
    const float *const from = distances_->from(events[group_[a]]);
    for (std::size_t b = 0; b < a; ++b) // the table is large: a loop of nothing else has most loads in flight
      between_[b] = from[column_[b]];
    for (std::size_t b = 0; b < a; ++b)
      matching_.set_pair(a, b, even(between_[b]));
  }
  const auto found = matching_.weigh();
  if (!found)
    return std::nullopt;
  return pair{(*found)[0] / (2 * kSteps), (*found)[1] / (2 * kSteps)};
}

} // namespace cudaq::qec::realtime
