// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/matching/matching_graph.h"
#include "lib/qec/decoders/matching/quick_log.h"
#include "lib/qec/decoders/replaced_errors.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// A matching graph whose weights a shot may replace. Only built with PyMatching.
///
/// An edge stands for all errors with its detectors, so its weight is made again from their probabilities, in the order
/// of the model, whenever one of them changes. Example: edge D0 D1 is error 4 (0.01) and one component of error 9
/// (0.02). Its probability is 0.01 * 0.98 + 0.02 * 0.99 = 0.0296. A shot replaces that of error 9 by 0.5: this edge,
/// and those of the other components of error 9, get 0.5 and the weight 0. After the shot the weights that were written
/// over come back.
///
/// This sum is what a decoder that is made for the shot has, but it takes a time for each error of the edge. With d =
/// 1 - 2p the probabilities of independent errors multiply: the edge has d = 0.98 * 0.96, and in the shot this times
/// 0 / 0.96. So a shot costs one product for each error of its list, and one logarithm for each edge: log((1 + d) /
/// (1 - d)). It differs from the logarithm of the sum by roundings. Both become an integer, and almost always the same
/// one: only next to the middle of two integers, nearer than all roundings together, the sum decides. quick_weight()
/// has the limits in which this holds.
///
/// The integers of all shots have one scale: the largest one stands for the smallest probability. Probabilities of the
/// model that are outside smallest to 1 - smallest count as the nearer of the two, too.
class shot_weights {
public:
  /// `model`: one that make_matching_graph or make_correlated_graph takes. `is_idle`: of each detector, whether it is
  /// in a part whose weights replace() leaves to replace_idle(); empty: none is.
  shot_weights(const detector_error_model &model, bool correlated, double smallest, const std::vector<bool> &is_idle);
  shot_weights(const shot_weights &) = delete;
  shot_weights &operator=(const shot_weights &) = delete;

  /// For make_matcher.
  [[nodiscard]] matching_graph &graph() noexcept { return graph_; }
  /// From now on the weights are those of this matcher, which was made of graph(). Throws.
  void attach(pm::Mwpm &matcher);

  /// Sets the weights of a shot; false: fault() has the reason, and nothing was changed. The list is read until
  /// restore(). Throws std::bad_alloc: neither this object nor the matcher can be used any more.
  [[nodiscard]] bool replace(shot_probabilities list);
  /// After replace(), for a decode that needs the weights of idle detectors, too. Throws std::bad_alloc: the matcher
  /// cannot be used any more, but this object can, after restore() and with another matcher: no edge of idle detectors
  /// has variants.
  void replace_idle() { replace_parts(idle_); }
  void restore();
  [[nodiscard]] const char *fault() const noexcept { return check_.fault(); }

  /// Of correlated matching, after the first pass: sets what its edges imply in this shot for the others. `edges`:
  /// pairs of nodes, as PyMatching gives them.
  void set_implied_weights(std::span<const std::int64_t> edges);

private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// A component of an error, as a part of its edge.
  struct part {
    double probability; ///< of the model
    std::uint32_t edge;
    std::uint32_t variant; ///< of the edge
    std::uint32_t error;
  };
  /// Of 1 - 2p of the errors of an edge; NaN: only the sum of its errors is exact enough.
  struct edge_product {
    double now, of_model;
  };
  struct edge_weight {
    std::array<pm::weight_int *, 2> in_graph{}; ///< both directions; without one: unused_
    pm::signed_weight_int now = 0, of_model = 0;
  };
  struct edge_record {
    std::array<pm::weight_int *, 2> in_search_graph{};
    std::uint32_t node1 = kNone, node2 = kNone; ///< kNone: the boundary; both: errors without detectors
    std::uint32_t variants = kNone;             ///< into variants_; kNone: all its errors flip the same observables
    pm::UserEdge *in_graph = nullptr;
    const char *why_fixed = nullptr; ///< why a shot replaces no probability of its errors; null: it may
  };
  /// Components by error, with what takes them out of the product of their edge: 1 / (1 - 2p).
  struct factor {
    double out;
    std::uint32_t edge;
  };
  struct factor_list {
    std::vector<std::uint32_t> first; ///< of each error, and one more
    std::vector<factor> factors;
  };
  struct variant_list {
    std::vector<std::vector<std::size_t>> observables; ///< ascending
    least_edge now;
  };
  /// What an edge implies for one other.
  struct implied {
    std::uint32_t first_cause, end_cause; ///< into causes_: its parts of errors that have both edges
  };
  struct old_implied {
    pm::ImpliedWeight *place;
    pm::weight_int weight;
  };

