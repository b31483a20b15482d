// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cudaq::qec::realtime {

/// The least weights of a matching of few nodes, each pair of which has a weight. For one thread.
///
/// Each node is matched with another one, or with one of two boundaries, left and right, which take any number of
/// nodes. One weight is the least with an even number of ends at the right, the other one with an odd number; a path
/// from left to right without nodes is such an end, too.
///
/// This is Edmonds' algorithm with dual variables: each node has a radius, and a pair may be matched if the radii reach
/// from one to the other. One search after the other adds an unmatched node. Its tree has nodes at an even distance,
/// whose radii grow, and at an odd one, whose radii shrink by as much. The radii sum up to the weight, so the time that
/// a search takes is what it adds to the weight. Example, with weights A-B 4, B-boundary 6, C-A 5, C-boundary 20:
///
///   A 2, B 2 are matched, weight 4. C begins at 3, where it reaches A: C grows, A shrinks, B grows. After a time of 4,
///   B is at 6 and reaches the boundary. The weight is 4 + 3 + 4 = 11: B at the boundary, and C with A.
///
/// First both boundaries are one, and most nodes find a match near them. Then one more search makes the number at the
/// right even or odd. For it the right is no boundary: two nodes there are matched with each other, with the sum of
/// their weights to the right. If the number is even, the search adds a node that is the right itself. If it is odd,
/// one node at the right has no other one, and the search begins there. The radii stay as they are, since none is
/// larger than the weight to the right. So the search from one boundary of a code to the other is made once, and only
/// touches the events: a matcher on the graph of the detectors would make it through all of them.
class event_matching {
public:
  explicit event_matching(std::size_t max_nodes);

  /// `nodes`: from 1 to max_nodes. All weights must be set after it. `across`: from left to right.
  void begin(std::size_t nodes, double across) noexcept;
  /// Weights: even integers from 0 to 2^40, or infinite.
  void set_pair(std::size_t a, std::size_t b, double weight) noexcept {
    weights_[a * row_ + b] = weights_[b * row_ + a] = weight;
  }
  void set_boundaries(std::size_t node, double left, double right) noexcept {
    to_left_[node] = left;
    to_right_[node] = right;
  }
  /// The least weights with an even and with an odd number at the right; infinite: there is no such matching. None:
  /// there is no matching.
  [[nodiscard]] std::optional<std::array<double, 2>> weigh() noexcept;

private:
  using id = std::uint32_t; ///< a node, or a blossom: an odd ring of nodes and blossoms that acts as one node
  static constexpr id kNone = UINT32_MAX, kBoundary = UINT32_MAX - 1;
  enum class label : std::uint8_t { outside, grows, shrinks };
  /// A pair of nodes, seen from the first.
  struct link {
    id own = kNone, other = kNone;
  };
  /// A node or a blossom.
  struct region {
    link match{};          ///< of a region in no blossom
    link entry{};          ///< of one that shrinks: its parent in the tree
    link next_link{};      ///< in a blossom: to the next of the ring
    id next = kNone;       ///< of the ring
    id parent = kNone;     ///< the blossom
    id child = kNone;      ///< of a blossom
    double own_radius = 0; ///< of a blossom, apart from those of its nodes; in a search at its time 0, as radii_
    std::uint32_t seen = 0;
    label is = label::outside;
  };

  void match_nearest() noexcept;
  [[nodiscard]] id pair_at_right() noexcept;
  [[nodiscard]] double search(id root, bool only_time) noexcept;
  void clear_search() noexcept;
  void end_search(double time) noexcept;
  [[nodiscard]] id first_reached(double &time) const noexcept;
  void grow(id of, double time) noexcept;
  void shrink(id of, link entry, double time) noexcept;
  void spread_from(id node) noexcept;
  void find_key(id node) noexcept;
  void make_blossom(id a, id b, double time) noexcept;
  void take_nodes(id of, id made, double time) noexcept;
  [[nodiscard]] id common_ancestor(id a, id b) noexcept;
  [[nodiscard]] id grandparent(id of) const noexcept;
  void break_blossom(id of, double time) noexcept;
  void augment(id from, id to) noexcept;

  std::size_t first_blossom_;       ///< those before it are nodes
  std::size_t nodes_ = 0, row_ = 0; ///< that take part now, and all
  std::vector<double> weights_, to_left_, to_right_;
  double across_ = 0;
  std::vector<double> to_boundary_; ///< of a search
  std::vector<double> to_pair_;     ///< in the last search to the right, else infinite
  // Of each node. In a search the radius at time t is radii_ + sign * t.
  std::vector<double> radii_;
  std::vector<double> keys_;           ///< the least weight - radius of the growing nodes of other regions
  std::vector<std::int64_t> from_;     ///< that node
  std::vector<double> factor_, added_; ///< the time at which one reaches it: factor * (key - radius) + added
  std::vector<id> outer_;              ///< the region in no other one
  std::vector<region> regions_;
  std::vector<id> free_blossoms_;
  std::vector<id> shrinking_; ///< blossoms
  double boundary_time_ = 0;  ///< when a growing node reaches the boundary
  id at_boundary_ = kNone;
  id root_ = kNone;
  /// The first blossom that grows, often a large one, and all that it becomes a part of. Of two growing nodes each has
  /// a key, and one is enough: no node of this region counts as reached.
  id keyless_ = kNone;
  std::uint32_t stamp_ = 0;
};

} // namespace cudaq::qec::realtime
