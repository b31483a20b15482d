// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/dem.h"

#include "pymatching/sparse_blossom/driver/user_graph.h"

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace cudaq::qec::realtime {

/// A model as a graph for PyMatching: one edge for each set of one or two detectors. Only built with PyMatching.
struct matching_graph {
  pm::UserGraph graph;
  /// Observables that the least set of errors flips if there are no events and no edge is used. PyMatching's graph
  /// cannot hold them; make_matcher adds them to the answer.
  std::set<std::size_t> always_flipped;
  /// Weight of that set: the weight of an answer is this and the weights of its edges.
  double constant_weight = 0;
};

/// Errors with equal detectors: observables -> weight.
using edge_variants = std::map<std::vector<std::size_t>, double>;

/// The edge that stands for variants, as the example of make_matching_graph explains.
struct least_edge {
  std::vector<std::size_t> observables;
  double weight = 0;
  std::set<std::size_t> always_flipped; ///< what the edge adds to those of the graph
  double constant_weight = 0;           ///< the same
};
[[nodiscard]] least_edge least_edge_of(const edge_variants &errors);

/// Adds a list mod 2.
void flip(std::set<std::size_t> &flipped, const std::vector<std::size_t> &observables);

/// Whether a model has an exact matching graph. A reason has the first line that prevents it.
[[nodiscard]] expected<> check_matching_graph(const detector_error_model &model);

/// The graph whose matching of least weight is a set of errors of least weight, for every syndrome. Errors with equal
/// detectors and equal observables merge first, as independent ones. If no errors have equal detectors and different
/// observables, and none without detectors is likelier than not, the graph is PyMatching's own, bit by bit. The model
/// must not be refused by check_matching_graph.
///
/// Errors with equal detectors are variants of one edge. For the syndrome only the parity of their number counts.
/// Example: weights -2 (flips L0), 1 (flips L1), 3 (flips L2). The least odd set is {L0}, weight -2. The least even set
/// adds the variant nearest to weight 0: {L0, L1}, weight -1. In general the least set holds the variants of negative
/// weight, and the least set of the other parity differs from it in the variant whose weight is nearest to 0. So the
/// edge gets this variant's observables, L1, and the weight odd less even, -2 - (-1) = -1. An edge that is not used
/// stands for the even set: its observables, L0 and L1, are in always_flipped.
[[nodiscard]] matching_graph make_matching_graph(const detector_error_model &model);

/// PyMatching's own graph for correlated matching: its edges know the other components of their errors.
/// Refused, besides what check_matching_graph refuses: probabilities above 1/2, since PyMatching's rule knows no
/// negative weights; errors with equal detectors and different observables, since it keeps those of the first; and
/// errors with very many components, or detectors with very many errors.
[[nodiscard]] expected<> check_correlated_graph(const detector_error_model &model);
[[nodiscard]] matching_graph make_correlated_graph(const detector_error_model &model);

/// A matcher of this graph. Its answers include always_flipped. `with_search_graph`: it can decode to edges.
[[nodiscard]] std::unique_ptr<pm::Mwpm> make_matcher(matching_graph &from, bool with_search_graph);

} // namespace cudaq::qec::realtime
