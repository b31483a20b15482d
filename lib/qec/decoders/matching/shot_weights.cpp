// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/matching/shot_weights.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

using index_list = std::vector<std::size_t>;
using node_pair = std::pair<std::size_t, std::size_t>;

detector_error_model clamped(detector_error_model model, double smallest) {
  for (dem_component &c : model.components)
    c.probability = clamped_probability(c.probability, smallest);
  return model;
}

index_list list_of(std::span<const std::uint64_t> observables) { return {observables.begin(), observables.end()}; }

template <class Node>
Node *end_of(std::vector<Node> &nodes, std::uint32_t node) {
  return node == UINT32_MAX ? nullptr : &nodes[node];
}

/// Calls a function with both ends of an edge: the node, and the place of the edge in its lists.
template <class Graph, class Use>
void at_both_ends(Graph &graph, std::uint32_t node1, std::uint32_t node2, Use &&use) {
  auto *const first = end_of(graph.nodes, node1), *const second = end_of(graph.nodes, node2);
  use(*first, first->index_of_neighbor(second));
  if (second != nullptr)
    use(*second, second->index_of_neighbor(first));
}

} // namespace

shot_weights::shot_weights(const detector_error_model &model, bool correlated, double smallest,
                           const std::vector<bool> &is_idle)
    : correlated_(correlated), smallest_(smallest),
      check_(model.num_errors), graph_{pm::UserGraph(model.num_detectors, model.num_observables), {}} {
  const detector_error_model in_limits = clamped(model, smallest);
  list_parts(in_limits);
  if (correlated)
    list_implied();
  list_factors(is_idle);
  make_graph(in_limits);
  constant_weight_ = graph_.constant_weight;
}

void shot_weights::list_parts(const detector_error_model &model) {
  std::vector<std::map<std::size_t, std::uint32_t>> edge_at(model.num_detectors); // by the first node, then the second
  std::map<index_list, std::uint32_t> undetected;
  std::vector<std::map<index_list, std::uint32_t>> variants;
  const auto &all = model.components;
  for (const dem_component &c : all) {
    if (c.detectors == 0)
      continue;
    const auto detectors = model.detectors_of(c);
    const std::uint32_t node2 = c.detectors == 2 ? static_cast<std::uint32_t>(detectors.back()) : kNone;
    const auto [found, is_new] =
        edge_at[detectors.front()].try_emplace(node2, static_cast<std::uint32_t>(edges_.size()));
    if (is_new) {
      edges_.push_back({.node1 = static_cast<std::uint32_t>(detectors.front()), .node2 = node2});
      variants.emplace_back();
    }
    variants[found->second].try_emplace(list_of(model.observables_of(c)), 0U);
  }
  num_graph_edges_ = static_cast<std::uint32_t>(edges_.size());
  for (const dem_component &c : all)
    if (c.detectors == 0 &&
        undetected.try_emplace(list_of(model.observables_of(c)), static_cast<std::uint32_t>(edges_.size())).second) {
      edges_.emplace_back();
      variants.emplace_back().try_emplace(list_of(model.observables_of(c)), 0U);
    }
  for (std::uint32_t k = 0; k < edges_.size(); ++k) {
    if (variants[k].size() == 1 && k < num_graph_edges_)
      continue;
    edges_[k].variants = static_cast<std::uint32_t>(variants_.size());
    variant_list &made = variants_.emplace_back();
    for (auto &[observables, number] : variants[k]) {
      number = static_cast<std::uint32_t>(made.observables.size());
      made.observables.push_back(observables);
    }
  }

  std::vector<part> in_order; // of the model
  first_part_.assign(edges_.size() + 1, 0);
  first_of_error_.assign(static_cast<std::size_t>(model.num_errors) + 1, 0); // of errors without an effect, too
  for (const dem_component &c : all) {
    const index_list observables = list_of(model.observables_of(c));
    const auto detectors = model.detectors_of(c);
    const std::uint32_t of = c.detectors == 0
                                 ? undetected.at(observables)
                                 : edge_at[detectors.front()].at(c.detectors == 2 ? detectors.back() : kNone);
    in_order.push_back({c.probability, of, variants[of].at(observables), static_cast<std::uint32_t>(c.mechanism)});
    ++first_part_[of + 1];
    ++first_of_error_[c.mechanism + 1];
  }
  for (std::size_t k = 1; k < first_part_.size(); ++k)
    first_part_[k] += first_part_[k - 1];
  for (std::size_t k = 1; k < first_of_error_.size(); ++k)
    first_of_error_[k] += first_of_error_[k - 1];
  parts_.resize(in_order.size());
  std::vector<std::uint32_t> next(first_part_.begin(), first_part_.end() - 1);
  for (const part &one : in_order) { // the components of an error are neighbours, and errors ascend
    part_of_error_.push_back(next[one.edge]++);
    parts_[part_of_error_.back()] = one;
  }
  // Whether a split error contradicts those beside it depends on all probabilities: the model was checked with its own.
  for (std::size_t error = 0; error + 1 < first_of_error_.size(); ++error)
    if (first_of_error_[error + 1] - first_of_error_[error] > 1)
      for (std::uint32_t k = first_of_error_[error]; k < first_of_error_[error + 1]; ++k)
        if (edge_record &e = edges_[parts_[part_of_error_[k]].edge]; e.variants != kNone && e.node1 != kNone)
          e.why_fixed =
              "has the detectors of a component of a split error that flips other observables; bp-osd takes it";
}

