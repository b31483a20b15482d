// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/predecoding/isolation.h"

#include "lib/qec/decoding/predecoding/lightest_logical.h"
#include "lib/qec/decoding/predecoding/rule_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

constexpr double kNegligibleShare = 1e-5;
constexpr double kHeavyShare = 1e-3;
constexpr std::uint32_t kUnitsPerTypicalWeight = 64;
constexpr std::uint32_t kMostUnits = 1U << 14; ///< of one weight, and of a limit
constexpr std::uint32_t kProbes = 16;

/// Probabilities of the errors of a model: the least one that matters, the one of heavy edges, and the typical one.
struct probability_scale {
  double least = 0, heavy = 0.5, typical = 0.5;
};

probability_scale scale_of(const std::vector<weighted_edge> &all) {
  std::vector<double> p;
  for (const weighted_edge &e : all)
    p.push_back(e.probability);
  std::ranges::sort(p);
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  probability_scale scale;
  double sum = 0;
  bool heavy = false;
  for (auto at = p.begin(); at != p.end() && sum < total / 2;) {
    const auto next = std::upper_bound(at, p.end(), *at); // errors of equal probability are in or out together
    sum += *at * static_cast<double>(next - at);
    if (sum <= kNegligibleShare * total)
      scale.least = std::nextafter(*at, 1.0);
    if (!heavy && sum >= kHeavyShare * total) {
      scale.heavy = *at;
      heavy = true;
    }
    scale.typical = *at;
    at = next;
  }
  return scale;
}

rule_graph make_rule_graph(const std::vector<weighted_edge> &all, std::uint32_t n) {
  rule_graph made;
  made.n = n;
  made.steps.resize(std::size_t{n} + 1);
  const probability_scale scale = scale_of(all);
  const auto weight_of = [](double p) { return std::log((1 - p) / p); };
  const double unit = weight_of(std::min(scale.typical, 0.4)) / kUnitsPerTypicalWeight;
  const auto units_of = [&](double p) {
    return static_cast<std::uint32_t>(std::clamp(std::lround(weight_of(p) / unit), 1L, static_cast<long>(kMostUnits)));
  };
  made.heavy = units_of(std::min(scale.heavy, 0.4));
  std::vector<std::uint32_t> bad;
  for (const weighted_edge &e : all) {
    const bool unlikely = e.probability < scale.least;
    const std::uint32_t b = e.b == kBoundaryNode ? n : e.b;
    std::uint32_t weight = 0;
    if (e.probability < 0.5)
      weight = units_of(e.probability);
    else
      bad.push_back(e.a);
    made.steps[e.a].push_back({b, weight, e.list, unlikely});
    made.steps[b].push_back({e.a, weight, e.list, unlikely});
  }
  made.part.assign(n, UINT32_MAX);
  std::uint32_t parts = 0;
  std::vector<std::uint32_t> open;
  for (std::uint32_t first = 0; first < n; ++first) {
    if (made.part[first] != UINT32_MAX)
      continue;
    made.part[first] = parts;
    open.push_back(first);
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      for (const step &s : made.steps[at])
        if (!s.unlikely && s.to != n && made.part[s.to] == UINT32_MAX) {
          made.part[s.to] = parts;
          open.push_back(s.to);
        }
    }
    ++parts;
  }
  made.unweighable.assign(parts, false);
  for (const std::uint32_t detector : bad)
    made.unweighable[made.part[detector]] = true;
  return made;
}

/// A part of the graph: its detectors, whether it has a boundary, and the observables that its edges flip.
struct part_of_graph {
  std::vector<std::uint32_t> detectors;
  std::vector<std::uint32_t> observables;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> flipping; ///< observable, end of an edge that flips it
  bool has_boundary = false;
};

