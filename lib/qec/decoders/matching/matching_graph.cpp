// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/matching/matching_graph.h"

#include "lib/qec/decoders/matching/new_matcher.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

constexpr std::uint64_t kMaxCorrelated = 64;
constexpr std::uint32_t kMaxErrorsAtADetector = 20000;
constexpr std::size_t kMaxSearched = 64; ///< entries of a list; those of a longer one have an index

using index_list = std::vector<std::size_t>;
using variants = edge_variants;

/// The errors between two nodes. All of them flip the same observables in nearly every model: then `all` is empty.
struct edge {
  std::size_t node1, node2;
  std::span<const std::uint64_t> observables; ///< of the first error
  double weight;                              ///< of the errors that flip these
  std::unique_ptr<variants> all;

  variants alone() const { return {{index_list(observables.begin(), observables.end()), weight}}; }
  void merge(std::span<const std::uint64_t> flipped, double with) {
    double *merged = &weight;
    if (all != nullptr || !std::ranges::equal(flipped, observables)) {
      if (all == nullptr)
        all = std::make_unique<variants>(alone());
      const auto [found, is_new] = all->try_emplace(index_list(flipped.begin(), flipped.end()), with);
      if (is_new)
        return;
      merged = &found->second;
    }
    *merged = pm::merge_weights(with, *merged); // in PyMatching's order, which decides the rounding
  }
};

pm::UserEdge user_edge(const edge &from, index_list observables, double weight) {
  return {from.node1, from.node2, std::move(observables), weight, 1 / (1 + std::exp(weight)), {}};
}

/// Adds the edge to the graph.
void add_least(const edge &from, matching_graph &graph) {
  if (from.all == nullptr && from.weight >= 0) {
    graph.graph.edges.push_back(
        user_edge(from, {from.observables.begin(), from.observables.end()}, std::abs(from.weight)));
    return;
  }
  least_edge least = least_edge_of(from.all != nullptr ? *from.all : from.alone());
  flip(graph.always_flipped, {least.always_flipped.begin(), least.always_flipped.end()});
  graph.constant_weight += least.constant_weight;
  graph.graph.edges.push_back(user_edge(from, std::move(least.observables), least.weight));
}

std::string line_of(const dem_component &c) { return "line " + std::to_string(c.line) + ": "; }

} // namespace

void flip(std::set<std::size_t> &flipped, const index_list &observables) {
  for (const std::size_t o : observables)
    if (flipped.erase(o) == 0)
      flipped.insert(o);
}

least_edge least_edge_of(const edge_variants &errors) {
  least_edge made;
  const auto nearest = std::min_element(errors.begin(), errors.end(), [](const auto &a, const auto &b) {
    return std::abs(a.second) < std::abs(b.second);
  });
  bool odd = false; // the size of the least set
  for (const auto &[observables, weight] : errors)
    if (weight < 0) {
      odd = !odd;
      flip(made.always_flipped, observables);
      made.constant_weight += weight;
    }
  if (odd) { // the least even set
    flip(made.always_flipped, nearest->first);
    made.constant_weight += std::abs(nearest->second);
  }
  made.observables = nearest->first;
  made.weight = odd ? -std::abs(nearest->second) : std::abs(nearest->second);
  return made;
}

expected<> check_matching_graph(const detector_error_model &model) {
  for (const dem_component &c : model.components) {
    if (c.detectors > 2)
      return reason(
          line_of(c) + "a component has " + std::to_string(c.detectors) +
          " detectors, matching takes one or two, and it is no sum of such errors of the model, one in each part: make "
          "the model with decompose_errors=True, or, if it cannot be decomposed, use another decoder; the decoder "
          "bp-osd takes such models");
    if (c.detectors > 0 && c.probability >= 1)
      return reason(line_of(c) + "an error of probability 1 has no finite weight; the decoder bp-osd takes it");
  }
  return {};
}

