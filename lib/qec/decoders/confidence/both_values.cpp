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

std::shared_ptr<const event_distances> event_distances::of(std::size_t detectors,
                                                           std::span<const weighted_edge> edges) {
  if (detectors > kMaxDetectors || has_negative(edges))
    return nullptr;
  const auto made = std::make_shared<event_distances>();
  made->detectors_ = detectors;
  made->table_.assign(detectors * detectors, kFar);
  const neighbours graph(detectors, edges);
  for (std::size_t from = 0; from < detectors; ++from) {
    const auto row = std::span(made->table_).subspan(from * detectors, detectors);
    row[from] = 0;
    graph.spread(row);
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
      float &least = e.first == detectors ? made.across_ : to[e.second == detectors ? 1 : 0][e.first];
      least = std::min(least, weight);
    }
  }
  const neighbours graph(detectors, edges);
  for (std::vector<float> &side : to)
    graph.spread(side);
  for (std::size_t node = 0; node < detectors; ++node) {
    made.to_side_.push_back({to[0][node], to[1][node]});
    made.across_ = std::min(made.across_, to[0][node] + to[1][node]);
  }
  made.is_grouped_.resize(detectors);
  made.group_.reserve(kMaxGroup + 1);
  made.of_subset_.resize(std::size_t{1} << kMaxGroup);
  return made;
}

bool both_values::weigh(std::span<const std::uint64_t> events, std::array<double, 2> &weights) noexcept {
  std::fill_n(is_grouped_.begin(), events.size(), std::uint8_t{0});
  pair all{0, kFar};
  for (std::size_t first = 0; first < events.size(); ++first) {
    if (is_grouped_[first] != 0)
      continue;
    if (!group_with(events, first))
      return false;
    const pair more = weigh_group(events);
    all = {std::min(all[0] + more[0], all[1] + more[1]), std::min(all[0] + more[1], all[1] + more[0])};
  }
  weights = {std::min(all[0], all[1] + across_), std::min(all[1], all[0] + across_)};
  return true;
}

/// Sets group_ to the events that are in a group with this one.
bool both_values::group_with(std::span<const std::uint64_t> events, std::size_t first) noexcept {
  group_.assign(1, static_cast<std::uint32_t>(first));
  is_grouped_[first] = 1;
  for (std::size_t k = 0; k < group_.size(); ++k) {
    const std::uint64_t a = events[group_[k]];
    for (std::uint32_t other = 0; other < events.size(); ++other) {
      const std::uint64_t b = events[other];
      const pair &of_a = to_side_[a], &of_b = to_side_[b];
      if (is_grouped_[other] != 0 || distances_->between(a, b) >= std::min(of_a[0] + of_b[0], of_a[1] + of_b[1]))
        continue;
      if (group_.size() == kMaxGroup)
        return false;
      is_grouped_[other] = 1;
      group_.push_back(other);
    }
  }
  return true;
}

both_values::pair both_values::weigh_group(std::span<const std::uint64_t> events) noexcept {
  const std::size_t count = group_.size();
  std::array<std::array<float, kMaxGroup>, kMaxGroup> between; // NOLINT: what is read is written
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b)
      between[a][b] = distances_->between(events[group_[a]], events[group_[b]]);
  of_subset_[0] = {0, kFar};
  for (std::uint32_t subset = 1; subset < 1U << count; ++subset) {
    // The first event of the subset has a path to a side, or to one of the others.
    const auto a = static_cast<std::size_t>(std::countr_zero(subset));
    const std::uint32_t others = subset & (subset - 1);
    const pair &to = to_side_[events[group_[a]]], &rest = of_subset_[others];
    pair least{std::min(rest[0] + to[0], rest[1] + to[1]), std::min(rest[1] + to[0], rest[0] + to[1])};
    for (std::uint32_t left = others; left != 0; left &= left - 1) {
      const float path = between[a][static_cast<std::size_t>(std::countr_zero(left))];
      const pair &without = of_subset_[others & ~(left & -left)];
      least = {std::min(least[0], without[0] + path), std::min(least[1], without[1] + path)};
    }
    of_subset_[subset] = least;
  }
  return of_subset_[(std::size_t{1} << count) - 1];
}

} // namespace cudaq::qec::realtime
