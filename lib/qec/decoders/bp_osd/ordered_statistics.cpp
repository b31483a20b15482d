// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/bp_osd/ordered_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace cudaq::qec::realtime {
namespace {

// Most shots need only some hundred columns, so only the first are sorted; each further part is larger.
constexpr std::size_t kFirstSorted = 256;
constexpr double kWeightUnit = 1 << 20;
constexpr std::size_t kColumnsOfStep = 32; ///< between two looks at the deadline

} // namespace

ordered_statistics::ordered_statistics(const tanner_graph &graph, std::uint32_t rank, std::uint32_t order)
    : graph_(graph), sweep_order_(order), rank_(rank), elimination_(graph.num_checks) {
  const std::uint32_t columns = graph.num_columns();
  weight_.resize(columns);
  for (std::uint32_t column = 0; column < columns; ++column)
    reload(column);
  row_weight_.resize(graph.num_checks);
  order_.resize(columns);
  outside_.reserve(columns);
  first_reduced_.resize((order + std::size_t{1}) * words());
  added_reduced_.resize(words());
  solution_.reserve(std::size_t{rank_} + 2);
}

void ordered_statistics::reload(std::uint32_t column) noexcept {
  const double p = graph_.probability[column];
  weight_[column] = static_cast<weight>(std::round((std::log1p(-p) - std::log(p)) * kWeightUnit));
}

std::size_t ordered_statistics::sort_next(std::size_t begin, std::span<const double> score) noexcept {
  const auto likelier = [score](std::uint32_t a, std::uint32_t b) {
    return score[a] < score[b] || (score[a] == score[b] && a < b);
  };
  const std::size_t end = std::min(order_.size(), begin == 0 ? kFirstSorted : 2 * begin);
  const auto at = [this](std::size_t k) { return order_.begin() + static_cast<std::ptrdiff_t>(k); };
  if (end < order_.size())
    std::nth_element(at(begin), at(end), order_.end(), likelier);
  std::sort(at(begin), at(end), likelier);
  return end;
}

decode_status ordered_statistics::keep_columns(std::span<const double> score, stop_check &stop) noexcept {
  std::iota(order_.begin(), order_.end(), 0U);
  outside_.clear();
  std::size_t sorted = 0;
  for (std::size_t k = 0; k < order_.size(); ++k) {
    if (sweep_order_ == 0 && elimination_.solved())
      break;
    if (k % kColumnsOfStep == 0)
      if (const decode_status status = stop(); status != decode_status::ok)
        return status;
    if (k == sorted)
      sorted = sort_next(sorted, score);
    if (elimination_.rank() == rank_ || !elimination_.add(order_[k], graph_.checks_of(order_[k])))
      outside_.push_back(order_[k]);
  }
  return decode_status::ok;
}

ordered_statistics::weight ordered_statistics::change(std::span<const std::uint64_t> reduced, weight own,
                                                      weight limit) const noexcept {
  const auto right_side = elimination_.reduced_right_side();
  weight total = own;
  for (std::size_t k = 0; k < words(); ++k) // columns that leave the set
    for (std::uint64_t word = reduced[k] & right_side[k]; word != 0; word &= word - 1)
      total -= row_weight_[64 * k + static_cast<std::size_t>(std::countr_zero(word))];
  for (std::size_t k = 0; k < words() && total < limit; ++k) // columns that enter it; no weight is negative
    for (std::uint64_t word = reduced[k] & ~right_side[k]; word != 0; word &= word - 1)
      total += row_weight_[64 * k + static_cast<std::size_t>(std::countr_zero(word))];
  return total;
}

decode_status ordered_statistics::sweep(stop_check &stop) noexcept {
  for (std::uint32_t row = 0; row < graph_.num_checks; ++row)
    row_weight_[row] = weight_[elimination_.column_at(row)]; // unused for a row without a pivot
  const std::size_t first = std::min<std::size_t>(sweep_order_, outside_.size());
  const auto reduced_of = [this](std::size_t k) { return std::span(first_reduced_).subspan(k * words(), words()); };
  weight best = 0;
  const auto consider = [&](std::span<const std::uint64_t> reduced, std::uint32_t a, std::uint32_t b) {
    const weight own = weight_[a] + (b == kNone ? 0 : weight_[b]);
    const weight changed = change(reduced, own, best);
    if (changed >= best)
      return;
    best = changed;
    added_[0] = a;
    added_[1] = b;
    std::copy(reduced.begin(), reduced.end(), added_reduced_.begin());
  };
  for (std::size_t k = 0; k < outside_.size(); ++k) {
    if (k % kColumnsOfStep == 0)
      if (const decode_status status = stop(); status != decode_status::ok)
        return status;
    const auto reduced = reduced_of(std::min<std::size_t>(k, sweep_order_));
    elimination_.reduce(graph_.checks_of(outside_[k]), reduced);
    consider(reduced, outside_[k], kNone);
  }
  const auto sum = reduced_of(sweep_order_);
  for (std::size_t a = 0; a < first; ++a) {
    if (const decode_status status = stop(); status != decode_status::ok)
      return status;
    for (std::size_t b = a + 1; b < first; ++b) {
      for (std::size_t k = 0; k < words(); ++k)
        sum[k] = reduced_of(a)[k] ^ reduced_of(b)[k];
      consider(sum, outside_[a], outside_[b]);
    }
  }
  return decode_status::ok;
}

decode_status ordered_statistics::solve(std::span<const std::uint64_t> syndrome, std::span<const double> score,
                                        stop_check &stop) noexcept {
  elimination_.start(syndrome);
  decode_status status = keep_columns(score, stop);
  added_[0] = added_[1] = kNone;
  std::fill(added_reduced_.begin(), added_reduced_.end(), std::uint64_t{0});
  if (status == decode_status::ok && sweep_order_ > 0)
    status = sweep(stop);
  solution_.clear();
  if (!has_solution())
    return status;
  for (std::size_t k = 0; k < words(); ++k)
    for (std::uint64_t word = elimination_.reduced_right_side()[k] ^ added_reduced_[k]; word != 0; word &= word - 1)
      solution_.push_back(elimination_.column_at(static_cast<std::uint32_t>(64 * k) +
                                                 static_cast<std::uint32_t>(std::countr_zero(word))));
  for (const std::uint32_t column : added_)
    if (column != kNone)
      solution_.push_back(column);
  return status;
}

} // namespace cudaq::qec::realtime