void shot_weights::list_implied() {
  // In the order of PyMatching's map of joint probabilities, whose rules have the same places.
  std::vector<std::map<node_pair, std::vector<std::uint32_t>>> of_edge(edges_.size());
  const auto nodes_of = [this](std::uint32_t number) {
    const auto wide = [](std::uint32_t node) { return node == kNone ? SIZE_MAX : std::size_t{node}; };
    return node_pair(std::minmax(wide(edges_[number].node1), wide(edges_[number].node2)));
  };
  for (std::size_t error = 0; error + 1 < first_of_error_.size(); ++error) {
    bool has_twins = false;
    for (std::uint32_t a = first_of_error_[error]; a < first_of_error_[error + 1]; ++a)
      for (std::uint32_t b = a + 1; b < first_of_error_[error + 1]; ++b) {
        const std::uint32_t one = part_of_error_[a], other = part_of_error_[b];
        const std::uint32_t edge1 = parts_[one].edge, edge2 = parts_[other].edge;
        if (edge1 == edge2) {
          has_twins = true;
          continue;
        }
        of_edge[edge1][nodes_of(edge2)].push_back(one);
        of_edge[edge2][nodes_of(edge1)].push_back(other);
      }
    for (std::uint32_t k = first_of_error_[error]; has_twins && k < first_of_error_[error + 1]; ++k)
      edges_[parts_[part_of_error_[k]].edge].why_fixed =
          "or an error with the same edge has a component twice, which has no correlated weight; pymatching takes it";
  }
  for (const auto &others : of_edge) {
    first_implied_.push_back(static_cast<std::uint32_t>(implied_.size()));
    for (const auto &[nodes, causes] : others) {
      const auto first = static_cast<std::uint32_t>(causes_.size());
      causes_.insert(causes_.end(), causes.begin(), causes.end());
      implied_.push_back({first, static_cast<std::uint32_t>(causes_.size())});
    }
  }
  first_implied_.push_back(static_cast<std::uint32_t>(implied_.size()));
}

void shot_weights::list_factors(const std::vector<bool> &is_idle) {
  // The limits of quick_weight().
  constexpr std::uint32_t kMaxParts = 64;
  constexpr double kLeastFactor = 0.125;
  weights_.resize(edges_.size());
  is_changed_.resize(edges_.size());
  changed_.resize(edges_.size() + 1);
  for (std::uint32_t k = 0; k < edges_.size(); ++k) {
    const auto parts = std::span(parts_).subspan(first_part_[k], first_part_[k + 1] - first_part_[k]);
    double product =
        edges_[k].variants == kNone && parts.size() <= kMaxParts ? 1 : std::numeric_limits<double>::quiet_NaN();
    for (const part &one : parts) {
      const double d = 1 - 2 * one.probability;
      product *= std::abs(d) >= kLeastFactor ? d : std::numeric_limits<double>::quiet_NaN();
    }
    products_.push_back({product, product});
  }
  const std::size_t num_errors = first_of_error_.size() - 1;
  for (factor_list *const list : {&busy_, &idle_})
    list->first.assign(1, 0);
  for (std::size_t error = 0; error < num_errors; ++error) {
    is_fixed_.push_back(why_fixed(error) != nullptr ? 1 : 0);
    for (std::uint32_t k = first_of_error_[error]; k < first_of_error_[error + 1]; ++k) {
      const part &one = parts_[part_of_error_[k]];
      const std::uint32_t node = edges_[one.edge].node1;
      const bool is_of_idle = node < is_idle.size() && is_idle[node];
      (is_of_idle ? idle_ : busy_).factors.push_back({1 / (1 - 2 * one.probability), one.edge});
    }
    for (factor_list *const list : {&busy_, &idle_})
      list->first.push_back(static_cast<std::uint32_t>(list->factors.size()));
  }
}

