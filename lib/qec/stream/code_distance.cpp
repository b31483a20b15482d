// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stream/code_distance.h"

#include <algorithm>
#include <vector>

namespace cudaq::qec::realtime {
namespace {

/// The edges of the model and one observable: each node stands there twice, for an even and an odd number of flips of
/// the observable on the way to it.
class double_cover {
public:
  double_cover(const detector_error_model &model, std::uint64_t observable) : neighbours_(model.num_detectors + 1) {
    for (const dem_component &c : model.components) {
      const auto detectors = model.detectors_of(c), observables = model.observables_of(c);
      if (detectors.empty() || detectors.size() > 2)
        continue;
      const std::uint64_t a = detectors.front(), b = detectors.size() == 2 ? detectors.back() : model.num_detectors;
      const bool flips = std::ranges::find(observables, observable) != observables.end();
      neighbours_[a].push_back({b, flips});
      neighbours_[b].push_back({a, flips});
      if (flips)
        starts_.push_back(a);
    }
    std::ranges::sort(starts_);
    starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());
  }

  /// The shortest closed way with an odd number of flips, if it is shorter than `limit`; else `limit`. Takes the edges
  /// that it looks at from `work`, and gives up when that is 0.
  std::uint64_t shortest(std::uint64_t limit, std::uint64_t &work) {
    seen_from_.assign(2 * neighbours_.size(), 0);
    for (std::size_t k = 0; k < starts_.size() && work != 0; ++k)
      limit = std::min(limit, from(starts_[k], k + 1, limit, work));
    return limit;
  }

private:
  struct neighbour {
    std::uint64_t node;
    bool flips;
  };

  std::uint64_t from(std::uint64_t start, std::uint64_t mark, std::uint64_t limit, std::uint64_t &work) {
    std::vector<std::uint64_t> layer{2 * start}, next;
    seen_from_[2 * start] = mark;
    for (std::uint64_t length = 1; length < limit && !layer.empty(); ++length, layer.swap(next), next.clear())
      for (const std::uint64_t at : layer)
        for (const neighbour &n : neighbours_[at / 2]) {
          if (work == 0)
            return limit;
          --work;
          const std::uint64_t to = 2 * n.node + (at % 2 ^ (n.flips ? 1 : 0));
          if (to == 2 * start + 1)
            return length;
          if (seen_from_[to] != mark) {
            seen_from_[to] = mark;
            next.push_back(to);
          }
        }
    return limit;
  }

  std::vector<std::vector<neighbour>> neighbours_;
  std::vector<std::uint64_t> starts_;
  std::vector<std::uint64_t> seen_from_; ///< for each copy of a node: the search that has seen it
};

} // namespace

std::uint64_t code_distance(const detector_error_model &model, std::uint64_t max_edges) {
  constexpr std::uint64_t kNone = UINT64_MAX, kMaxObservables = 64;
  std::uint64_t shortest = kNone, work = max_edges;
  for (std::uint64_t k = 0; k < std::min(model.num_observables, kMaxObservables) && work != 0; ++k)
    shortest = double_cover(model, k).shortest(shortest, work);
  return shortest == kNone || work == 0 ? 0 : shortest;
}

} // namespace cudaq::qec::realtime
