// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/predecoding/lightest_logical.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace cudaq::qec::realtime {

// Dijkstra's algorithm on two copies of the part: such a way leads from the start to its copy. The copies are alike, so
// the search from the start is also the one from its copy, and the two halves of the way meet in the middle: nodes that
// are farther away than half of the way are not looked at.
std::optional<std::uint64_t> lightest_logical(const rule_graph &graph, std::uint32_t part, std::uint32_t start,
                                              const std::vector<bool> &flips, bool steps, std::uint64_t known,
                                              std::vector<std::uint64_t> &distance) {
  using entry = std::pair<std::uint64_t, std::uint32_t>; // distance, 2 * node + copy
  std::priority_queue<entry, std::vector<entry>, std::greater<>> open;
  std::vector<std::uint32_t> touched{2 * start};
  distance[2 * std::size_t{start}] = 0;
  open.emplace(0, 2 * start);
  bool exists = false;
  while (!open.empty()) {
    const auto [so_far, at] = open.top();
    open.pop();
    if (2 * so_far >= known) {
      exists = true;
      break;
    }
    if (so_far > distance[at])
      continue;
    for (const step &s : graph.steps[at / 2]) {
      if (s.unlikely || (at / 2 == graph.n && graph.part[s.to] != part))
        continue;
      const std::uint32_t to = 2 * s.to + ((at & 1) ^ (flips[s.list] ? 1U : 0U));
      const std::uint64_t there = so_far + (steps ? 1 : s.weight);
      if (const std::uint64_t rest = distance[to ^ 1]; rest != UINT64_MAX) { // from there to the start's copy
        known = std::min(known, there + rest);
        exists = true;
      }
      if (there >= distance[to])
        continue;
      distance[to] = there;
      touched.push_back(to);
      open.emplace(there, to);
    }
  }
  for (const std::uint32_t node : touched)
    distance[node] = UINT64_MAX;
  return exists ? std::optional(known) : std::nullopt;
}

} // namespace cudaq::qec::realtime
