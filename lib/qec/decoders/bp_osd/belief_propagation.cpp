// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/bp_osd/belief_propagation.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cudaq::qec::realtime {
namespace {

// Messages of min-sum grow with each iteration while it does not converge. Above this limit a float would lose the
// differences between columns.
constexpr float kLargestMagnitude = 65536;
constexpr std::uint32_t kSignBit = 0x80000000;
// Product-sum: 1 - 2^-50, and limits that leave room for one more factor.
constexpr double kLargestTanh = 1 - 0x1p-50;
constexpr double kLeastOdds = 1e-250;
constexpr double kLargestOdds = 1e250;

} // namespace

belief_propagation::belief_propagation(const tanner_graph &graph, const bp_osd_options &options) : options_(options) {
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

  const bool min_sum = options.method == bp_method::min_sum;
  if (min_sum)
    first_messages_.resize(place_.size());
  else
    product_messages_.resize(place_.size());
  for (std::uint32_t column = 0; column < columns; ++column) {
    const double p = graph.probability[column];
    odds_.push_back(std::max(p / (1 - p), kLeastOdds));
    log_odds_.push_back(std::min(static_cast<float>(-std::log(odds_.back())), kLargestMagnitude));
    for (std::uint32_t k = first_of_column_[column]; min_sum && k < first_of_column_[column + 1]; ++k)
      first_messages_[place_[k]] = log_odds_[column];
  }
  messages_ = first_messages_;
  prefix_.resize(largest);
  score_.resize(columns);
  decision_.reserve(columns);
  remaining_.resize(graph.num_checks);
}

decode_status belief_propagation::run(std::span<const std::uint8_t> syndrome, stop_check &stop) noexcept {
  const bool min_sum = options_.method == bp_method::min_sum;
  if (min_sum)
    std::copy(first_messages_.begin(), first_messages_.end(), messages_.begin());
  else
    for (std::size_t column = 0; column < odds_.size(); ++column)
      for (std::uint32_t k = first_of_column_[column]; k < first_of_column_[column + 1]; ++k)
        product_messages_[place_[k]] = (1 - odds_[column]) / (1 + odds_[column]);
  float distance_from_1 = 1;
  for (iterations_ = 1;; ++iterations_) {
    if (const decode_status status = stop(); status != decode_status::ok)
      return status;
    distance_from_1 /= 2;
    if (min_sum) {
      min_sum_checks(syndrome, options_.scaling == 0 ? 1 - distance_from_1 : static_cast<float>(options_.scaling));
      min_sum_columns();
    } else {
      product_checks(syndrome);
      product_columns();
    }
    if (decision_fits(syndrome))
      return decode_status::ok;
    if (iterations_ == options_.max_iterations)
      return decode_status::not_converged;
  }
}

void belief_propagation::min_sum_checks(std::span<const std::uint8_t> syndrome, float scale) noexcept {
  for (std::size_t check = 0; check < syndrome.size(); ++check) {
    float *const begin = messages_.data() + first_of_check_[check];
    float *const end = messages_.data() + first_of_check_[check + 1];
    float least = kLargestMagnitude;
    float second = kLargestMagnitude;
    // Signs are handled as bits: a branch on them would be predicted wrong half of the time.
    std::uint32_t signs = syndrome[check] != 0 ? kSignBit : 0;
    for (const float *m = begin; m != end; ++m) {
      const auto word = std::bit_cast<std::uint32_t>(*m);
      const auto magnitude = std::bit_cast<float>(word & ~kSignBit);
      signs ^= word;
      second = std::min(second, std::max(least, magnitude));
      least = std::min(least, magnitude);
    }
    const auto scaled_least = std::bit_cast<std::uint32_t>(scale * least);
    const auto scaled_second = std::bit_cast<std::uint32_t>(scale * second);
    for (float *m = begin; m != end; ++m) {
      const auto word = std::bit_cast<std::uint32_t>(*m);
      // If two messages are the least, `second` equals `least`.
      const std::uint32_t others = std::bit_cast<float>(word & ~kSignBit) == least ? scaled_second : scaled_least;
      *m = std::bit_cast<float>(others | ((word ^ signs) & kSignBit));
    }
  }
}

void belief_propagation::min_sum_columns() noexcept {
  decision_.clear();
  for (std::uint32_t column = 0; column < score_.size(); ++column) {
    const std::uint32_t begin = first_of_column_[column];
    const std::uint32_t end = first_of_column_[column + 1];
    float total = log_odds_[column];
    for (std::uint32_t k = begin; k < end; ++k)
      total += messages_[place_[k]];
    score_[column] = total;
    if (total <= 0)
      decision_.push_back(column);
    for (std::uint32_t k = begin; k < end; ++k)
      messages_[place_[k]] = total - messages_[place_[k]];
  }
}

void belief_propagation::product_checks(std::span<const std::uint8_t> syndrome) noexcept {
  for (std::size_t check = 0; check < syndrome.size(); ++check) {
    double *const messages = product_messages_.data() + first_of_check_[check];
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

void belief_propagation::product_columns() noexcept {
  decision_.clear();
  for (std::uint32_t column = 0; column < score_.size(); ++column) {
    const std::uint32_t begin = first_of_column_[column];
    const std::uint32_t end = first_of_column_[column + 1];
    double odds = odds_[column];
    for (std::uint32_t k = begin; k < end; ++k)
      odds = std::clamp(odds * product_messages_[place_[k]], kLeastOdds, kLargestOdds);
    score_[column] = 1 / odds;
    if (odds >= 1)
      decision_.push_back(column);
    for (std::uint32_t k = begin; k < end; ++k) {
      double &message = product_messages_[place_[k]];
      const double without = odds / message;
      message = (1 - without) / (1 + without);
    }
  }
}

bool belief_propagation::decision_fits(std::span<const std::uint8_t> syndrome) noexcept {
  std::copy(syndrome.begin(), syndrome.end(), remaining_.begin());
  for (const std::uint32_t column : decision_)
    for (std::uint32_t k = first_of_column_[column]; k < first_of_column_[column + 1]; ++k)
      remaining_[check_at_[k]] ^= 1;
  return std::find(remaining_.begin(), remaining_.end(), 1) == remaining_.end();
}

} // namespace cudaq::qec::realtime
