// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/confidence/event_matching.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

/// Two numbers at once: which one is less is random, and a branch would be wrong half of the time.
typedef double two_numbers __attribute__((vector_size(16)));
typedef std::int64_t two_words __attribute__((vector_size(16)));

two_numbers load(const double *from) noexcept {
  two_numbers loaded;
  std::memcpy(&loaded, from, sizeof loaded);
  return loaded;
}

/// Nodes, and one more if their number is odd.
constexpr std::size_t even_number(std::size_t nodes) { return nodes + nodes % 2; }

} // namespace

event_matching::event_matching(std::size_t max_nodes) : first_blossom_(max_nodes + 1) {
  const std::size_t all = max_nodes + 1, room = even_number(all);
  weights_.resize(all * room);
  for (std::vector<double> *const numbers :
       {&to_left_, &to_right_, &to_boundary_, &to_pair_, &radii_, &keys_, &factor_, &added_})
    numbers->resize(room);
  from_.resize(room);
  outer_.resize(all);
  regions_.resize(2 * all);
  free_blossoms_.reserve(all);
  shrinking_.reserve(all);
}

void event_matching::begin(std::size_t nodes, double across) noexcept {
  nodes_ = nodes;
  row_ = even_number(nodes + 1); // the last node is the right
  across_ = across;
  stamp_ = 0; // no region of this matching is seen
  for (std::size_t node = 0; node <= nodes; ++node) {
    weights_[node * row_ + node] = weights_[nodes * row_ + node] = kFar;
    std::fill(&weights_[node * row_ + nodes], &weights_[node * row_] + row_, kFar);
    outer_[node] = static_cast<id>(node);
    regions_[node] = {};
  }
  free_blossoms_.clear();
  // A blossom has at least two others, or nodes, more than the one in it.
  for (std::size_t k = 0; k < (nodes + 1) / 2 + 1; ++k)
    free_blossoms_.push_back(static_cast<id>(first_blossom_ + k));
}

std::optional<std::array<double, 2>> event_matching::weigh() noexcept {
  for (id node = 0; node < nodes_; ++node)
    to_boundary_[node] = std::min(to_left_[node], to_right_[node]);
  std::fill_n(to_pair_.begin(), row_, kFar);
  match_nearest();
  double weight = 0;
  for (id node = 0; node < nodes_; ++node)
    weight += radii_[node];
  for (id node = 0; node < nodes_ && weight < kFar; ++node)
    if (const id root = outer_[node]; regions_[root].match.other == kNone)
      weight += search(root, false);
  if (!(weight < kFar))
    return std::nullopt;
  if (const id root = pair_at_right(); root != kNone)
    return std::array{weight + search(root, true), weight};
  const auto last = static_cast<id>(nodes_++);
  to_boundary_[last] = across_;
  to_pair_[last] = 0;
  double &radius = radii_[last] = across_;
  for (id node = 0; node < last; ++node)
    radius = std::min(radius, to_right_[node] - radii_[node]);
  return std::array{weight, radius < kFar ? weight + radius + search(last, true) : kFar};
}

/// From now on the right is no boundary. Returns the region that was matched with it and finds no other one, if any.
event_matching::id event_matching::pair_at_right() noexcept {
  id single = kNone; // a node
  for (id node = 0; node < nodes_; ++node) {
    to_boundary_[node] = std::min(to_left_[node], to_right_[node] + across_);
    to_pair_[node] = to_right_[node];
    const link match = regions_[outer_[node]].match;
    if (match.other != kBoundary || match.own != node || to_left_[node] <= to_right_[node])
      continue;
    if (single == kNone) {
      single = node;
      continue;
    }
    regions_[outer_[node]].match = {node, single};
    regions_[outer_[single]].match = {single, node};
    single = kNone;
  }
  if (single == kNone)
    return kNone;
  regions_[outer_[single]].match = {};
  return outer_[single];
}

