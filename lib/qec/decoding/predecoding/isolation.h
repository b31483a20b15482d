// SPDX-License-Identifier: Apache-2.0
// The facts of a model that the rule `isolated` (local_rule.h) needs: computed once on the host, read by the rule on
// either side.
#pragma once

#include "lib/qec/decoding/local_rule.h"

#include <cstdint>
#include <vector>

namespace cudaq::qec::realtime {

/// An edge of the detector graph with its probability.
struct weighted_edge {
  std::uint32_t a;
  std::uint32_t b; ///< kBoundaryNode for a boundary edge
  std::uint32_t list;
  double probability;
  bool ambiguous; ///< the same detectors have another likely error, with other observables
};
inline constexpr std::uint32_t kBoundaryNode = UINT32_MAX;

/// The arrays of detector_graph_view.
///
/// Unit of distances: 1/64 of a typical weight. Half of all errors are at least as likely as the typical one.
///
/// Unlikely: the least likely errors that are together fewer than 1 of 100,000 errors. They do not count for limits,
/// their ends are no neighbours, and they are not matched. But the matcher may use them, so distances count them. Not
/// matched, besides:
///   - an edge that is not the cheapest way between its ends;
///   - everything in a connected part that has an error of probability 1/2 and more (its weight is not positive);
///   - everything in a part whose lists would be useless or too long (isolation_limits), or whose limit is more than
///     256 typical weights.
/// Weights are rounded to units: between ways whose weights differ by less than a unit or two, the rule may take the
/// heavier one.
///
/// A heavy edge: of all errors, 1 of 1000 is less likely. The limit of a connected part is the larger one of
///   - half the weight of its lightest logical operator, and one heavy edge;
///   - half the number of edges of its shortest logical operator, all heavy: then (d - 1) / 2 errors never weigh more.
/// A part without a logical operator has the limit 0: no match there can be wrong. But an unlikely error may make an
/// operator of it. Let (d - 1) / 2 errors weigh at most G in all parts, and let them be two ways from a and b, of
/// length o <= G together. If a and b are matched, the matcher may take a way P over an unlikely error u for the other
/// ends, if P weighs at most o + ab. So detectors have the limit G if G + ab is at least the weight of u, and if their
/// distance to u and half its weight are at most G + ab: the sum of that for a and b is at most o + P <= 2 G + ab.
struct isolation {
  std::vector<edge_step> steps;
  std::vector<isolation_of> detectors;
  std::vector<std::uint32_t> near_first;
  std::vector<near_detector> near;
};

/// Bounds of memory and time. A list that is cut is complete below a smaller distance: fewer matches, no wrong ones.
struct isolation_limits {
  std::uint32_t near_detectors = 512;      ///< of one detector
  std::uint64_t all_near = 1U << 22;       ///< of all detectors together
  std::uint64_t logical_search = 1U << 20; ///< observables times detectors of a part; above: nothing is matched there
};

/// edge_first and edges: as in detector_graph_view. list_first and lists: its observables.
[[nodiscard]] isolation make_isolation(const std::vector<weighted_edge> &all, const detector_graph_view &graph,
                                       const isolation_limits &limits = {});

} // namespace cudaq::qec::realtime
