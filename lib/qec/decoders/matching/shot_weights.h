// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/matching/matching_graph.h"
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
/// The integers of all shots have one scale: the largest one stands for the smallest probability. Probabilities of the
/// model that are outside smallest to 1 - smallest count as the nearer of the two, too.
class shot_weights {
public:
  /// `model`: one that make_matching_graph or make_correlated_graph takes.
  shot_weights(const detector_error_model &model, bool correlated, double smallest);
  shot_weights(const shot_weights &) = delete;
  shot_weights &operator=(const shot_weights &) = delete;

  /// For make_matcher.
  [[nodiscard]] matching_graph &graph() noexcept { return graph_; }
  /// From now on the weights are those of this matcher, which was made of graph(). Throws.
  void attach(pm::Mwpm &matcher);

  /// Sets the weights of a shot; false: fault() has the reason, and nothing was changed. Throws std::bad_alloc: neither
  /// this object nor the matcher can be used any more.
  [[nodiscard]] bool replace(shot_probabilities list);
  void restore();
  [[nodiscard]] const char *fault() const noexcept { return check_.fault(); }

  /// Of correlated matching, after the first pass: sets what its edges imply in this shot for the others. `edges`:
  /// pairs of nodes, as PyMatching gives them.
  void set_implied_weights(std::span<const std::int64_t> edges);

private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// A component of an error, as a part of its edge.
  struct part {
    double probability;
    std::uint32_t edge;
    std::uint32_t variant; ///< of the edge
  };
  struct edge_record {
    std::array<pm::weight_int *, 4> weights{};  ///< both directions, in both graphs; without one: unused_
    std::uint32_t node1 = kNone, node2 = kNone; ///< kNone: the boundary; both: errors without detectors
    std::uint32_t variants = kNone;             ///< into variants_; kNone: all its errors flip the same observables
    bool is_changed = false;                    ///< in this shot
    pm::signed_weight_int weight = 0;           ///< now
    pm::UserEdge *in_graph = nullptr;
    const char *why_fixed = nullptr; ///< why a shot replaces no probability of its errors; null: it may
  };
  struct variant_list {
    std::vector<std::vector<std::size_t>> observables; ///< ascending
    least_edge now;
  };
  /// What an edge implies for one other.
  struct implied {
    std::uint32_t first_cause, end_cause; ///< into causes_: its parts of errors that have both edges
  };
  struct old_part {
    std::uint32_t part;
    double probability;
  };
  struct old_edge {
    std::uint32_t edge;
    pm::signed_weight_int weight;
  };
  struct old_implied {
    pm::ImpliedWeight *place;
    pm::weight_int weight;
  };

  void list_parts(const detector_error_model &model);
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
  [[nodiscard]] parity parity_of(std::uint32_t number) const noexcept;
  [[nodiscard]] least_edge least_of(const edge_record &e, std::uint32_t number) const;
  [[nodiscard]] pm::signed_weight_int integer(double weight) const noexcept;
  void change(std::uint32_t number);
  void write(edge_record &e, pm::signed_weight_int weight);
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
  double unit_ = 0; ///< half of the integers per weight

  std::vector<part> parts_;               ///< by edge, in it by error
  std::vector<std::uint32_t> first_part_; ///< for each edge, and one more
  std::vector<edge_record> edges_;        ///< in the order of their first errors; then those without detectors
  std::uint32_t num_graph_edges_ = 0;
  std::vector<variant_list> variants_;
  std::vector<std::uint32_t> first_of_error_, part_of_error_; ///< the parts of each error

  std::vector<std::uint32_t> first_implied_; ///< for each edge, and one more
  std::vector<implied> implied_;
  std::vector<std::uint32_t> causes_;
  std::vector<std::uint32_t> first_at_node_, edge_at_; ///< for each neighbour of each node its edge

  bool is_turned_ = false;
  double constant_weight_ = 0; ///< of the model
  std::vector<std::uint32_t> changed_;
  std::vector<old_part> old_parts_;
  std::vector<old_edge> old_edges_;
  std::vector<old_implied> old_implied_;
};

} // namespace cudaq::qec::realtime
