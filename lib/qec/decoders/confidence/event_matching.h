// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cudaq::qec::realtime {

/// The least weight of a matching of few nodes, each pair of which has a weight, and the least weight with one node
/// more. For one thread.
///
/// Each node is matched with another one, or with the boundary, which takes any number of nodes. This is Edmonds'
/// algorithm with dual variables: each node has a radius, and a pair may be matched if the radii reach from one to the
/// other. One search after the other adds an unmatched node. Its tree has nodes at an even distance, whose radii grow,
/// and at an odd one, whose radii shrink by as much. The radii sum up to the weight, so the time that a search takes is
/// what it adds to the weight. Example, with weights A-B 4, B-boundary 6, C-A 5, C-boundary 20:
///
///   A 2, B 2 are matched, weight 4. C begins at 3, where it reaches A: C grows, A shrinks, B grows. After a time of 4,
///   B is at 6 and reaches the boundary. The weight is 4 + 3 + 4 = 11: B at the boundary, and C with A.
///
/// A search from one boundary of a code to the other, which a matcher on the graph of the detectors makes through all
/// of them, only touches the events here.
class event_matching {
public:
  explicit event_matching(std::size_t max_nodes);

  /// `nodes`: with the one that is added at the end; from 1 to max_nodes. All weights must be set after it.
  void begin(std::size_t nodes) noexcept;
  /// Weights: even integers from 0 to 2^40, or infinite.
  void set_pair(std::size_t a, std::size_t b, double weight) noexcept {
    weights_[a * row_ + b] = weights_[b * row_ + a] = weight;
  }
  void set_boundary(std::size_t node, double weight) noexcept { to_boundary_[node] = weight; }
  /// The least weights of all nodes but the last, and of all; infinite: these have no matching. None: nor have those.
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
  [[nodiscard]] double search(id root, bool only_time) noexcept;
  void clear_search() noexcept;
  void end_search(double time) noexcept;
  [[nodiscard]] id first_reached(double &time) const noexcept;
  void grow(id of, double time) noexcept;
  void shrink(id of, link entry, double time) noexcept;
  void spread_from(id node) noexcept;
  void find_keys(id of) noexcept;
  void make_blossom(id a, id b, double time) noexcept;
  [[nodiscard]] id common_ancestor(id a, id b) noexcept;
  [[nodiscard]] id grandparent(id of) const noexcept;
  void break_blossom(id of, double time) noexcept;
  void augment(id from, id to) noexcept;

  std::size_t first_blossom_;       ///< those before it are nodes
  std::size_t nodes_ = 0, row_ = 0; ///< that take part now, and all
  std::vector<double> weights_, to_boundary_;
  // Of each node. In a search the radius at time t is radii_ + sign * t.
  std::vector<double> radii_;
  std::vector<double> keys_;           ///< the least weight - radius of the growing nodes of other regions
  std::vector<id> from_;               ///< that node
  std::vector<double> factor_, added_; ///< the time at which one reaches it: factor * (key - radius) + added
  std::vector<id> outer_;              ///< the region in no other one
  std::vector<region> regions_;
  std::vector<id> free_blossoms_;
  std::vector<id> shrinking_; ///< blossoms
  double boundary_time_ = 0;  ///< when a growing node reaches the boundary
  id at_boundary_ = kNone;
  id root_ = kNone;
  id keyless_ = kNone; ///< find_keys()
  std::uint32_t stamp_ = 0;
};

} // namespace cudaq::qec::realtime
