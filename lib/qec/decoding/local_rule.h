// SPDX-License-Identifier: Apache-2.0
// The local predecoder's rules, as host and device code. docs/predecoding.md has their cost and their proof.
//
// `isolated` keeps the matcher's guarantee. Distances are sums of weights log((1 - p) / p) along the graph. The limit
// is a weight that no set of (d - 1) / 2 errors has (predecoding/isolation.h).
//
//   Pair       Two fired detectors a, b at the ends of an edge, each the only fired neighbour of the other, are matched
//              if every other way to pair them up weighs more than the limit: other(a) + other(b),
//              other(a) + boundary(b), boundary(a) + other(b). other(a): distance to the nearest fired detector
//              except b; boundary(a): distance to the boundary.
//   Boundary   A fired detector is matched with the boundary if no other detector has fired within the limit.
//
// A pair that the matcher would match otherwise has paths that weigh more than the limit: then the shot was beyond the
// guarantee anyway.
//
// `guarded` and `plain` look at steps, not at weights, and make more logical errors:
//
//   Pair       A fired detector whose only fired neighbour has it as its only fired neighbour is matched with it.
//   Boundary   A fired detector that has an edge to the boundary, and no other fired detector within two steps (plain:
//              one step), is matched with the boundary.
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

/// A detector near another one.
struct near_detector {
  std::uint32_t detector;
  std::uint32_t distance;
};

/// What `isolated` knows about a detector. Distances are in the units of the graph (predecoding/isolation.h).
struct isolation_of {
  std::uint32_t limit;       ///< other ways must weigh more
  std::uint32_t reach;       ///< the list of near detectors is complete below this distance
  std::uint32_t to_boundary; ///< distance to the boundary; kFar without one
  std::uint32_t alone;       ///< 1: may be matched with the boundary, if no near detector has fired
};
inline constexpr std::uint32_t kFar = 1U << 30;

/// How `isolated` sees an edge.
enum class edge_step : std::uint8_t {
  ignored = 0, ///< so unlikely that its ends are no neighbours
  step = 1,    ///< its ends are neighbours; it is not matched, because another way between them is cheaper
  matched = 2  ///< its ends may be matched
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
  // Of the rule `isolated`; null: the rule matches nothing.
  const edge_step *steps = nullptr;          ///< per entry of edges
  const isolation_of *isolation = nullptr;   ///< per detector
  const std::uint32_t *near_first = nullptr; ///< num_detectors + 1: the near detectors of v begin here
  const near_detector *near = nullptr;       ///< nearest first, so that the first one that has fired decides
};

inline constexpr std::uint32_t kNoBoundary = UINT32_MAX;

/// When fired detectors are matched.
enum class local_rule : std::uint32_t {
  guarded = 0, ///< by steps; makes more logical errors than matching alone
  plain = 1,   ///< the same, nearer to the boundary; removes more events, and more of them wrongly
  isolated = 2 ///< by weights; right wherever the matcher is sure to be right
};

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
  /// The value of one lane.
  CUDAQ_QEC_HOST_DEVICE static std::uint32_t of(std::uint32_t mine, std::uint32_t) { return mine; }
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

