// SPDX-License-Identifier: Apache-2.0
// A matcher in memory of its own. In wide_matcher.cpp, which has wide masks, it sees PyMatching in the namespace
// pm_wide, which a macro calls pm.
#pragma once

#include "pymatching/sparse_blossom/driver/user_graph.h"

#include <memory>
#include <utility>

namespace cudaq::qec::realtime {

/// As UserGraph::to_mwpm. That moves its graph several times, and PyMatching's move constructor copies the implied
/// weights that were not converted, although it is noexcept: without memory the process ends. Nothing reads them after
/// to_matching_graph, so they are freed before the first move. Throws std::bad_alloc.
inline std::unique_ptr<pm::Mwpm> new_matcher(pm::UserGraph &from, bool with_search_graph) {
  const bool searches = with_search_graph || from.get_num_observables() > sizeof(pm::obs_int) * 8;
  pm::MatchingGraph graph = from.to_matching_graph(pm::NUM_DISTINCT_WEIGHTS);
  graph.edges_to_implied_weights_unconverted.clear();
  graph.loaded_from_dem_without_correlations = from.loaded_from_dem_without_correlations;
  pm::GraphFlooder flooder(std::move(graph));
  flooder.sync_negative_weight_observables_and_detection_events();
  if (!searches)
    return std::make_unique<pm::Mwpm>(std::move(flooder));
  return std::make_unique<pm::Mwpm>(std::move(flooder),
                                    pm::SearchFlooder(from.to_search_graph(pm::NUM_DISTINCT_WEIGHTS)));
}

} // namespace cudaq::qec::realtime