/// Radii so large as they may be without a search, and the matches that they allow.
void event_matching::match_nearest() noexcept {
  for (id node = 0; node < nodes_; ++node) {
    two_numbers least = {kFar, kFar};
    for (std::size_t other = 0; other < row_; other += 2) {
      const two_numbers weights = load(&weights_[node * row_ + other]);
      least = weights < least ? weights : least;
    }
    const double radius = std::min(std::min(least[0], least[1]) / 2, to_boundary_[node]);
    radii_[node] = radius < kFar ? radius : 0;
  }
  for (id node = 0; node < nodes_; ++node) {
    if (regions_[node].match.other != kNone)
      continue;
    if (radii_[node] == to_boundary_[node]) {
      regions_[node].match = {node, kBoundary};
      continue;
    }
    for (id other = node + 1; other < nodes_; ++other)
      if (regions_[other].match.other == kNone && weights_[node * row_ + other] == radii_[node] + radii_[other]) {
        regions_[node].match = {node, other};
        regions_[other].match = {other, node};
        break;
      }
  }
}

/// Adds the root to the matching; `only_time`: only says what that costs. Infinite: it cannot be added.
double event_matching::search(id root, bool only_time) noexcept {
  root_ = root;
  clear_search();
  grow(root, 0);
  double time = 0;
  for (;;) {
    double broken = kFar;
    id breaks = kNone;
    for (const id blossom : shrinking_)
      if (regions_[blossom].own_radius < broken)
        broken = regions_[breaks = blossom].own_radius;
    double reached = kFar;
    const id node = first_reached(reached);
    time = std::min({boundary_time_, broken, reached});
    if (!(time < kFar))
      return time;
    if (boundary_time_ == time) {
      if (!only_time)
        augment(at_boundary_, kBoundary);
      break;
    }
    if (broken == time) {
      break_blossom(breaks, time);
      continue;
    }
    const id from = static_cast<id>(from_[node]), of = outer_[node];
    if (of == outer_[from]) {
      find_key(node);
      continue;
    }
    if (regions_[of].is == label::grows) {
      make_blossom(from, node, time);
      continue;
    }
    const link match = regions_[of].match;
    if (match.other >= kBoundary) {
      if (!only_time)
        augment(from, node);
      break;
    }
    shrink(of, {node, from}, time);
    grow(outer_[match.other], time);
  }
  if (!only_time)
    end_search(time);
  return time;
}

void event_matching::clear_search() noexcept {
  std::fill_n(keys_.begin(), even_number(nodes_), kFar);
  std::fill_n(factor_.begin(), nodes_, 1.0);
  std::fill_n(added_.begin(), nodes_, 0.0);
  shrinking_.clear();
  keyless_ = kNone;
  boundary_time_ = kFar;
}

/// From now on radii are constant.
void event_matching::end_search(double time) noexcept {
  for (id node = 0; node < nodes_; ++node) {
    region &of = regions_[outer_[node]];
    if (of.is == label::outside)
      continue;
    const double sign = of.is == label::grows ? 1 : -1;
    radii_[node] += sign * time;
  }
  for (id node = 0; node < nodes_; ++node) {
    region &of = regions_[outer_[node]];
    if (of.is == label::outside)
      continue;
    of.own_radius += of.is == label::grows ? time : -time;
    of.is = label::outside;
  }
}

/// The node that a growing one reaches first, and when.
event_matching::id event_matching::first_reached(double &time) const noexcept {
  two_numbers least = {kFar, kFar};
  two_words first = {}, nodes = {0, 1};
  for (std::size_t node = 0; node < nodes_; node += 2, nodes += 2) {
    const two_numbers at = (load(&keys_[node]) - load(&radii_[node])) * load(&factor_[node]) + load(&added_[node]);
    first = at < least ? nodes : first;
    least = at < least ? at : least;
  }
  const int half = least[1] < least[0] ? 1 : 0;
  time = least[half];
  return static_cast<id>(first[half]);
}

/// From this time on a region outside grows.
void event_matching::grow(id of, double time) noexcept {
  region &self = regions_[of];
  self.is = label::grows;
  self.own_radius -= time;
  if (of < first_blossom_) {
    radii_[of] -= time;
    factor_[of] = 0.5;
    spread_from(of);
    return;
  }
  for (id node = 0; node < nodes_; ++node)
    if (outer_[node] == of) {
      radii_[node] -= time;
      factor_[node] = 0.5;
      added_[node] = keyless_ == kNone ? kFar : added_[node];
      spread_from(node);
    }
  if (keyless_ == kNone)
    keyless_ = of;
}

