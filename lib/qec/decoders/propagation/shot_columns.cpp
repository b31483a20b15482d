// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/propagation/shot_columns.h"

#include <algorithm>
#include <exception>

namespace cudaq::qec::realtime {

shot_columns::shot_columns(tanner_graph &graph, double smallest)
    : graph_(graph), smallest_(smallest), check_(graph.num_errors) {
  const std::vector<std::uint32_t> &of_error = graph.groups.of_error;
  const std::size_t groups = graph.groups.column.size();
  first_member_.resize(groups + 1);
  for (const std::uint32_t group : of_error)
    if (group != kNoColumn)
      ++first_member_[group + 1];
  for (std::size_t group = 0; group < groups; ++group)
    first_member_[group + 1] += first_member_[group];
  members_.resize(first_member_.back());
  std::vector<std::uint32_t> next(first_member_.begin(), first_member_.end() - 1);
  probability_.resize(groups);
  for (std::uint32_t error = 0; error < of_error.size(); ++error)
    if (const std::uint32_t group = of_error[error]; group != kNoColumn) {
      members_[next[group]++] = error;
      probability_[group] = merged_probability(probability_[group], graph.groups.probability[error]);
    }
  is_changed_.resize(groups);
}

const char *shot_columns::why_not(std::uint64_t error) const noexcept {
  const std::uint32_t group = graph_.groups.of_error[error];
  if (group == kNoColumn)
    return "flips nothing, or has the probability 0 in the model: so it has no place in the graph";
  if (graph_.groups.column[group] == kNoColumn && !graph_.groups.loose.contains(group))
    return "is certain in the model (probability 1): so it has no place in the graph";
  return nullptr;
}

decode_status shot_columns::replace(shot_probabilities list) noexcept {
  changed_.clear();
  if (!check_.check(list, 1, [this](std::uint64_t error) { return why_not(error); }))
    return decode_status::bad_probability;
  std::vector<double> &probability = graph_.groups.probability;
  try {
    // Room first, so that what was changed can be changed back.
    for (auto *const room : {&old_of_group_, &old_of_error_})
      room->reserve(list.size());
    for (auto *const room : {&groups_, &changed_})
      room->reserve(list.size());
    list_.reserve(list.size());
    old_of_column_.reserve(list.size());
    for (const error_probability &one : list) {
      list_.push_back(one.error);
      old_of_error_.push_back(probability[one.error]);
      probability[one.error] = clamped_probability(one.probability, smallest_);
      const std::uint32_t group = graph_.groups.of_error[one.error];
      if (!is_changed_[group])
        groups_.push_back(group);
      is_changed_[group] = true;
    }
    for (const std::uint32_t group : groups_)
      change(group);
    return decode_status::ok;
  } catch (const std::exception &) {
    restore();
    changed_.clear();
    check_.set_fault("no memory for the probabilities of the shot");
    return decode_status::internal_error;
  }
}

/// Sets the probability of a group to that of its errors.
void shot_columns::change(std::uint32_t group) {
  double p = 0, highest = 0;
  std::uint64_t likeliest = 0;
  for (std::uint32_t k = first_member_[group]; k < first_member_[group + 1]; ++k) {
    const double of_one = graph_.groups.probability[members_[k]];
    p = merged_probability(p, of_one);
    if (of_one > highest) {
      highest = of_one;
      likeliest = members_[k];
    }
  }
  const double before = probability_[group];
  if (p > 0.5 || before > 0.5)
    count_as_present(group, likeliest, p);
  old_of_group_.push_back(before);
  probability_[group] = p;
  if (const std::uint32_t column = graph_.groups.column[group]; column != kNoColumn) {
    changed_.push_back(column);
    old_of_column_.push_back({graph_.error_of[column], graph_.probability[column]});
    graph_.error_of[column] = likeliest;
    graph_.probability[column] = std::min(p, 1 - p);
  }
}

/// A group that counts as present in the model, in the shot, or in both.
void shot_columns::count_as_present(std::uint32_t group, std::uint64_t error, double probability) {
  if (!is_certain_changed_)
    certain_ = {graph_.certain_checks, graph_.certain_observables, graph_.certain_errors, graph_.certain_weight};
  is_certain_changed_ = true;
  const std::uint32_t column = graph_.groups.column[group];
  const auto weight = [](double p) { return p < 1 ? log_odds(1 - p) : 0; };
  const double before = probability_[group];
  if (before > 0.5) {
    std::erase_if(graph_.certain_errors, [&](const auto &one) { return graph_.groups.of_error[one.first] == group; });
    graph_.certain_weight += weight(before);
  }
  if (probability > 0.5) {
    graph_.certain_errors.emplace_back(error, column);
    graph_.certain_weight -= weight(probability);
  }
  if ((before > 0.5) == (probability > 0.5))
    return;
  // A check or an observable that is listed twice is flipped twice.
  if (column != kNoColumn) {
    const auto checks = graph_.checks_of(column);
    graph_.certain_checks.insert(graph_.certain_checks.end(), checks.begin(), checks.end());
  }
  const auto flipped = column != kNoColumn ? graph_.observables_of(column)
                                           : std::span<const std::uint64_t>(graph_.groups.loose.at(group));
  graph_.certain_observables.insert(graph_.certain_observables.end(), flipped.begin(), flipped.end());
}

void shot_columns::restore() noexcept {
  for (std::size_t k = 0; k < list_.size(); ++k)
    graph_.groups.probability[list_[k]] = old_of_error_[k];
  for (std::size_t k = 0; k < old_of_group_.size(); ++k)
    probability_[groups_[k]] = old_of_group_[k];
  for (const std::uint32_t group : groups_)
    is_changed_[group] = false;
  for (std::size_t k = 0; k < old_of_column_.size(); ++k) {
    graph_.error_of[changed_[k]] = old_of_column_[k].error;
    graph_.probability[changed_[k]] = old_of_column_[k].probability;
  }
  if (is_certain_changed_) {
    graph_.certain_checks.swap(certain_.checks);
    graph_.certain_observables.swap(certain_.observables);
    graph_.certain_errors.swap(certain_.errors);
    graph_.certain_weight = certain_.weight;
  }
  is_certain_changed_ = false;
  list_.clear();
  groups_.clear();
  old_of_group_.clear();
  old_of_error_.clear();
  old_of_column_.clear();
}

} // namespace cudaq::qec::realtime
