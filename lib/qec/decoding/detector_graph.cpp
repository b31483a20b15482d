// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/detector_graph.h"
#include "lib/qec/decoding/split_errors/component_errors.h"

#include "lib/qec/decoding/split_errors/decompose_errors.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

constexpr std::uint64_t kBoundaryEnd = UINT64_MAX;
using observable_list = std::vector<std::uint32_t>;
/// Key: the two ends of an edge; the second may be the boundary. Value: the observables that errors there flip, with
/// their probability.
using edge_variants = std::map<std::pair<std::uint64_t, std::uint64_t>, std::map<observable_list, double>>;

/// Gives numbers to lists: equal lists have equal numbers, and 0 is the empty list.
class list_numbers {
public:
  std::uint32_t of(const observable_list &list) {
    const auto [at, is_new] = numbers_.emplace(list, static_cast<std::uint32_t>(numbers_.size()));
    if (is_new)
      in_order_.push_back(list);
    return at->second;
  }
  const std::vector<observable_list> &in_order() const { return in_order_; }

private:
  std::map<observable_list, std::uint32_t> numbers_;
  std::vector<observable_list> in_order_;
};

} // namespace

expected<detector_graph> detector_graph::from_dem(const detector_error_model &given) {
  auto placed = component_errors(given);
  if (placed.failed())
    return placed.reason();
  const detector_error_model model = decompose_errors(std::move(*placed));
  edge_variants variants;
  for (const dem_component &c : model.components) {
    if (c.detectors == 0)
      continue;
    if (c.detectors > 2)
      return reason("line " + std::to_string(c.line) + ": a component with " + std::to_string(c.detectors) +
                    " detectors is not an edge, nor a sum of edges of the model, one in each part; make the model with "
                    "decompose_errors=True; the decoder bp-osd takes such models");
    const auto detectors = model.detectors_of(c);
    const auto observables = model.observables_of(c);
    double &p = variants[{detectors.front(), c.detectors == 2 ? detectors.back() : kBoundaryEnd}]
                        [observable_list(observables.begin(), observables.end())];
    p = merged_probability(p, c.probability);
  }

  detector_graph made;
  made.num_detectors_ = static_cast<std::uint32_t>(model.num_detectors);
  made.num_observables_ = static_cast<std::uint32_t>(model.num_observables);
  made.boundary_.assign(made.num_detectors_, kNoBoundary);
  list_numbers numbers;
  numbers.of({});
  std::vector<std::vector<graph_edge>> edges_of(made.num_detectors_);
  for (const auto &[ends, found] : variants) {
    const auto likeliest =
        std::max_element(found.begin(), found.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
    const std::uint32_t list = numbers.of(likeliest->first);
    if (ends.second == kBoundaryEnd) {
      made.boundary_[ends.first] = list;
      continue;
    }
    edges_of[ends.first].push_back({static_cast<std::uint32_t>(ends.second), list});
    edges_of[ends.second].push_back({static_cast<std::uint32_t>(ends.first), list});
  }
  made.edge_first_.push_back(0);
  for (const auto &edges : edges_of) {
    made.edges_.insert(made.edges_.end(), edges.begin(), edges.end());
    made.edge_first_.push_back(static_cast<std::uint32_t>(made.edges_.size()));
  }
  made.list_first_.push_back(0);
  for (const observable_list &list : numbers.in_order()) {
    made.lists_.insert(made.lists_.end(), list.begin(), list.end());
    made.list_first_.push_back(static_cast<std::uint32_t>(made.lists_.size()));
  }
  return made;
}

expected<detector_graph> detector_graph::from_text(std::string_view dem_text) {
  const expected<detector_error_model> model = parse_dem(dem_text);
  return model.ok() ? from_dem(*model) : model.reason();
}

detector_graph_view detector_graph::view() const noexcept {
  return {num_detectors_,   num_observables_,   edge_first_.data(), edges_.data(),
          boundary_.data(), list_first_.data(), lists_.data()};
}

} // namespace cudaq::qec::realtime