/// From this time on a region outside shrinks.
void event_matching::shrink(id of, link entry, double time) noexcept {
  region &self = regions_[of];
  self.is = label::shrinks;
  self.entry = entry;
  self.own_radius += time;
  if (of >= first_blossom_)
    shrinking_.push_back(of);
  const bool is_node = of < first_blossom_;
  for (id node = is_node ? of : 0, end = is_node ? of + 1 : static_cast<id>(nodes_); node < end; ++node)
    if (outer_[node] == of) {
      radii_[node] += time;
      added_[node] = kFar;
    }
}

/// A node begins to grow.
void event_matching::spread_from(id node) noexcept {
  const double radius = radii_[node], own_key = keys_[node];
  const std::int64_t own_from = from_[node], self = node;
  const double *const row = &weights_[node * row_];
  const two_numbers to_pair = two_numbers{} + to_pair_[node];
  for (std::size_t other = 0; other < nodes_; other += 2) {
    const two_numbers direct = load(row + other), paired = to_pair + load(&to_pair_[other]);
    const two_numbers key = (direct < paired ? direct : paired) - radius, old_key = load(&keys_[other]);
    two_words from;
    std::memcpy(&from, &from_[other], sizeof from);
    const two_numbers keys = key < old_key ? key : old_key;
    from = key < old_key ? two_words{} + self : from;
    std::memcpy(&keys_[other], &keys, sizeof keys);
    std::memcpy(&from_[other], &from, sizeof from);
  }
  keys_[node] = own_key;
  from_[node] = own_from;
  if (to_boundary_[node] - radius < boundary_time_) {
    boundary_time_ = to_boundary_[node] - radius;
    at_boundary_ = node;
  }
}

/// The key of a node of a growing blossom came from a node in it: finds that from other regions.
void event_matching::find_key(id node) noexcept {
  keys_[node] = kFar;
  const id of = outer_[node];
  const double *const row = &weights_[node * row_];
  for (id from = 0; from < nodes_; ++from) {
    const double key = std::min(row[from], to_pair_[node] + to_pair_[from]) - radii_[from];
    if (key < keys_[node] && outer_[from] != of && regions_[outer_[from]].is == label::grows) {
      keys_[node] = key;
      from_[node] = from;
    }
  }
}

/// The growing region before the one above this growing region; the root has none.
event_matching::id event_matching::grandparent(id of) const noexcept {
  if (of == root_)
    return kNone;
  return outer_[regions_[outer_[regions_[of].match.other]].entry.other];
}

event_matching::id event_matching::common_ancestor(id a, id b) noexcept {
  ++stamp_;
  for (; a != kNone; a = grandparent(a))
    regions_[a].seen = stamp_;
  while (regions_[b].seen != stamp_)
    b = grandparent(b);
  return b;
}

/// Two growing nodes of different regions reach each other. The ring: down from the common ancestor to the one of `a`,
/// from `a` to `b`, and up again.
void event_matching::make_blossom(id a, id b, double time) noexcept {
  const id of_a = outer_[a], of_b = outer_[b], top = common_ancestor(of_a, of_b);
  const id made = free_blossoms_.back();
  free_blossoms_.pop_back();
  for (id at = of_a; at != top;) {
    const link up = regions_[at].match;
    const id above = outer_[up.other];
    regions_[above].next = at;
    regions_[above].next_link = {up.other, up.own};
    const link entry = regions_[above].entry;
    at = outer_[entry.other];
    regions_[at].next = above;
    regions_[at].next_link = {entry.other, entry.own};
  }
  regions_[of_a].next = of_b;
  regions_[of_a].next_link = {a, b};
  for (id at = of_b; at != top;) {
    const link up = regions_[at].match;
    const id above = outer_[up.other];
    regions_[at].next = above;
    regions_[at].next_link = up;
    regions_[above].next_link = regions_[above].entry;
    at = outer_[regions_[above].entry.other];
    regions_[above].next = at;
  }
  regions_[made] = {.match = regions_[top].match, .child = top, .own_radius = -time, .is = label::grows};
  if (top == root_)
    root_ = made;
  id at = top;
  do {
    regions_[at].parent = made;
    regions_[at].own_radius += regions_[at].is == label::grows ? time : -time;
    at = regions_[at].next;
  } while (at != top);
  std::erase_if(shrinking_, [&](id blossom) { return regions_[blossom].parent == made; });
  if (keyless_ == kNone || regions_[keyless_].parent == made)
    keyless_ = made;
  do {
    take_nodes(at, made, time);
    at = regions_[at].next;
  } while (at != top);
}