const char *shot_weights::why_fixed(std::uint64_t error) const noexcept {
  if (first_of_error_[error] == first_of_error_[error + 1])
    return "flips nothing, or has the probability 0 in the model: so it has no place in the graph";
  for (std::uint32_t k = first_of_error_[error]; k < first_of_error_[error + 1]; ++k)
    if (const char *const why = edges_[parts_[part_of_error_[k]].edge].why_fixed)
      return why;
  return nullptr;
}

void shot_weights::make_graph(const detector_error_model &model) {
  if (correlated_) {
    graph_ = make_correlated_graph(model);
    if (graph_.graph.edges.size() != num_graph_edges_)
      throw std::logic_error("PyMatching's graph has another number of edges");
  } else {
    graph_.graph.loaded_from_dem_without_correlations = true;
    for (std::uint32_t k = 0; k < num_graph_edges_; ++k)
      graph_.graph.edges.push_back(
          {edges_[k].node1, edges_[k].node2 == kNone ? SIZE_MAX : edges_[k].node2, {}, 0, 0, {}});
  }
  auto next = graph_.graph.edges.begin();
  for (std::uint32_t k = 0; k < num_graph_edges_; ++k)
    edges_[k].in_graph = &*next++;
  for (std::size_t k = 0; k < model.components.size(); ++k)
    if (const edge_record &e = edges_[parts_[part_of_error_[k]].edge]; e.in_graph != nullptr && e.variants == kNone)
      e.in_graph->observable_indices = list_of(model.observables_of(model.components[k]));
  for (std::uint32_t k = 0; k < edges_.size(); ++k) {
    edge_record &e = edges_[k];
    double weight = 0;
    if (e.variants != kNone) {
      least_edge &now = variants_[e.variants].now = least_of(e, k);
      flip(graph_.always_flipped, {now.always_flipped.begin(), now.always_flipped.end()});
      graph_.constant_weight += now.constant_weight;
      weight = now.weight;
    } else {
      weight = parity_of(k).weight();
    }
    if (k >= num_graph_edges_)
      continue;
    if (correlated_)
      weight = std::max(weight, 0.0); // 1/2 may come out above it by a rounding
    e.in_graph->weight = weight;
    e.in_graph->error_probability = 1 / (1 + std::exp(weight));
    if (e.variants != kNone)
      e.in_graph->observable_indices = variants_[e.variants].now.observables;
  }
  // PyMatching leaves an edge from a node to itself out of the graph, but scales by the largest weight of all.
  const double largest = std::max(log_odds(smallest_), -log_odds(1 - smallest_)); // they differ by a rounding
  if (model.num_detectors != 0)
    graph_.graph.edges.push_back({0, 0, {}, largest, smallest_, {}});
}

void shot_weights::attach(pm::Mwpm &matcher) {
  matcher_ = &matcher;
  unit_ = matcher.flooder.graph.normalising_constant / 2;
  find_weights();
}

