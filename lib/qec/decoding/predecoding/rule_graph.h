// SPDX-License-Identifier: Apache-2.0
// The graph that the rule `isolated` sees, and the search for near detectors in it. Internal to this folder.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime {

struct step {
  std::uint32_t to, weight, list;
  bool unlikely; ///< does not count for limits and parts, but the matcher may use it: it counts for distances
};

/// The graph that the rule sees, with weights in units. Node n is the boundary.
struct rule_graph {
  std::uint32_t n = 0;
  std::uint32_t heavy = 0;              ///< weight of a heavy edge
  std::vector<std::vector<step>> steps; ///< of the detectors and of the boundary
  std::vector<std::uint32_t> part;      ///< connected part of each detector, by likely edges, without the boundary
  std::vector<bool> unweighable;        ///< per part: has a weight that is not positive
};

/// Detectors by distance from one of them: Dijkstra's algorithm with a bucket for each distance.
class near_search {
public:
  explicit near_search(const rule_graph &graph) : graph_(graph), distance_(graph.n, UINT32_MAX) {}

  /// Fills `found` with (detector, distance), nearest first, and returns the distance below which it is complete.
  std::uint32_t run(std::uint32_t from, std::uint32_t radius, std::uint32_t max_count,
                    std::vector<std::pair<std::uint32_t, std::uint32_t>> &found) {
    found.clear();
    if (buckets_.size() <= radius)
      buckets_.resize(radius + 1);
    touched_ = {from};
    distance_[from] = 0;
    buckets_[0] = {from};
    std::uint32_t complete = radius + 1;
    for (std::uint32_t d = 0; d <= radius; ++d) {
      const std::size_t before = found.size();
      for (std::size_t i = 0; i < buckets_[d].size(); ++i) // weights are positive: it does not grow
        visit(buckets_[d][i], d, radius, found);
      buckets_[d].clear();
      if (found.size() > max_count) {
        found.resize(before);
        complete = d;
        break;
      }
    }
    for (const std::uint32_t v : touched_)
      distance_[v] = UINT32_MAX;
    for (auto &bucket : buckets_)
      bucket.clear();
    return complete;
  }

private:
  void visit(std::uint32_t at, std::uint32_t d, std::uint32_t radius,
             std::vector<std::pair<std::uint32_t, std::uint32_t>> &found) {
    if (distance_[at] != d)
      return;
    if (d != 0)
      found.emplace_back(at, d);
    for (const step &s : graph_.steps[at]) {
      if (s.to == graph_.n || d + s.weight > radius || d + s.weight >= distance_[s.to])
        continue;
      distance_[s.to] = d + s.weight;
      touched_.push_back(s.to);
      buckets_[d + s.weight].push_back(s.to);
    }
  }

  const rule_graph &graph_;
  std::vector<std::uint32_t> distance_, touched_;
  std::vector<std::vector<std::uint32_t>> buckets_;
};

} // namespace cudaq::qec::realtime