/// The edge to the only fired neighbour: `one` and its position; else `none` or `many`. `steps`: those of the graph, to
/// leave out the ignored edges; null: all edges count.
struct only_neighbour {
  enum kind { none, one, many } how = none;
  std::uint32_t edge = 0;
};
/// kNoDetector: none.
inline constexpr std::uint32_t kNoDetector = UINT32_MAX;
template <class Lanes>
CUDAQ_QEC_HOST_DEVICE only_neighbour only_fired_neighbour(const detector_graph_view &graph, const std::uint64_t *fired,
                                                          std::uint32_t detector, const edge_step *steps,
                                                          const Lanes &together) {
  only_neighbour found;
  std::uint32_t first = 0, end = 0;
  if (detector != kNoDetector) {
    first = graph.edge_first[detector];
    end = graph.edge_first[detector + 1];
  }
  while (together.any_group(first < end)) {
    std::uint32_t neighbour[Lanes::kAtOnce] = {};
    edge_step step[Lanes::kAtOnce]; // loaded before they are used: on a device a load takes longer than the rest
    for (std::uint32_t k = 0; k < Lanes::kAtOnce; ++k) {
      const std::uint32_t e = first + k * together.lanes() + together.lane();
      step[k] = edge_step::ignored;
      if (e < end) {
        neighbour[k] = graph.edges[e].neighbour;
        step[k] = steps == nullptr ? edge_step::step : steps[e];
      }
    }
    for (std::uint32_t k = 0; k < Lanes::kAtOnce; ++k, first += together.lanes()) {
      const std::uint32_t hits = together.which(step[k] != edge_step::ignored && is_fired(fired, neighbour[k]));
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

/// The near detectors of a detector: their list, and how far it reaches.
struct near_list {
  std::uint32_t first, end, reach;
};
CUDAQ_QEC_HOST_DEVICE inline near_list near_of(const detector_graph_view &graph, std::uint32_t detector) {
  return {graph.near_first[detector], graph.near_first[detector + 1], graph.isolation[detector].reach};
}

/// Distance to the nearest fired detector of a list, except `but`; at most the reach.
template <class Lanes>
CUDAQ_QEC_HOST_DEVICE std::uint32_t nearest_other(const detector_graph_view &graph, const std::uint64_t *fired,
                                                  const near_list &list, std::uint32_t but, const Lanes &together) {
  for (std::uint32_t first = list.first; first < list.end; first += together.lanes()) {
    const std::uint32_t i = first + together.lane();
    const near_detector mine = i < list.end ? graph.near[i] : near_detector{but, 0};
    if (const std::uint32_t hits = together.which(mine.detector != but && is_fired(fired, mine.detector)); hits != 0)
      return together.of(mine.distance, lowest_lane(hits));
  }
  return list.reach;
}

/// Every other way to pair up the two ends of an edge weighs more than the limit. others, theirs: nearest_other of the
/// one end, and of the other.
CUDAQ_QEC_HOST_DEVICE inline bool is_isolated_pair(const isolation_of &here, const isolation_of &there,
                                                   std::uint32_t others, std::uint32_t theirs) {
  const std::uint32_t limit = here.limit > there.limit ? here.limit : there.limit; // the same seen from both ends
  return others + there.to_boundary > limit && others + theirs > limit && theirs + here.to_boundary > limit;
}

CUDAQ_QEC_HOST_DEVICE inline local_decision decide_isolated(const detector_graph_view &graph,
                                                            const std::uint64_t *fired, std::uint32_t detector) {
  if (graph.isolation == nullptr)
    return {};
  constexpr single_lane alone;
  const only_neighbour mine = only_fired_neighbour(graph, fired, detector, graph.steps, alone);
  const isolation_of &here = graph.isolation[detector];
  if (mine.how == only_neighbour::none && here.alone != 0 &&
      nearest_other(graph, fired, near_of(graph, detector), detector, alone) == here.reach)
    return {true, true, graph.boundary[detector]};
  if (mine.how != only_neighbour::one || graph.steps[mine.edge] != edge_step::matched)
    return {};
  const graph_edge edge = graph.edges[mine.edge];
  if (only_fired_neighbour(graph, fired, edge.neighbour, graph.steps, alone).how != only_neighbour::one)
    return {};
  const isolation_of &there = graph.isolation[edge.neighbour];
  const std::uint32_t others = nearest_other(graph, fired, near_of(graph, detector), edge.neighbour, alone);
  if (!is_isolated_pair(here, there, others, there.reach)) // theirs is not more
    return {};
  if (!is_isolated_pair(here, there, others,
                        nearest_other(graph, fired, near_of(graph, edge.neighbour), detector, alone)))
    return {};
  return {true, detector < edge.neighbour, edge.observables};
}

/// The decision of the rules that look at steps. edge: to the only fired neighbour, if there is one. mutual: this
/// detector is that neighbour's only one.
CUDAQ_QEC_HOST_DEVICE inline local_decision decide_by_steps(const detector_graph_view &graph,
                                                            const std::uint64_t *fired, std::uint32_t detector,
                                                            local_rule rule, only_neighbour::kind how,
                                                            const graph_edge &edge, bool mutual) {
  if (how == only_neighbour::none) {
    const std::uint32_t list = graph.boundary[detector];
    if (list == kNoBoundary || (rule == local_rule::guarded && !is_alone(graph, fired, detector)))
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
                                                           std::uint32_t detector, local_rule rule) {
  if (rule == local_rule::isolated)
    return detail::decide_isolated(graph, fired, detector);
  constexpr single_lane alone;
  const detail::only_neighbour mine = detail::only_fired_neighbour(graph, fired, detector, nullptr, alone);
  if (mine.how != detail::only_neighbour::one)
    return detail::decide_by_steps(graph, fired, detector, rule, mine.how, {}, false);
  const graph_edge edge = graph.edges[mine.edge];
  // This detector is a fired neighbour of its neighbour, so `one` means this detector.
  const bool mutual =
      detail::only_fired_neighbour(graph, fired, edge.neighbour, nullptr, alone).how == detail::only_neighbour::one;
  return detail::decide_by_steps(graph, fired, detector, rule, mine.how, edge, mutual);
}

} // namespace cudaq::qec::realtime