matching_graph make_matching_graph(const detector_error_model &model) {
  std::vector<edge> edges; // in the order of their first error, as in PyMatching: it decides between equal matchings
  std::vector<std::map<std::size_t, std::size_t>> index_of(model.num_detectors); // by the first node, then the second
  std::map<index_list, double> undetected;                                       // observables -> probability
  double probability = 0, weight = 0; // of the last component: neighbours often have the same
  for (const dem_component &c : model.components) {
    const auto detectors = model.detectors_of(c), observables = model.observables_of(c);
    if (c.detectors == 0) {
      double &p = undetected[index_list(observables.begin(), observables.end())];
      p = merged_probability(p, c.probability);
      continue;
    }
    if (c.probability != probability)
      weight = log_odds(probability = c.probability);
    const std::size_t second = c.detectors == 2 ? detectors.back() : SIZE_MAX;
    const auto [found, is_new] = index_of[detectors.front()].try_emplace(second, edges.size());
    if (is_new)
      edges.push_back({detectors.front(), second, observables, weight, nullptr});
    else
      edges[found->second].merge(observables, weight);
  }

  matching_graph made{pm::UserGraph(model.num_detectors, model.num_observables), {}};
  made.graph.loaded_from_dem_without_correlations = true;
  for (const edge &e : edges)
    add_least(e, made);
  for (const auto &[observables, p] : undetected)
    if (p > 0.5) {
      flip(made.always_flipped, observables);
      made.constant_weight += log_odds(p);
    }
  return made;
}

expected<> check_correlated_graph(const detector_error_model &model) {
  if (expected<> result = check_matching_graph(model); result.failed())
    return result;
  std::vector<std::map<std::uint64_t, std::span<const std::uint64_t>>> seen(model.num_detectors);
  std::vector<std::uint32_t> degree(model.num_detectors);
  std::uint64_t of_one_error = 0;
  const dem_component *before = nullptr;
  for (const dem_component &c : model.components) {
    // PyMatching's time and memory for the correlations are quadratic in both.
    of_one_error = before != nullptr && before->mechanism == c.mechanism ? of_one_error + 1 : 1;
    before = &c;
    if (of_one_error > kMaxCorrelated)
      return reason(line_of(c) + "an error has more than " + std::to_string(kMaxCorrelated) +
                    " components, too many for their correlations; the decoder pymatching takes it");
    for (const std::uint64_t detector : model.detectors_of(c))
      if (++degree[detector] > kMaxErrorsAtADetector)
        return reason(line_of(c) + "D" + std::to_string(detector) + " is in more than " +
                      std::to_string(kMaxErrorsAtADetector) +
                      " components, too many for their correlations; the decoder pymatching takes it");
    if (c.probability > 0.5)
      return reason(line_of(c) + "a probability above 1/2 has no correlated weight; the decoder pymatching takes it");
    if (c.detectors == 0)
      continue;
    const auto detectors = model.detectors_of(c);
    const auto observables = model.observables_of(c);
    const auto [at, is_new] =
        seen[detectors.front()].emplace(c.detectors == 2 ? detectors.back() : UINT64_MAX, observables);
    if (!is_new && !std::ranges::equal(at->second, observables))
      return reason(line_of(c) +
                    "errors with the same detectors flip different observables; the decoder pymatching takes them");
  }
  return {};
}

