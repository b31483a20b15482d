// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/learning/model_score.h"

#include "lib/qec/decoding/splitmix.h"
#include "lib/qec/learning/parity_system.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace cudaq::qec::realtime {
namespace {

constexpr std::size_t kDraws = 400; ///< of the bootstrap
constexpr std::uint64_t kSeed = 0x6c6561726e;
constexpr double kSmallest = 1e-12; ///< probability: one event that a model excludes does not decide alone

/// Log-likelihoods of a shot, linear in the parities: a constant, and for each set what a parity of 1 adds.
struct log_likelihoods {
  double of_shot = 0;
  std::vector<double> of_odd;
};

log_likelihoods likelihoods(const detector_error_model &model, const parity_sets &sets) {
  log_likelihoods found{0, std::vector<double>(sets.size())};
  // Exponents of the parities: an error of a list of single detectors, and of pairs, in the order of the sets.
  std::vector<double> exponents(sets.end_of_pairs());
  std::vector<std::vector<std::uint32_t>> pairs_with(sets.num_detectors());
  for (std::size_t k = sets.num_detectors(); k < sets.end_of_pairs(); ++k)
    for (const std::uint32_t d : sets[k])
      pairs_with[d].push_back(static_cast<std::uint32_t>(k));
  std::vector<char> is_odd(sets.end_of_pairs());
  for (const whole_error &error : whole_errors_of(model)) {
    const double exponent = exponent_of(std::min(error.probability, 0.499999));
    for (const std::uint32_t d : error.detectors) {
      exponents[d] += exponent;
      for (const std::uint32_t pair : pairs_with[d])
        is_odd[pair] ^= 1;
    }
    for (const std::uint32_t d : error.detectors)
      for (const std::uint32_t pair : pairs_with[d]) {
        exponents[pair] += is_odd[pair] != 0 ? exponent : 0;
        is_odd[pair] = 0;
      }
  }
  const auto log_of = [](double probability) { return std::log(std::max(probability, kSmallest)); };
  const auto odd_of = [&](std::size_t k) { return probability_of(exponents[k]); };
  for (std::size_t d = 0; d < sets.num_detectors(); ++d) {
    const double none = log_of(1 - odd_of(d));
    found.of_shot += none;
    found.of_odd[d] += log_of(odd_of(d)) - none;
  }
  for (std::size_t k = sets.num_detectors(); k < sets.end_of_pairs(); ++k) {
    const std::uint32_t a = sets[k][0], b = sets[k][1];
    const double both = (odd_of(a) + odd_of(b) - odd_of(k)) / 2;
    const double l11 = log_of(both), l10 = log_of(odd_of(a) - both), l01 = log_of(odd_of(b) - both),
                 l00 = log_of(1 - odd_of(a) - odd_of(b) + both);
    // Counts by parities: n11 = (a + b - ab) / 2, n10 = (a + ab - b) / 2, n01 = (b + ab - a) / 2, n00 = n - n11 - n10
    // - n01.
    found.of_shot += l00;
    found.of_odd[a] += (l11 + l10 - l01 - l00) / 2;
    found.of_odd[b] += (l11 + l01 - l10 - l00) / 2;
    found.of_odd[k] += (l10 + l01 - l11 - l00) / 2;
  }
  return found;
}

} // namespace

model_score::model_score(std::shared_ptr<const parity_sets> sets, const detector_error_model &served,
                         const detector_error_model &candidate, std::uint64_t block)
    : counts_(sets), block_(std::max<std::uint64_t>(block, 1)) {
  const log_likelihoods now = likelihoods(served, *sets), next = likelihoods(candidate, *sets);
  of_shot_ = next.of_shot - now.of_shot;
  of_odd_.resize(sets->size());
  for (std::size_t k = 0; k < of_odd_.size(); ++k)
    of_odd_[k] = next.of_odd[k] - now.of_odd[k];
  blocks_.reserve(kMaxBlocks);
}

decode_status model_score::add(std::span<const std::uint8_t> shot) noexcept {
  const decode_status status = counts_.add(shot);
  if (status == decode_status::ok && ++in_block_ == block_)
    end_block();
  return status;
}

void model_score::end_block() noexcept {
  counts_.flush();
  double difference = of_shot_ * static_cast<double>(in_block_);
  for (std::size_t k = 0; k < of_odd_.size(); ++k)
    difference += of_odd_[k] * counts_.odd(k);
  counts_.clear();
  in_block_ = 0;
  blocks_.push_back(difference);
  if (blocks_.size() < kMaxBlocks)
    return;
  for (std::size_t k = 0; k < kMaxBlocks / 2; ++k)
    blocks_[k] = blocks_[2 * k] + blocks_[2 * k + 1];
  blocks_.resize(kMaxBlocks / 2);
  block_ *= 2;
}

score_difference model_score::difference() const {
  score_difference found;
  found.blocks = blocks_.size();
  found.shots = static_cast<double>(found.blocks * block_);
  if (found.blocks == 0)
    return found;
  const auto of_shots = [&](double sum) { return sum / found.shots; };
  double sum = 0;
  for (const double block : blocks_)
    sum += block;
  found.per_shot = of_shots(sum);
  std::uint64_t state = kSeed;
  double mean = 0, squares = 0;
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    double drawn = 0;
    for (std::size_t k = 0; k < blocks_.size(); ++k)
      drawn += blocks_[splitmix(state += kSplitmixStep) % blocks_.size()];
    const double change = of_shots(drawn) - found.per_shot;
    mean += change / kDraws;
    squares += change * change / kDraws;
  }
  found.sigma = std::sqrt(std::max(squares - mean * mean, 0.0));
  if (found.blocks >= kFewestBlocks && found.sigma > 0)
    found.better_by_sigmas = found.per_shot / found.sigma;
  return found;
}

} // namespace cudaq::qec::realtime
