// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/bp_osd/tanner_graph.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

using index_list = std::vector<std::uint64_t>;
/// Detectors and observables -> probability.
using mechanisms = std::map<std::pair<index_list, index_list>, double>;

/// Adds an ascending list mod 2: an index that is in both lists disappears.
void add_mod_2(index_list &sum, std::span<const std::uint64_t> list) {
  index_list result;
  std::ranges::set_symmetric_difference(sum, list, std::back_inserter(result));
  sum = std::move(result);
}

mechanisms merge(const detector_error_model &model) {
  mechanisms merged;
  const auto &parts = model.components;
  for (std::size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    index_list detectors;
    index_list observables;
    for (; end < parts.size() && parts[end].mechanism == parts[begin].mechanism; ++end) {
      add_mod_2(detectors, model.detectors_of(parts[end]));
      add_mod_2(observables, model.observables_of(parts[end]));
    }
    double &p = merged[{std::move(detectors), std::move(observables)}];
    p = merged_probability(p, parts[begin].probability);
  }
  return merged;
}

/// Gives numbers to the detectors that some error flips.
void number_checks(tanner_graph &graph, const mechanisms &merged) {
  graph.check_of.assign(static_cast<std::size_t>(graph.num_detectors), kNoCheck);
  for (const auto &[key, p] : merged)
    for (const std::uint64_t d : key.first)
      graph.check_of[d] = 0;
  for (std::uint32_t &check : graph.check_of)
    if (check != kNoCheck)
      check = graph.num_checks++;
}

} // namespace

expected<tanner_graph> tanner_graph::from_dem(const detector_error_model &model) {
  const mechanisms merged = merge(model);
  tanner_graph made;
  made.num_detectors = model.num_detectors;
  made.num_observables = model.num_observables;
  number_checks(made, merged);
  if (made.num_checks > kMaxChecks)
    return reason("errors of the model flip " + std::to_string(made.num_checks) +
                  " detectors; this decoder takes at most " + std::to_string(kMaxChecks) +
                  "; a model of any size decodes with pymatching if each of its errors, or "
                  "each of their components, flips one or two");
  index_list certain_detectors;
  for (const auto &[key, p] : merged) {
    const auto &[detectors, observables] = key;
    if (p > 0.5) {
      add_mod_2(certain_detectors, detectors);
      add_mod_2(made.certain_observables, observables);
    }
    const double probability = std::min(p, 1 - p);
    if (detectors.empty() || !(probability > 0))
      continue;
    made.probability.push_back(probability);
    for (const std::uint64_t d : detectors)
      made.checks.push_back(made.check_of[d]);
    made.first_check.push_back(made.checks.size());
    made.observables.insert(made.observables.end(), observables.begin(), observables.end());
    made.first_observable.push_back(made.observables.size());
  }
  for (const std::uint64_t d : certain_detectors)
    made.certain_checks.push_back(made.check_of[d]);
  return made;
}

expected<tanner_graph> tanner_graph::from_text(std::string_view dem_text) {
  const auto model = parse_dem(dem_text);
  if (model.failed())
    return model.reason();
  return from_dem(*model);
}

} // namespace cudaq::qec::realtime
