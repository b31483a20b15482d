// SPDX-License-Identifier: Apache-2.0
// The local predecoder's rule, as host and device code. It removes isolated pairs of events, and isolated events at the
// boundary. It is a heuristic: it looks at steps, not at weights, and makes more logical errors than matching alone
// (docs/predecoding.md has the ratios).
//
//   Pair       A fired detector whose only fired neighbour has it as its only fired neighbour is matched with it.
//   Boundary   A fired detector that has an edge to the boundary, and no other fired detector within two steps, is
//              matched with the boundary.
//
// Matched detectors are not events of the residual. The observables of the matched edge are toggled. Each decision
// depends on the fired detectors only, so all detectors can be decided in parallel, in any order. The two ends of a
// pair agree because both look at the same two neighbourhoods.
//
// Local rules of this kind: N. Delfosse, "Hierarchical decoding to reduce hardware requirements for quantum computing"
// (2020); S. C. Smith, B. J. Brown, S. D. Bartlett, "A local pre-decoder to reduce the bandwidth and latency of quantum
// error correction" (2022); G. S. Ravi et al., "Better than worst-case decoding for quantum error correction" (Clique,
// 2023).
#pragma once

#include "cudaq/qec/decoding/decode_status.h"

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

/// The decision about one fired detector.
struct local_decision {
  bool matched = false;
  bool toggles = false; ///< of the two ends of an edge, this one toggles the observables
  std::uint32_t observables = 0;
};

/// The threads that look at one detector together: on a CPU one, on a device some of a warp. All of them call the
/// functions below, with equal arguments, and get equal results. They look at lanes() * kAtOnce neighbours at a time.
/// Several such groups of one warp must call the same functions in step.
struct single_lane {
  static constexpr std::uint32_t kAtOnce = 1;
  CUDAQ_QEC_HOST_DEVICE static constexpr std::uint32_t lane() { return 0; }
  CUDAQ_QEC_HOST_DEVICE static constexpr std::uint32_t lanes() { return 1; }
  /// The lanes that say true, as bits.
  CUDAQ_QEC_HOST_DEVICE static std::uint32_t which(bool mine) { return mine ? 1 : 0; }
  /// One of the groups in step says true.
  CUDAQ_QEC_HOST_DEVICE static bool any_group(bool mine) { return mine; }
};

namespace detail {

CUDAQ_QEC_HOST_DEVICE inline std::uint32_t lowest_lane(std::uint32_t lanes) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__ffs(static_cast<int>(lanes))) - 1;
#else
  return static_cast<std::uint32_t>(__builtin_ctz(lanes));
#endif
}

CUDAQ_QEC_HOST_DEVICE inline bool is_fired(const std::uint64_t *fired, std::uint32_t detector) {
  return (fired[detector / 64] >> (detector % 64) & 1) != 0;
}

/// The edge to the only fired neighbour: `one` and its position; else `none` or `many`.
struct only_neighbour {
  enum kind { none, one, many } how = none;
  std::uint32_t edge = 0;
};
/// kNoDetector: none.
inline constexpr std::uint32_t kNoDetector = UINT32_MAX;
template <class Lanes>
CUDAQ_QEC_HOST_DEVICE only_neighbour only_fired_neighbour(const detector_graph_view &graph, const std::uint64_t *fired,
                                                          std::uint32_t detector, const Lanes &together) {
  only_neighbour found;
  std::uint32_t first = 0, end = 0;
  if (detector != kNoDetector) {
    first = graph.edge_first[detector];
    end = graph.edge_first[detector + 1];
  }
  while (together.any_group(first < end)) {
    std::uint32_t neighbour[Lanes::kAtOnce]; // loaded before it is used: on a device a load takes longer than the rest
    for (std::uint32_t k = 0; k < Lanes::kAtOnce; ++k) {
      const std::uint32_t e = first + k * together.lanes() + together.lane();
      neighbour[k] = e < end ? graph.edges[e].neighbour : kNoDetector;
    }
    for (std::uint32_t k = 0; k < Lanes::kAtOnce; ++k, first += together.lanes()) {
      const std::uint32_t hits = together.which(neighbour[k] != kNoDetector && is_fired(fired, neighbour[k]));
      if (hits == 0)
        continue;
      const bool more = found.how != only_neighbour::none || (hits & (hits - 1)) != 0;
      found = {more ? only_neighbour::many : only_neighbour::one, first + lowest_lane(hits)};
      if (more)
        end = 0; // enough is known
    }
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

/// The decision, once the neighbours are known. edge: to the only fired neighbour, if there is one. mutual: this
/// detector is that neighbour's only one.
CUDAQ_QEC_HOST_DEVICE inline local_decision decide(const detector_graph_view &graph, const std::uint64_t *fired,
                                                   std::uint32_t detector, only_neighbour::kind how,
                                                   const graph_edge &edge, bool mutual) {
  if (how == only_neighbour::none) {
    const std::uint32_t list = graph.boundary[detector];
    if (list == kNoBoundary || !is_alone(graph, fired, detector))
      return {};
    return {true, true, list};
  }
  if (!mutual)
    return {};
  return {true, detector < edge.neighbour, edge.observables};
}

} // namespace detail

/// Decides about `detector`, which has fired. fired: detector k in bit k % 64 of word k / 64.
CUDAQ_QEC_HOST_DEVICE inline local_decision decide_locally(const detector_graph_view &graph, const std::uint64_t *fired,
                                                           std::uint32_t detector) {
  constexpr single_lane alone;
  const detail::only_neighbour mine = detail::only_fired_neighbour(graph, fired, detector, alone);
  if (mine.how != detail::only_neighbour::one)
    return detail::decide(graph, fired, detector, mine.how, {}, false);
  const graph_edge edge = graph.edges[mine.edge];
  // This detector is a fired neighbour of its neighbour, so `one` means this detector.
  const bool mutual =
      detail::only_fired_neighbour(graph, fired, edge.neighbour, alone).how == detail::only_neighbour::one;
  return detail::decide(graph, fired, detector, mine.how, edge, mutual);
}

} // namespace cudaq::qec::realtime