std::vector<part_of_graph> parts_of(const rule_graph &graph, const detector_graph_view &view) {
  std::vector<part_of_graph> parts(graph.unweighable.size());
  for (std::uint32_t v = 0; v < graph.n; ++v) {
    part_of_graph &mine = parts[graph.part[v]];
    mine.detectors.push_back(v);
    for (const step &s : graph.steps[v]) {
      if (s.unlikely)
        continue;
      mine.has_boundary = mine.has_boundary || s.to == graph.n;
      for (std::uint32_t i = view.list_first[s.list]; i < view.list_first[s.list + 1]; ++i)
        mine.flipping.emplace_back(view.lists[i], v);
    }
  }
  for (part_of_graph &mine : parts) {
    std::ranges::sort(mine.flipping);
    for (const auto &[observable, end] : mine.flipping)
      if (mine.observables.empty() || mine.observables.back() != observable)
        mine.observables.push_back(observable);
  }
  return parts;
}

using lists_of_observables = std::vector<std::vector<std::uint32_t>>; ///< lists that contain the observable

struct part_limit {
  std::uint32_t limit = 0;      ///< isolation.h
  std::uint32_t guaranteed = 0; ///< (d - 1) / 2 errors weigh at most this; 0 without a logical operator
};

/// The limit of a part; nothing if it is too large for the units. flips: false for each list, before and after. Never
/// too small: with a boundary, only operators that begin and end there are searched, without one those through a few of
/// the edges that flip.
std::optional<part_limit> limit_of(const rule_graph &graph, const lists_of_observables &lists, std::uint32_t number,
                                   const part_of_graph &part, std::vector<bool> &flips,
                                   std::vector<std::uint64_t> &distance) {
  std::uint64_t lightest = UINT64_MAX, shortest = UINT64_MAX;
  for (const std::uint32_t observable : part.observables) {
    for (const std::uint32_t list : lists[observable])
      flips[list] = true;
    std::vector<std::uint32_t> starts{graph.n};
    if (!part.has_boundary) {
      starts.clear();
      using entry = std::pair<std::uint32_t, std::uint32_t>;
      const auto first = std::lower_bound(part.flipping.begin(), part.flipping.end(), entry{observable, 0});
      const auto last = std::upper_bound(first, part.flipping.end(), entry{observable, UINT32_MAX});
      const auto stride = std::max<std::ptrdiff_t>(1, (last - first) / kProbes);
      for (std::ptrdiff_t i = 0; i < last - first; i += stride)
        starts.push_back(first[i].second);
    }
    for (const std::uint32_t start : starts) {
      const auto found = lightest_logical(graph, number, start, flips, false, lightest, distance);
      if (!found)
        break; // the part is connected: no start has a way
      lightest = *found;
      shortest = lightest_logical(graph, number, start, flips, true, shortest, distance).value_or(shortest);
    }
    for (const std::uint32_t list : lists[observable])
      flips[list] = false;
  }
  if (lightest == UINT64_MAX)
    return part_limit{};
  const std::uint64_t limit = std::max(lightest / 2 + graph.heavy, shortest * graph.heavy / 2);
  if (limit > kMostUnits)
    return std::nullopt;
  return part_limit{static_cast<std::uint32_t>(limit), static_cast<std::uint32_t>((shortest - 1) / 2 * graph.heavy)};
}

using distances = std::vector<std::uint32_t>; ///< per detector, and of the boundary

/// Distance of each node from the nearest one that has a distance already: Dijkstra's algorithm.
distances spread(const rule_graph &graph, distances distance) {
  using entry = std::pair<std::uint32_t, std::uint32_t>;
  std::priority_queue<entry, std::vector<entry>, std::greater<>> open;
  for (std::uint32_t v = 0; v <= graph.n; ++v)
    if (distance[v] != kFar)
      open.emplace(distance[v], v);
  while (!open.empty()) {
    const auto [so_far, at] = open.top();
    open.pop();
    if (so_far > distance[at])
      continue;
    for (const step &s : graph.steps[at])
      if (so_far + s.weight < distance[s.to]) {
        distance[s.to] = so_far + s.weight;
        open.emplace(distance[s.to], s.to);
      }
  }
  return distance;
}

distances boundary_distances(const rule_graph &graph) {
  distances distance(std::size_t{graph.n} + 1, kFar);
  distance[graph.n] = 0;
  return spread(graph, std::move(distance));
}

