// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/propagation/tanner_graph.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

using index_list = std::vector<std::uint64_t>;
/// Equal errors of the model.
struct equal_errors {
  double probability = 0; ///< that an odd number of them happens
  double highest = 0;     ///< of a single one: of number `likeliest`
  std::uint64_t likeliest = 0;
  std::uint32_t group = 0;
};
/// By detectors and observables.
using mechanisms = std::map<std::pair<index_list, index_list>, equal_errors>;

/// Adds an ascending list mod 2: an index that is in both lists disappears.
void add_mod_2(index_list &sum, std::span<const std::uint64_t> list) {
  index_list result;
  std::ranges::set_symmetric_difference(sum, list, std::back_inserter(result));
  sum = std::move(result);
}

/// Also notes the probability of each error, and to which equal errors it belongs.
mechanisms merge(const detector_error_model &model, error_groups &groups, std::vector<equal_errors *> &of_error) {
  mechanisms merged;
  groups.probability.resize(static_cast<std::size_t>(model.num_errors));
  of_error.resize(groups.probability.size());
  const auto &parts = model.components;
  for (std::size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    index_list detectors;
    index_list observables;
    for (; end < parts.size() && parts[end].mechanism == parts[begin].mechanism; ++end) {
      add_mod_2(detectors, model.detectors_of(parts[end]));
      add_mod_2(observables, model.observables_of(parts[end]));
    }
    equal_errors &same = merged[{std::move(detectors), std::move(observables)}];
    const double p = parts[begin].probability;
    same.probability = merged_probability(same.probability, p);
    groups.probability[parts[begin].mechanism] = p;
    of_error[parts[begin].mechanism] = &same;
    if (p > same.highest) {
      same.highest = p;
      same.likeliest = parts[begin].mechanism;
    }
  }
  return merged;
}

/// Gives numbers to the detectors that some error flips.
void number_checks(tanner_graph &graph, const mechanisms &merged) {
  graph.check_of.assign(static_cast<std::size_t>(graph.num_detectors), kNoCheck);
  for (const auto &[key, same] : merged)
    for (const std::uint64_t d : key.first)
      graph.check_of[d] = 0;
  for (std::uint32_t &check : graph.check_of)
    if (check != kNoCheck)
      check = graph.num_checks++;
}

} // namespace

expected<tanner_graph> tanner_graph::from_dem(const detector_error_model &model) {
  tanner_graph made;
  std::vector<equal_errors *> of_error;
  mechanisms merged = merge(model, made.groups, of_error);
  made.num_detectors = model.num_detectors;
  made.num_observables = model.num_observables;
  number_checks(made, merged);
  if (made.num_checks > kMaxChecks)
    return reason("errors of the model flip " + std::to_string(made.num_checks) +
                  " detectors; this decoder takes at most " + std::to_string(kMaxChecks) +
                  "; a model of any size decodes with pymatching if each of its errors, or "
                  "each of their components, flips one or two");
  index_list certain_detectors;
  made.num_errors = model.num_errors;
  for (auto &[key, same] : merged) {
    const auto &[detectors, observables] = key;
    same.group = static_cast<std::uint32_t>(made.groups.column.size());
    if (detectors.empty())
      made.groups.loose.emplace(same.group, observables);
    const double p = same.probability, probability = std::min(p, 1 - p);
    const bool is_column = !detectors.empty() && probability > 0;
    made.groups.column.push_back(is_column ? made.num_columns() : kNoColumn);
    if (p > 0.5) {
      add_mod_2(certain_detectors, detectors);
      add_mod_2(made.certain_observables, observables);
      made.certain_errors.emplace_back(same.likeliest, is_column ? made.num_columns() : kNoColumn);
      made.certain_weight -= probability > 0 ? log_odds(probability) : 0;
    }
    if (!is_column)
      continue;
    made.error_of.push_back(same.likeliest);
    made.probability.push_back(probability);
    for (const std::uint64_t d : detectors)
      made.checks.push_back(made.check_of[d]);
    made.first_check.push_back(made.checks.size());
    made.observables.insert(made.observables.end(), observables.begin(), observables.end());
    made.first_observable.push_back(made.observables.size());
  }
  for (const std::uint64_t d : certain_detectors)
    made.certain_checks.push_back(made.check_of[d]);
  for (const equal_errors *const same : of_error)
    made.groups.of_error.push_back(same != nullptr ? same->group : kNoColumn);
  return made;
}

std::size_t tanner_graph::list_errors(std::span<const std::uint32_t> columns,
                                      std::span<std::uint64_t> errors) const noexcept {
  std::size_t count = 0;
  const auto add = [&](std::uint64_t error) {
    if (count < errors.size())
      errors[count] = error;
    ++count;
  };
  const auto is_certain = [this](std::uint32_t column) {
    return std::ranges::find(certain_errors, column, &std::pair<std::uint64_t, std::uint32_t>::second) !=
           certain_errors.end();
  };
  for (const auto &[error, column] : certain_errors) // the column means the absence of its error
    if (column == kNoColumn || std::ranges::find(columns, column) == columns.end())
      add(error);
  for (const std::uint32_t column : columns)
    if (!is_certain(column))
      add(error_of[column]);
  if (count <= errors.size())
    std::ranges::sort(errors.first(count));
  return count;
}

expected<tanner_graph> tanner_graph::from_text(std::string_view dem_text) {
  return from_model(decoder_model(dem_text));
}

expected<tanner_graph> tanner_graph::from_model(const decoder_model &model) {
  const auto errors = model.errors();
  if (errors.failed())
    return errors.reason();
  return from_dem(**errors);
}

} // namespace cudaq::qec::realtime