void shot_weights::find_weights() {
  pm::MatchingGraph &graph = matcher_->flooder.graph;
  auto &search = matcher_->search_flooder.graph.nodes;
  has_search_ = search.size() == graph.nodes.size();
  // A node has its edge to the boundary first, then its neighbours in the order of the edges.
  std::vector<std::uint32_t> next(graph.nodes.size());
  for (std::uint32_t k = 0; k < num_graph_edges_; ++k)
    if (edges_[k].node2 == kNone)
      next[edges_[k].node1] = 1;
  first_at_node_.assign(1, 0);
  for (const pm::DetectorNode &node : graph.nodes)
    first_at_node_.push_back(first_at_node_.back() + static_cast<std::uint32_t>(node.neighbors.size()));
  edge_at_.assign(first_at_node_.back(), kNone);
  for (std::uint32_t k = 0; k < num_graph_edges_; ++k) {
    edge_record &e = edges_[k];
    weights_[k].in_graph.fill(&unused_);
    e.in_search_graph.fill(&unused_);
    const auto find = [&](std::size_t direction, std::uint32_t node, std::uint32_t other) {
      const std::uint32_t at = other == kNone ? 0 : next[node]++;
      if (graph.nodes[node].neighbors.at(at) != end_of(graph.nodes, other))
        throw std::logic_error("PyMatching's graph has another order of edges");
      edge_at_[first_at_node_[node] + at] = k;
      weights_[k].in_graph[direction] = &graph.nodes[node].neighbor_weights[at];
      if (has_search_)
        e.in_search_graph[direction] = &search[node].neighbor_weights[at];
      if (correlated_ &&
          graph.nodes[node].neighbor_implied_weights[at].size() != first_implied_[k + 1] - first_implied_[k])
        throw std::logic_error("PyMatching's graph has other rules for correlated edges");
    };
    find(0, e.node1, e.node2);
    if (e.node2 != kNone)
      find(1, e.node2, e.node1);
    weights_[k].now = weights_[k].of_model = integer(e.in_graph->weight);
  }
}

double shot_weights::parity::weight() const noexcept { return std::log(even / odd); }

double shot_weights::probability_of(const part &one) const noexcept {
  const error_probability *const replaced = check_.find(list_, one.error);
  return replaced != nullptr ? clamped_probability(replaced->probability, smallest_) : one.probability;
}

shot_weights::parity shot_weights::parity_of(std::uint32_t number) const noexcept {
  parity sum;
  for (std::uint32_t k = first_part_[number]; k < first_part_[number + 1]; ++k)
    sum.add(probability_of(parts_[k]));
  return sum;
}

least_edge shot_weights::least_of(const edge_record &e, std::uint32_t number) const {
  const auto &observables = variants_[e.variants].observables;
  std::vector<parity> sums(observables.size());
  for (std::uint32_t k = first_part_[number]; k < first_part_[number + 1]; ++k)
    sums[parts_[k].variant].add(probability_of(parts_[k]));
  if (e.node1 == kNone) {
    least_edge made;
    if (sums[0].odd > 0.5 && !correlated_) {
      made.always_flipped = {observables[0].begin(), observables[0].end()};
      made.constant_weight = sums[0].weight();
    }
    return made;
  }
  edge_variants errors;
  for (std::size_t k = 0; k < sums.size(); ++k)
    errors.emplace(observables[k], sums[k].weight());
  return least_edge_of(errors);
}

pm::signed_weight_int shot_weights::integer(double weight) const noexcept {
  return 2 * static_cast<pm::signed_weight_int>(std::round(weight * unit_)); // as PyMatching: all weights are even
}

bool shot_weights::replace(shot_probabilities list) {
  if (!check_.check(list, correlated_ ? 0.5 : 1,
                    [this](std::uint64_t error) { return is_fixed_[error] != 0 ? why_fixed(error) : nullptr; }))
    return false;
  list_ = list;
  replace_parts(busy_);
  return true;
}

void shot_weights::replace_parts(const factor_list &of_errors) {
  const std::size_t before = num_changed_;
  // Whether an edge comes a second time is random: so without a branch.
  std::uint32_t *const changed = changed_.data();
  std::size_t count = before;
  edge_product *const products = products_.data();
  std::uint8_t *const is_changed = is_changed_.data();
  const std::uint32_t *const first = of_errors.first.data();
  const factor *const factors = of_errors.factors.data();
  const double smallest = smallest_;
  for (const error_probability &one : list_) {
    const double in = 1 - 2 * clamped_probability(one.probability, smallest);
    const factor *const end = factors + first[one.error + 1];
    for (const factor *of = factors + first[one.error]; of != end; ++of) {
      products[of->edge].now *= in * of->out;
      changed[count] = of->edge;
      count += is_changed[of->edge] ^ 1U;
      is_changed[of->edge] = 1;
    }
  }
  num_changed_ = count;
  for (std::size_t k = before; k < count; ++k) {
    pm::signed_weight_int weight = 0;
    if (quick_weight(products[changed[k]].now, weight))
      write(changed[k], weight);
    else
      change(changed[k]);
  }
  sync();
}

