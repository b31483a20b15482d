// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/model_sampler.h"

#include "lib/qec/decoding/event_bits.h"

#include <algorithm>
#include <cmath>

namespace cudaq::qec::realtime {
namespace {

constexpr double kLargestOdds = 1e12; ///< of an error that always happens
constexpr double kMaxCollisions = 10;

} // namespace

model_sampler::model_sampler(const detector_error_model &model)
    : shot_bytes_((model.num_detectors + 7) / 8), observable_bytes_((model.num_observables + 7) / 8) {
  for (std::size_t c = 0; c < model.components.size();) {
    const std::uint32_t number = model.components[c].mechanism;
    mechanism m{model.components[c].probability, static_cast<std::uint32_t>(targets_.size()), 0, 0};
    std::size_t end = c;
    while (end < model.components.size() && model.components[end].mechanism == number)
      ++end;
    for (std::size_t i = c; i < end; ++i)
      for (const std::uint64_t d : model.detectors_of(model.components[i]))
        targets_.push_back(static_cast<std::uint32_t>(d));
    m.detectors = static_cast<std::uint32_t>(targets_.size());
    for (std::size_t i = c; i < end; ++i)
      for (const std::uint64_t o : model.observables_of(model.components[i]))
        targets_.push_back(static_cast<std::uint32_t>(o));
    m.last = static_cast<std::uint32_t>(targets_.size());
    mechanisms_.push_back(m);
    c = end;
  }
  std::ranges::stable_sort(mechanisms_, std::ranges::greater{}, &mechanism::probability);
  double odds = 0, squares = 0;
  for (std::size_t i = 0; i < mechanisms_.size(); ++i) {
    const double p = mechanisms_[i].probability;
    const double mine = p < 1 ? std::min(p / (1 - p), kLargestOdds) : kLargestOdds;
    expected_ += p;
    odds += mine;
    squares += mine * mine;
    odds_up_to_.push_back(odds);
    const std::size_t group = groups_.empty() ? 0 : groups_.back();
    if (i + 1 == mechanisms_.size() || mechanisms_[i + 1].probability < mechanisms_[group].probability / 2)
      groups_.push_back(static_cast<std::uint32_t>(i + 1));
  }
  collisions_ = odds > 0 ? squares / (odds * odds) / 2 : 1;
}

void model_sampler::flip(const mechanism &m, std::span<std::uint8_t> shot, std::span<std::uint8_t> observables) const {
  flip_bits(std::span(targets_).subspan(m.first, m.detectors - m.first), shot);
  flip_bits(std::span(targets_).subspan(m.detectors, m.last - m.detectors), observables);
}

void model_sampler::sample(std::mt19937_64 &random, std::span<std::uint8_t> shot,
                           std::span<std::uint8_t> observables) const {
  std::uint32_t at = 0;
  for (const std::uint32_t end : groups_) {
    // In a group, candidates come with the largest probability p of the group: the gap to the next one is geometric.
    // A candidate happens with its own probability / p.
    const double largest = mechanisms_[at].probability;
    const double scale = largest < 1 ? 1 / std::log1p(-largest) : 0;
    for (;; ++at) {
      const double gap = std::floor(std::log(uniform(random)) * scale);
      if (gap >= static_cast<double>(end - at))
        break;
      at += static_cast<std::uint32_t>(gap);
      if (uniform(random) * largest <= mechanisms_[at].probability)
        flip(mechanisms_[at], shot, observables);
      if (at + 1 == end)
        break;
    }
    at = end;
  }
}

bool model_sampler::can_sample(std::uint32_t errors) const noexcept {
  const double n = errors;
  return errors <= mechanisms_.size() && (errors < 2 || n * n * collisions_ < kMaxCollisions) && !mechanisms_.empty();
}

void model_sampler::sample_exactly(std::uint32_t errors, std::mt19937_64 &random, std::span<std::uint8_t> shot,
                                   std::span<std::uint8_t> observables) const {
  std::vector<std::size_t> drawn(errors);
  bool again = true;
  while (again) {
    for (std::size_t &which : drawn)
      which = std::min<std::size_t>(
          static_cast<std::size_t>(std::ranges::lower_bound(odds_up_to_, uniform(random) * odds_up_to_.back()) -
                                   odds_up_to_.begin()),
          mechanisms_.size() - 1);
    // Sets with an error twice are drawn again as a whole; to replace one error would favour the likely ones.
    std::ranges::sort(drawn);
    again = std::ranges::adjacent_find(drawn) != drawn.end();
  }
  for (const std::size_t which : drawn)
    flip(mechanisms_[which], shot, observables);
}

} // namespace cudaq::qec::realtime