matching_graph make_correlated_graph(const detector_error_model &model) {
  // As detector_error_model_to_user_graph, with the same sums in the same order; that one searches in a map of maps.
  struct correlated_edge {
    pm::UserEdge *in_graph;
    double marginal = 0;                                   ///< probability
    std::vector<std::pair<std::uint32_t, double>> joint{}; ///< with another edge
  };
  matching_graph made{pm::UserGraph(model.num_detectors, model.num_observables), {}};
  std::vector<correlated_edge> edges;
  std::vector<std::vector<std::pair<std::size_t, std::uint32_t>>> edges_at(model.num_detectors); // the second, number
  const auto number_of = [&](const dem_component &c) {
    const auto detectors = model.detectors_of(c), observables = model.observables_of(c);
    const std::size_t first = detectors.front(), second = c.detectors == 2 ? detectors.back() : SIZE_MAX;
    const double weight = pm::to_weight_for_correlations(c.probability);
    const index_list flipped(observables.begin(), observables.end());
    if (second == SIZE_MAX)
      made.graph.add_or_merge_boundary_edge(first, flipped, weight, c.probability, pm::INDEPENDENT);
    else
      made.graph.add_or_merge_edge(first, second, flipped, weight, c.probability, pm::INDEPENDENT);
    auto &at = edges_at[first];
    const auto found = std::ranges::find(at, second, &std::pair<std::size_t, std::uint32_t>::first);
    if (found != at.end())
      return found->second;
    at.emplace_back(second, static_cast<std::uint32_t>(edges.size()));
    edges.push_back({.in_graph = &made.graph.edges.back()});
    return at.back().second;
  };
  std::unordered_map<std::uint64_t, std::size_t> places; // by an edge whose `joint` is long, and the other edge
  const auto joint_of = [&](std::uint32_t edge, std::uint32_t other) -> double & {
    if (edge == other)
      return edges[edge].marginal;
    auto &joint = edges[edge].joint;
    const auto key_with = [edge](std::uint32_t number) { return std::uint64_t{edge} << 32 | number; };
    if (joint.size() > kMaxSearched) {
      const auto [at, is_new] = places.try_emplace(key_with(other), joint.size());
      return is_new ? joint.emplace_back(other, 0.0).second : joint[at->second].second;
    }
    const auto found = std::ranges::find(joint, other, &std::pair<std::uint32_t, double>::first);
    if (found != joint.end())
      return found->second;
    joint.emplace_back(other, 0.0);
    for (std::size_t place = 0; joint.size() > kMaxSearched && place < joint.size(); ++place)
      places.emplace(key_with(joint[place].first), place);
    return joint.back().second;
  };
  std::vector<std::uint32_t> of_error;
  for (auto c = model.components.begin(); c != model.components.end();) {
    of_error.clear();
    const auto first = c;
    for (; c != model.components.end() && c->mechanism == first->mechanism; ++c)
      if (c->detectors != 0)
        of_error.push_back(number_of(*c));
    const auto add = [p = first->probability](double &to) { to = merged_probability(to, p); };
    for (std::size_t k = 0; k < of_error.size(); ++k)
      for (std::size_t l = k + 1; l < of_error.size(); ++l) {
        add(joint_of(of_error[k], of_error[l]));
        add(joint_of(of_error[l], of_error[k]));
      }
    for (const std::uint32_t edge : of_error)
      add(edges[edge].marginal);
  }
  const auto nodes_of = [&edges](const std::pair<std::uint32_t, double> &joint) {
    const pm::UserEdge &edge = *edges[joint.first].in_graph;
    return std::pair(edge.node1, edge.node2);
  };
  for (correlated_edge &edge : edges) {
    if (edge.marginal == 0)
      continue;
    std::ranges::sort(edge.joint, {}, nodes_of);
    for (const auto &joint : edge.joint) {
      const auto [node1, node2] = nodes_of(joint);
      edge.in_graph->implied_weights_for_other_edges.push_back(
          {node1, node2, pm::to_weight_for_correlations(std::min(0.5, joint.second / edge.marginal))});
    }
  }
  return made;
}

std::unique_ptr<pm::Mwpm> make_matcher(matching_graph &from, bool with_search_graph) {
  std::unique_ptr<pm::Mwpm> made = new_matcher(from.graph, with_search_graph);
  for (const std::size_t observable : from.always_flipped)
    made->flooder.graph.update_negative_weight_observables({observable});
  made->flooder.sync_negative_weight_observables_and_detection_events();
  return made;
}

} // namespace cudaq::qec::realtime