/// Both numbers are wrong only by roundings, each at most 2^-53 of a number up to 1. With n errors on the edge, n at
/// most 64, the product has at most 7n of them: n factors, and for each of them that is replaced a quotient, two
/// products and the factor itself. A factor that is taken out is at least 1/8, and what is left is at most 1. The sum
/// has at most 4n. So d is wrong by at most 11 * 64 * 2^-53 < 1e-13, and the weight 2 atanh(d) by 2 / (1 - d^2) times
/// that and by what the logarithm is. The product decides if the middle of two integers is farther away.
bool shot_weights::quick_weight(double product, pm::signed_weight_int &weight) const noexcept {
  constexpr double kWrongProduct = 1e-13, kWrongLog = 1e-10, kLeast = 1e-6;
  const double left = 1 - std::abs(product); // 1 - d^2 is at least this
  if (!(left >= kLeast))                     // NaN, too
    return false;
  const double exact = log_((1 + product) / (1 - product)) * unit_;
  constexpr double kShift = 6755399441055744.0; // 1.5 * 2^52: the sum has no digits after the point
  const double rounded = exact + kShift - kShift;
  weight = 2 * static_cast<pm::signed_weight_int>(rounded);
  return 0.5 - std::abs(exact - rounded) > unit_ * (kWrongLog + 2 * kWrongProduct / left);
}

void shot_weights::restore() {
  list_ = {};
  while (num_changed_ != 0) { // in this order turn() finds them the fastest
    const std::uint32_t number = changed_[--num_changed_];
    edge_product &of = products_[number];
    if (!std::isnan(of.of_model) || edges_[number].variants == kNone)
      write(number, weights_[number].of_model);
    else
      change(number);
    of.now = of.of_model;
    is_changed_[number] = 0;
  }
  for (auto old = old_implied_.rbegin(); old != old_implied_.rend(); ++old)
    old->place->implied_weight = old->weight;
  old_implied_.clear();
  graph_.constant_weight = constant_weight_;
  sync();
}

/// Sets the weight of an edge to that of its parts.
void shot_weights::change(std::uint32_t number) {
  edge_record &e = edges_[number];
  if (e.variants == kNone) {
    write(number, integer(parity_of(number).weight()));
    return;
  }
  least_edge &now = variants_[e.variants].now;
  least_edge least = least_of(e, number);
  index_list flipped; // what the edge no longer adds, and what it adds now
  std::ranges::set_symmetric_difference(now.always_flipped, least.always_flipped, std::back_inserter(flipped));
  if (!flipped.empty()) {
    flip(graph_.always_flipped, flipped);
    matcher_->flooder.graph.update_negative_weight_observables(flipped);
    is_turned_ = true;
  }
  graph_.constant_weight += least.constant_weight - now.constant_weight;
  if (number < num_graph_edges_) {
    if (least.observables != now.observables) {
      write(number, std::abs(weights_[number].now)); // a negative weight has flipped the old ones
      set_observables(e, least.observables);
    }
    write(number, integer(least.weight));
  }
  now = std::move(least);
}

inline void shot_weights::write(std::uint32_t number, pm::signed_weight_int weight) {
  edge_weight &e = weights_[number];
  const auto size = static_cast<pm::weight_int>(std::abs(weight));
  for (pm::weight_int *const place : e.in_graph)
    *place = size;
  if (has_search_)
    for (pm::weight_int *const place : edges_[number].in_search_graph)
      *place = size;
  if ((weight | e.now) < 0)
    change_sign(number, weight);
  e.now = weight;
}

