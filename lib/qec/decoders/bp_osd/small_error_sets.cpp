// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/bp_osd/small_error_sets.h"

#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/splitmix.h"

#include <algorithm>
#include <bit>

namespace cudaq::qec::realtime {
namespace {

/// The keys of two lists, combined by exclusive or, are the key of their sum mod 2.
std::uint64_t key_of(std::span<const std::uint32_t> checks) noexcept {
  std::uint64_t key = 0;
  for (const std::uint32_t check : checks)
    key ^= splitmix((std::uint64_t{check} + 1) * kSplitmixStep);
  return key;
}

} // namespace

small_error_sets::small_error_sets(const tanner_graph &graph) : graph_(graph) {
  first_at_check_.assign(graph.num_checks + 1, 0);
  for (const std::uint32_t check : graph.checks)
    ++first_at_check_[check + 1];
  for (std::uint32_t check = 0; check < graph.num_checks; ++check)
    first_at_check_[check + 1] += first_at_check_[check];
  at_check_.resize(graph.checks.size());
  std::vector<std::uint32_t> next(first_at_check_.begin(), first_at_check_.end() - 1);
  table_.assign(std::bit_ceil(4 * std::size_t{graph.num_columns()} + 1), kNone);
  for (std::uint32_t column = 0; column < graph.num_columns(); ++column) {
    const auto checks = graph.checks_of(column);
    for (const std::uint32_t check : checks)
      at_check_[next[check]++] = column;
    largest_ = std::max(largest_, checks.size());
    weight_.push_back(log_odds(graph.probability[column]));
    key_.push_back(key_of(checks));
    std::uint32_t &likeliest = table_[place_of(key_[column])];
    if (likeliest == kNone || weight_[column] < weight_[likeliest])
      likeliest = column;
  }
  sum_.resize(2 * largest_);
}

void small_error_sets::reload(std::uint32_t column) noexcept {
  weight_[column] = log_odds(graph_.probability[column]);
  // Columns with the same checks are neighbours.
  const auto is_same = [&](std::uint32_t other) {
    return std::ranges::equal(graph_.checks_of(other), graph_.checks_of(column));
  };
  std::uint32_t first = column, end = column + 1;
  while (first > 0 && is_same(first - 1))
    --first;
  while (end < graph_.num_columns() && is_same(end))
    ++end;
  const auto likeliest = std::min_element(weight_.begin() + first, weight_.begin() + end) - weight_.begin();
  table_[place_of(key_[column])] = static_cast<std::uint32_t>(likeliest);
}

std::size_t small_error_sets::place_of(std::uint64_t key) const noexcept {
  std::size_t place = key & (table_.size() - 1);
  while (table_[place] != kNone && key_[table_[place]] != key)
    place = (place + 1) & (table_.size() - 1);
  return place;
}

double small_error_sets::weight_of(std::span<const std::uint32_t> columns) const noexcept {
  double sum = 0;
  for (const std::uint32_t column : columns)
    sum += weight_[column];
  return sum;
}

// Different lists may have the same key, if very rarely.
bool small_error_sets::has_syndrome(std::size_t count, std::span<const std::uint32_t> syndrome) noexcept {
  if (count == 1)
    return std::ranges::equal(graph_.checks_of(columns_[0]), syndrome);
  const auto end =
      std::ranges::set_symmetric_difference(graph_.checks_of(columns_[0]), graph_.checks_of(columns_[1]), sum_.begin());
  return std::ranges::equal(sum_.begin(), end.out, syndrome.begin(), syndrome.end());
}

std::span<const std::uint32_t> small_error_sets::lighter_than(double limit,
                                                              std::span<const std::uint32_t> syndrome) noexcept {
  if (syndrome.size() > 2 * largest_)
    return {};
  const std::uint64_t key = key_of(syndrome);
  std::size_t count = 0;
  if (const std::uint32_t one = find(key); one != kNone && weight_[one] < limit) {
    columns_[0] = one;
    limit = weight_[one];
    count = 1;
  }
  for (std::uint32_t k = first_at_check_[syndrome[0]]; k < first_at_check_[syndrome[0] + 1]; ++k) {
    const std::uint32_t first = at_check_[k];
    if (!(weight_[first] < limit))
      continue;
    const std::uint32_t second = find(key ^ key_[first]);
    if (second == kNone || !(weight_[first] + weight_[second] < limit))
      continue;
    columns_[0] = first;
    columns_[1] = second;
    limit = weight_[first] + weight_[second];
    count = 2;
  }
  return count != 0 && has_syndrome(count, syndrome) ? std::span(columns_).first(count)
                                                     : std::span<const std::uint32_t>{};
}

} // namespace cudaq::qec::realtime