/// Distance from each detector to the nearest unlikely edge, with half the weight of that edge.
distances unlikely_distances(const rule_graph &graph) {
  distances distance(std::size_t{graph.n} + 1, kFar);
  for (std::uint32_t v = 0; v < graph.n; ++v)
    for (const step &s : graph.steps[v])
      if (s.unlikely)
        distance[v] = std::min(distance[v], s.weight / 2);
  return spread(graph, std::move(distance));
}

class isolation_builder {
public:
  isolation_builder(const std::vector<weighted_edge> &all, const detector_graph_view &view,
                    const isolation_limits &limits)
      : all_(all), view_(view), limits_(limits), graph_(make_rule_graph(all, view.num_detectors)), search_(graph_),
        to_boundary_(boundary_distances(graph_)), to_unlikely_(unlikely_distances(graph_)) {
    for (const auto &steps : graph_.steps)
      for (const step &s : steps)
        lightest_unlikely_ = s.unlikely ? std::min(lightest_unlikely_, s.weight) : lightest_unlikely_;
  }

  isolation build() {
    made_.steps.assign(view_.edge_first[view_.num_detectors], edge_step::ignored);
    made_.detectors.assign(view_.num_detectors, {0, 0, kFar, 0});
    near_of_.resize(view_.num_detectors);
    longest_.assign(view_.num_detectors, 0);
    collect_weights();
    std::uint32_t num_lists = 1;
    for (const weighted_edge &e : all_)
      num_lists = std::max(num_lists, e.list + 1);
    std::vector<bool> flips(num_lists);
    lists_of_observables lists(view_.num_observables);
    for (std::uint32_t list = 0; list < num_lists; ++list)
      for (std::uint32_t k = view_.list_first[list]; k < view_.list_first[list + 1]; ++k)
        lists[view_.lists[k]].push_back(list);
    std::vector<std::uint64_t> distance(2 * std::size_t{graph_.n} + 2, UINT64_MAX);
    const std::vector<part_of_graph> parts = parts_of(graph_, view_);
    std::vector<std::optional<part_limit>> limit(parts.size());
    for (std::uint32_t number = 0; number < parts.size(); ++number) {
      const part_of_graph &part = parts[number];
      if (graph_.unweighable[number] || part.observables.size() * part.detectors.size() > limits_.logical_search)
        continue;
      limit[number] = limit_of(graph_, lists, number, part, flips, distance);
      guaranteed_ = std::max(guaranteed_, limit[number] ? limit[number]->guaranteed : 0);
    }
    for (std::uint32_t number = 0; number < parts.size(); ++number)
      if (limit[number])
        fill_part(parts[number], limit[number]->limit);
    agree_on_edges();
    made_.near_first.push_back(0);
    for (const auto &mine : near_of_) {
      made_.near.insert(made_.near.end(), mine.begin(), mine.end());
      made_.near_first.push_back(static_cast<std::uint32_t>(made_.near.size()));
    }
    return std::move(made_);
  }

private:
  /// Units of each edge that may be matched, per entry of view_.edges, and of each boundary edge; else 0.
  void collect_weights() {
    weight_.assign(view_.edge_first[view_.num_detectors], 0);
    boundary_weight_.assign(view_.num_detectors, 0);
    for (const weighted_edge &e : all_) {
      const std::uint32_t b = e.b == kBoundaryNode ? graph_.n : e.b;
      std::uint32_t weight = 0;
      for (const step &s : graph_.steps[e.a])
        weight = s.to == b && !s.unlikely ? s.weight : weight;
      if (weight == 0)
        continue;
      set(e.a, b, edge_step::step, 0);
      set(b, e.a, edge_step::step, 0);
      if (e.ambiguous)
        continue;
      if (b == graph_.n) {
        boundary_weight_[e.a] = weight == to_boundary_[e.a] ? weight : 0;
        continue;
      }
      if (weight > to_boundary_[e.a] + to_boundary_[b])
        continue; // both ends to the boundary is cheaper
      set(e.a, b, edge_step::step, weight);
      set(b, e.a, edge_step::step, weight);
    }
    for (std::uint32_t v = 0; v < graph_.n; ++v)
      for (std::uint32_t i = view_.edge_first[v]; i < view_.edge_first[v + 1]; ++i)
        longest_[v] = std::max(longest_[v], weight_[i]);
  }