  void list_parts(const detector_error_model &model);
  void list_factors(const std::vector<bool> &is_idle);
  [[nodiscard]] const char *why_fixed(std::uint64_t error) const noexcept;
  void list_implied();
  void make_graph(const detector_error_model &model);
  void find_weights();

  /// The probabilities that an odd and an even number of errors happens. Near to 1, 1 - odd would lose its digits.
  struct parity {
    double odd = 0, even = 1;

    void add(double p) noexcept {
      const double q = 1 - p, was_odd = odd;
      odd = odd * q + even * p;
      even = even * q + was_odd * p;
    }
    [[nodiscard]] double weight() const noexcept;
  };
  /// Of a part, in this shot.
  [[nodiscard]] double probability_of(const part &one) const noexcept;
  [[nodiscard]] parity parity_of(std::uint32_t number) const noexcept;
  [[nodiscard]] least_edge least_of(const edge_record &e, std::uint32_t number) const;
  [[nodiscard]] pm::signed_weight_int integer(double weight) const noexcept;
  /// Whether the product decides the integer that the sum would be.
  [[nodiscard]] bool quick_weight(double product, pm::signed_weight_int &weight) const noexcept;
  void replace_parts(const factor_list &of_errors);
  void change(std::uint32_t number);
  void write(std::uint32_t number, pm::signed_weight_int weight);
  void change_sign(std::uint32_t number, pm::signed_weight_int weight);
  void turn(edge_record &e, bool is_negative);
  void set_observables(edge_record &e, const std::vector<std::size_t> &observables);
  template <class Graph>
  void set_implied(Graph &graph, const edge_record &e, std::size_t rule, pm::weight_int weight);
  void sync();

  const bool correlated_;
  const double smallest_;
  replaced_errors check_;
  matching_graph graph_;
  pm::Mwpm *matcher_ = nullptr;
  pm::weight_int unused_ = 0;
  double unit_ = 0;         ///< half of the integers per weight
  bool has_search_ = false; ///< the matcher has a search graph
  const quick_log log_;

  std::vector<part> parts_;               ///< by edge, in it by error
  std::vector<std::uint32_t> first_part_; ///< for each edge, and one more
  std::vector<edge_record> edges_;        ///< in the order of their first errors; then those without detectors
  std::uint32_t num_graph_edges_ = 0;
  // What each shot needs of edges_: apart from it, and from each other, because a shot touches many of them.
  std::vector<edge_product> products_;
  std::vector<edge_weight> weights_;
  std::vector<std::uint8_t> is_changed_; ///< in this shot
  std::vector<variant_list> variants_;
  std::vector<std::uint32_t> first_of_error_, part_of_error_; ///< the parts of each error
  std::vector<std::uint8_t> is_fixed_;                        ///< of each error: why_fixed() has a reason
  factor_list busy_, idle_;                                   ///< the parts of detectors that are not idle, and those

  std::vector<std::uint32_t> first_implied_; ///< for each edge, and one more
  std::vector<implied> implied_;
  std::vector<std::uint32_t> causes_;
  std::vector<std::uint32_t> first_at_node_, edge_at_; ///< for each neighbour of each node its edge

  bool is_turned_ = false;
  double constant_weight_ = 0;         ///< of the model
  shot_probabilities list_;            ///< of this shot
  std::vector<std::uint32_t> changed_; ///< the first num_changed_ are edges; room for all, and one more
  std::size_t num_changed_ = 0;
  std::vector<old_implied> old_implied_;
};

} // namespace cudaq::qec::realtime