/// From or to a negative weight.
void shot_weights::change_sign(std::uint32_t number, pm::signed_weight_int weight) {
  const pm::signed_weight_int before = weights_[number].now;
  const pm::signed_weight_int negative = std::min(weight, 0) - std::min(before, 0);
  matcher_->flooder.graph.negative_weight_sum += negative;
  matcher_->flooder.negative_weight_sum += negative;
  if ((weight ^ before) < 0)
    turn(edges_[number], weight < 0);
}

/// The sign of a weight changes. PyMatching counts an edge of negative weight as used: its ends are events, and its
/// observables are flipped, before the matching.
void shot_weights::turn(edge_record &e, bool is_negative) {
  is_turned_ = true;
  pm::MatchingGraph &graph = matcher_->flooder.graph;
  graph.update_negative_weight_observables(e.in_graph->observable_indices);
  graph.update_negative_weight_detection_events(e.node1);
  if (e.node2 != kNone)
    graph.update_negative_weight_detection_events(e.node2);
  if (!has_search_)
    return;
  pm::SearchGraph &search = matcher_->search_flooder.graph;
  at_both_ends(search, e.node1, e.node2,
               [](auto &node, std::size_t at) { node.neighbor_markers[at] ^= pm::WEIGHT_SIGN; });
  const node_pair ends(e.node1, e.node2 == kNone ? SIZE_MAX : e.node2);
  auto &negative = search.negative_weight_edges;
  if (is_negative)
    negative.push_back(ends);
  else if (const auto found = std::find(negative.rbegin(), negative.rend(), ends); found != negative.rend())
    negative.erase(std::prev(found.base()));
}

void shot_weights::set_observables(edge_record &e, const index_list &observables) {
  e.in_graph->observable_indices = observables;
  pm::MatchingGraph &graph = matcher_->flooder.graph;
  pm::obs_int mask = 0;
  if (graph.num_observables <= sizeof(mask) * 8)
    for (const std::size_t k : observables)
      mask ^= pm::obs_int{1} << k;
  at_both_ends(graph, e.node1, e.node2, [&](auto &node, std::size_t at) { node.neighbor_observables[at] = mask; });
  if (has_search_)
    at_both_ends(matcher_->search_flooder.graph, e.node1, e.node2,
                 [&](auto &node, std::size_t at) { node.neighbor_observable_indices[at] = observables; });
}

void shot_weights::sync() {
  if (is_turned_)
    matcher_->flooder.sync_negative_weight_observables_and_detection_events();
  is_turned_ = false;
}

template <class Graph>
void shot_weights::set_implied(Graph &graph, const edge_record &e, std::size_t rule, pm::weight_int weight) {
  at_both_ends(graph, e.node1, e.node2, [&](auto &node, std::size_t at) {
    pm::ImpliedWeight &place = node.neighbor_implied_weights[at][rule];
    old_implied_.push_back({&place, place.implied_weight});
    place.implied_weight = weight;
  });
}

void shot_weights::set_implied_weights(std::span<const std::int64_t> edges) {
  auto &nodes = matcher_->flooder.graph.nodes;
  for (std::size_t k = 0; k + 1 < edges.size(); k += 2) {
    const auto node = static_cast<std::size_t>(edges[k]);
    const std::size_t at =
        nodes[node].index_of_neighbor(edges[k + 1] < 0 ? nullptr : &nodes[static_cast<std::size_t>(edges[k + 1])]);
    const std::uint32_t number = edge_at_[first_at_node_[node] + at];
    const edge_record &e = edges_[number];
    if (is_changed_[number] == 0)
      continue;
    const double p = parity_of(number).odd;
    for (std::uint32_t rule = first_implied_[number]; rule < first_implied_[number + 1]; ++rule) {
      double both = 0;
      for (std::uint32_t cause = implied_[rule].first_cause; cause < implied_[rule].end_cause; ++cause)
        both = merged_probability(both, probability_of(parts_[causes_[cause]]));
      const auto weight = static_cast<pm::weight_int>(std::abs(integer(log_odds(std::min(0.5, both / p)))));
      set_implied(matcher_->flooder.graph, e, rule - first_implied_[number], weight);
      set_implied(matcher_->search_flooder.graph, e, rule - first_implied_[number], weight);
    }
  }
}

} // namespace cudaq::qec::realtime