  /// A list that was cut may lack the other end of an edge. Both ends must see the edge in the same way.
  void agree_on_edges() {
    for (std::uint32_t v = 0; v < graph_.n; ++v)
      for (std::uint32_t i = view_.edge_first[v]; i < view_.edge_first[v + 1]; ++i) {
        const std::uint32_t w = view_.edges[i].neighbour;
        for (std::uint32_t j = view_.edge_first[w]; j < view_.edge_first[w + 1]; ++j)
          if (view_.edges[j].neighbour == v)
            made_.steps[i] = made_.steps[j] = std::min(made_.steps[i], made_.steps[j]);
      }
  }

  void set(std::uint32_t from, std::uint32_t to, edge_step how, std::uint32_t weight) {
    if (from == graph_.n)
      return;
    for (std::uint32_t i = view_.edge_first[from]; i < view_.edge_first[from + 1]; ++i)
      if (view_.edges[i].neighbour == to) {
        made_.steps[i] = how;
        weight_[i] = weight;
      }
  }

  /// Whether the matcher could use an unlikely edge near `detector` (isolation.h).
  [[nodiscard]] bool is_near_an_unlikely_edge(std::uint32_t detector) const {
    const std::uint32_t reach = guaranteed_ + longest_[detector];
    return lightest_unlikely_ <= reach && to_unlikely_[detector] <= reach;
  }

  void fill_part(const part_of_graph &part, std::uint32_t limit_of_part) {
    const auto max_count = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        limits_.near_detectors, limits_.all_near / std::max<std::uint64_t>(view_.num_detectors, 1)));
    // Two ends whose lists end early can never add up to the limit. A few detectors decide about the part.
    bool useful = limit_of_part == 0;
    const std::size_t stride = std::max<std::size_t>(1, part.detectors.size() / kProbes);
    for (std::size_t i = 0; i < part.detectors.size() && !useful; i += stride)
      useful = 2 * search_.run(part.detectors[i], limit_of_part, max_count, found_) > limit_of_part;
    if (!useful)
      return;
    for (const std::uint32_t v : part.detectors) {
      const std::uint32_t limit = limit_of_part == 0 && is_near_an_unlikely_edge(v) ? guaranteed_ : limit_of_part;
      const std::uint32_t radius = std::max(limit, longest_[v]);
      const std::uint32_t complete = search_.run(v, radius, max_count, found_);
      made_.detectors[v] = {limit, complete, to_boundary_[v], boundary_weight_[v] != 0 && complete > radius ? 1U : 0U};
      for (const auto &[detector, distance] : found_) {
        near_of_[v].push_back({detector, distance});
        for (std::uint32_t i = view_.edge_first[v]; i < view_.edge_first[v + 1]; ++i)
          if (view_.edges[i].neighbour == detector && weight_[i] == distance)
            made_.steps[i] = edge_step::matched;
      }
    }
  }

  const std::vector<weighted_edge> &all_;
  const detector_graph_view &view_;
  const isolation_limits limits_;
  const rule_graph graph_;
  near_search search_;
  const distances to_boundary_, to_unlikely_;
  std::uint32_t lightest_unlikely_ = kFar;
  std::uint32_t guaranteed_ = 0; ///< (d - 1) / 2 errors weigh at most this, in all parts
  std::vector<std::uint32_t> weight_, boundary_weight_, longest_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found_;
  std::vector<std::vector<near_detector>> near_of_;
  isolation made_;
};

} // namespace

isolation make_isolation(const std::vector<weighted_edge> &all, const detector_graph_view &graph,
                         const isolation_limits &limits) {
  return isolation_builder(all, graph, limits).build();
}

} // namespace cudaq::qec::realtime
