// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/bp_osd/product_sum.h"

#include <algorithm>

namespace cudaq::qec::realtime {
namespace {

// 1 - 2^-50, and limits that leave room for one more factor.
constexpr double kLargestTanh = 1 - 0x1p-50;
constexpr double kLeastOdds = 1e-250;
constexpr double kLargestOdds = 1e250;

} // namespace

product_sum::product_sum(const tanner_graph &graph, std::uint32_t max_iterations, bool sums)
    : max_iterations_(max_iterations), sums_(sums) {
  const std::uint32_t columns = graph.num_columns();
  first_of_check_.assign(graph.num_checks + 1, 0);
  for (const std::uint32_t check : graph.checks)
    ++first_of_check_[check + 1];
  std::uint32_t largest = 0;
  for (std::uint32_t check = 0; check < graph.num_checks; ++check) {
    largest = std::max(largest, first_of_check_[check + 1]);
    first_of_check_[check + 1] += first_of_check_[check];
  }
  check_at_ = graph.checks;
  std::vector<std::uint32_t> next(first_of_check_.begin(), first_of_check_.end() - 1);
  for (const std::uint32_t check : graph.checks)
    place_.push_back(next[check]++);
  for (const std::size_t first : graph.first_check)
    first_of_column_.push_back(static_cast<std::uint32_t>(first));
  odds_.resize(columns);
  for (std::uint32_t column = 0; column < columns; ++column)
    reload(column, graph.probability[column]);
  messages_.resize(place_.size());
  prefix_.resize(largest);
  score_.resize(columns);
  decision_.reserve(columns);
  remaining_.resize(graph.num_checks);
}

void product_sum::reload(std::uint32_t column, double probability) noexcept {
  odds_[column] = std::max(probability / (1 - probability), kLeastOdds);
}

decode_status product_sum::run(std::span<const std::uint8_t> syndrome, stop_check &stop) noexcept {
  for (std::size_t column = 0; column < odds_.size(); ++column)
    for (std::uint32_t k = first_of_column_[column]; k < first_of_column_[column + 1]; ++k)
      messages_[place_[k]] = (1 - odds_[column]) / (1 + odds_[column]);
  std::ranges::fill(score_, 0.0);
  for (iterations_ = 1;; ++iterations_) {
    if (const decode_status status = stop(); status != decode_status::ok)
      return status;
    sweep_checks(syndrome);
    sweep_columns();
    if (decision_fits(syndrome))
      return decode_status::ok;
    if (iterations_ == max_iterations_)
      return decode_status::not_converged;
  }
}

void product_sum::sweep_checks(std::span<const std::uint8_t> syndrome) noexcept {
  for (std::size_t check = 0; check < syndrome.size(); ++check) {
    double *const messages = messages_.data() + first_of_check_[check];
    const std::size_t count = first_of_check_[check + 1] - first_of_check_[check];
    double product = syndrome[check] != 0 ? -1 : 1;
    for (std::size_t k = 0; k < count; ++k) {
      prefix_[k] = product;
      product *= messages[k];
    }
    product = 1;
    for (std::size_t k = count; k-- > 0;) {
      const double others = std::clamp(prefix_[k] * product, -kLargestTanh, kLargestTanh);
      product *= messages[k];
      messages[k] = (1 - others) / (1 + others);
    }
  }
}

void product_sum::sweep_columns() noexcept {
  decision_.clear();
  for (std::uint32_t column = 0; column < score_.size(); ++column) {
    const std::uint32_t begin = first_of_column_[column];
    const std::uint32_t end = first_of_column_[column + 1];
    double odds = odds_[column];
    for (std::uint32_t k = begin; k < end; ++k)
      odds = std::clamp(odds * messages_[place_[k]], kLeastOdds, kLargestOdds);
    score_[column] = sums_ ? score_[column] - odds / (1 + odds) : -odds;
    if (odds >= 1)
      decision_.push_back(column);
    for (std::uint32_t k = begin; k < end; ++k) {
      double &message = messages_[place_[k]];
      const double without = odds / message;
      message = (1 - without) / (1 + without);
    }
  }
}

bool product_sum::decision_fits(std::span<const std::uint8_t> syndrome) noexcept {
  std::copy(syndrome.begin(), syndrome.end(), remaining_.begin());
  for (const std::uint32_t column : decision_)
    for (std::uint32_t k = first_of_column_[column]; k < first_of_column_[column + 1]; ++k)
      remaining_[check_at_[k]] ^= 1;
  return std::find(remaining_.begin(), remaining_.end(), 1) == remaining_.end();
}

} // namespace cudaq::qec::realtime
