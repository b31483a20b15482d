// SPDX-License-Identifier: Apache-2.0
// The local predecoder's rule, as host and device code.
//
//   Pair       A fired detector whose only fired neighbour has it as its only fired neighbour is matched with it.
//   Boundary   A fired detector that has an edge to the boundary, and no other fired detector within two steps (plain:
//              one step), is matched with the boundary.
//   Matched    detectors are not events of the residual. The observables of the matched edge are toggled.
//
//   fired    a - b   c - d - e   f=|       neighbours by -, boundary by =|
//   decided  a with b; c, d, e stay (d has two fired neighbours); f with the boundary
//
// Each decision depends on the fired detectors only, so all detectors can be decided in parallel, in any order. Two
// detectors agree about their pair because both look at the same two neighbourhoods.
//
// The matcher that follows gets fewer events. Local rules of this kind: N. Delfosse, "Hierarchical decoding to reduce
// hardware requirements for quantum computing" (2020); S. C. Smith, B. J. Brown, S. D. Bartlett, "A local pre-decoder
// to reduce the bandwidth and latency of quantum error correction" (2022); G. S. Ravi et al., "Better than worst-case
// decoding for quantum error correction" (Clique, 2023). A match that is made too early costs accuracy:
// docs/pipeline.md has the measurements.
#pragma once

#include "lib/qec/decoding/decode_status.h"

#include <cstdint>

namespace cudaq::qec::realtime {

/// One end of an edge of the detector graph.
struct graph_edge {
  std::uint32_t neighbour;
  std::uint32_t observables; ///< index of a list of observables
};

/// The detector graph as plain arrays, in memory of the side (host or device) that uses it. Two detectors have at
/// most one edge.
struct detector_graph_view {
  std::uint32_t num_detectors = 0;
  std::uint32_t num_observables = 0;
  const std::uint32_t *edge_first = nullptr; ///< num_detectors + 1: the edges of detector v begin here
  const graph_edge *edges = nullptr;
  const std::uint32_t *boundary = nullptr;   ///< per detector: list of its boundary edge, or kNoBoundary
  const std::uint32_t *list_first = nullptr; ///< number of lists + 1; list 0 is empty
  const std::uint32_t *lists = nullptr;      ///< the observables of all lists
};

inline constexpr std::uint32_t kNoBoundary = UINT32_MAX;

/// When a fired detector may be matched with the boundary: the distance to the next fired detector.
enum class local_rule : std::uint32_t {
  guarded = 0, ///< more than two steps: a chain of two errors at the boundary stays whole
  plain = 1    ///< more than one step: more events are removed, and more of them wrongly
};

/// The decision about one fired detector.
struct local_decision {
  bool matched = false;
  bool toggles = false; ///< of the two ends of an edge, this one toggles the observables
  std::uint32_t observables = 0;
};

namespace detail {

CUDAQ_QEC_HOST_DEVICE inline bool is_fired(const std::uint64_t *fired, std::uint32_t detector) {
  return (fired[detector / 64] >> (detector % 64) & 1) != 0;
}

/// The edge to the only fired neighbour: `one` and its position; else `none` or `many`.
struct only_neighbour {
  enum kind { none, one, many } how = none;
  std::uint32_t edge = 0;
};
CUDAQ_QEC_HOST_DEVICE inline only_neighbour only_fired_neighbour(const detector_graph_view &graph,
                                                                 const std::uint64_t *fired, std::uint32_t detector) {
  only_neighbour found;
  for (std::uint32_t e = graph.edge_first[detector]; e < graph.edge_first[detector + 1]; ++e) {
    if (!is_fired(fired, graph.edges[e].neighbour))
      continue;
    if (found.how == only_neighbour::one)
      return {only_neighbour::many, 0};
    found = {only_neighbour::one, e};
  }
  return found;
}

/// No other detector within two steps has fired. For the boundary one step is not enough: it would cut a chain of two
/// errors at the boundary in the middle.
CUDAQ_QEC_HOST_DEVICE inline bool is_alone(const detector_graph_view &graph, const std::uint64_t *fired,
                                           std::uint32_t detector) {
  for (std::uint32_t e = graph.edge_first[detector]; e < graph.edge_first[detector + 1]; ++e) {
    const std::uint32_t near = graph.edges[e].neighbour;
    if (is_fired(fired, near))
      return false;
    for (std::uint32_t f = graph.edge_first[near]; f < graph.edge_first[near + 1]; ++f)
      if (graph.edges[f].neighbour != detector && is_fired(fired, graph.edges[f].neighbour))
        return false;
  }
  return true;
}

} // namespace detail

/// Decides about `detector`, which has fired. fired: detector k in bit k % 64 of word k / 64.
CUDAQ_QEC_HOST_DEVICE inline local_decision decide_locally(const detector_graph_view &graph, const std::uint64_t *fired,
                                                           std::uint32_t detector, local_rule rule) {
  const detail::only_neighbour mine = detail::only_fired_neighbour(graph, fired, detector);
  if (mine.how == detail::only_neighbour::many)
    return {};
  if (mine.how == detail::only_neighbour::none) {
    const std::uint32_t list = graph.boundary[detector];
    if (list == kNoBoundary || (rule == local_rule::guarded && !detail::is_alone(graph, fired, detector)))
      return {};
    return {true, true, list};
  }
  // This detector is a fired neighbour of its neighbour, so `one` means this detector.
  const graph_edge edge = graph.edges[mine.edge];
  if (detail::only_fired_neighbour(graph, fired, edge.neighbour).how != detail::only_neighbour::one)
    return {};
  return {true, detector < edge.neighbour, edge.observables};
}

} // namespace cudaq::qec::realtime