/// The nodes of a region of the ring of the blossom `made` become nodes of it.
void event_matching::take_nodes(id of, id made, double time) noexcept {
  const bool is_node = of < first_blossom_, grew = regions_[of].is == label::grows;
  for (id node = is_node ? of : 0, end = is_node ? of + 1 : static_cast<id>(nodes_); node < end; ++node) {
    if (outer_[node] != of)
      continue;
    outer_[node] = made;
    added_[node] = made == keyless_ ? kFar : 0;
    if (grew)
      continue;
    radii_[node] -= 2 * time;
    factor_[node] = 0.5;
    spread_from(node);
  }
}

/// The own radius of a shrinking blossom is 0. Of its ring the even way between the node where the tree enters and the
/// one that is matched goes into the tree; the others are matched with each other, and outside.
void event_matching::break_blossom(id of, double time) noexcept {
  const region broken = regions_[of];
  std::erase(shrinking_, of);
  free_blossoms_.push_back(of);
  for (id node = 0; node < nodes_; ++node) {
    if (outer_[node] != of)
      continue;
    id child = node;
    while (regions_[child].parent != of)
      child = regions_[child].parent;
    outer_[node] = child;
    radii_[node] -= time;
    added_[node] = 0;
  }
  id at = broken.child;
  do {
    regions_[at].parent = kNone;
    regions_[at].is = label::outside;
    at = regions_[at].next;
  } while (at != broken.child);

  const id enters = outer_[broken.entry.own], leaves = outer_[broken.match.own];
  const auto match = [this](link pair) {
    regions_[outer_[pair.own]].match = pair;
    regions_[outer_[pair.other]].match = {pair.other, pair.own};
  };
  std::size_t steps = 0;
  for (id step = enters; step != leaves; step = regions_[step].next)
    ++steps;
  const bool forward = steps % 2 == 0;
  const id begin = forward ? enters : leaves, end = forward ? leaves : enters;
  for (id pair = regions_[end].next; pair != begin; pair = regions_[regions_[pair].next].next)
    match(regions_[pair].next_link);
  // From the entry each second region shrinks, and is matched with the next one. The ring is followed from `begin`.
  for (id pair = begin; pair != end;) {
    const id grown = regions_[pair].next, after = regions_[grown].next;
    const link first = regions_[pair].next_link, second = regions_[grown].next_link;
    match(forward ? first : second);
    if (forward)
      shrink(after, {second.other, second.own}, time);
    else
      shrink(pair, first, time);
    pair = after;
  }
  shrink(enters, broken.entry, time);
  regions_[leaves].match = broken.match;
  for (id pair = begin; pair != end; pair = regions_[regions_[pair].next].next)
    grow(regions_[pair].next, time);
}

/// Turns the matches on the way from the root to the growing node `from`, which is matched with `to`.
void event_matching::augment(id from, id to) noexcept {
  if (to != kBoundary)
    regions_[outer_[to]].match = {to, from};
  for (link now{from, to};;) {
    region &grown = regions_[outer_[now.own]];
    const link old = std::exchange(grown.match, now);
    if (outer_[now.own] == root_)
      return;
    region &above = regions_[outer_[old.other]];
    above.match = above.entry;
    now = {above.entry.other, above.entry.own};
  }
}

} // namespace cudaq::qec::realtime
