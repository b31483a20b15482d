// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/stream/endless_shots.h"

#include <algorithm>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint64_t kBlock = 32; ///< repetitions that are sampled at once

/// The errors whose first detector is in [begin, end), with detectors counted from `begin`. Errors without detectors
/// are left out.
qec::detector_error_model errors_of(const qec::detector_error_model &model, std::uint64_t begin, std::uint64_t end) {
  qec::detector_error_model part;
  part.num_observables = model.num_observables;
  const auto &all = model.components;
  for (std::size_t from = 0, to = 0; from < all.size(); from = to) {
    std::uint64_t first = UINT64_MAX;
    for (; to < all.size() && all[to].mechanism == all[from].mechanism; ++to)
      for (const std::uint64_t d : model.detectors_of(all[to]))
        first = std::min(first, d);
    if (first < begin || first >= end)
      continue;
    for (std::size_t k = from; k < to; ++k) {
      qec::dem_component one = all[k];
      one.first_target = part.targets.size();
      for (const std::uint64_t d : model.detectors_of(all[k])) {
        part.targets.push_back(d - begin);
        part.num_detectors = std::max(part.num_detectors, d - begin + 1);
      }
      const auto observables = model.observables_of(all[k]);
      part.targets.insert(part.targets.end(), observables.begin(), observables.end());
      part.components.push_back(one);
    }
  }
  return part;
}

/// Flips the bits of `bits` from bit `at` of `to` on.
void add_bits(const std::vector<std::uint8_t> &bits, std::uint64_t at, std::vector<std::uint8_t> &to) {
  for (std::size_t byte = 0; byte < bits.size(); ++byte) {
    const unsigned value = static_cast<unsigned>(bits[byte]) << at % 8;
    const std::size_t first = at / 8 + byte;
    to[first] = static_cast<std::uint8_t>(to[first] ^ value);
    if (value >> 8 != 0)
      to[first + 1] = static_cast<std::uint8_t>(to[first + 1] ^ value >> 8);
  }
}

} // namespace

qec::expected<endless_sampler> endless_sampler::make(const qec::repeating_model &model) {
  // No error of the head or of the tail has its first detector in the middle part.
  const std::uint64_t border = 2 + 2 * model.reach() / model.body().size();
  const auto few = model.unrolled(2 * border + kBlock);
  if (few.failed())
    return few.reason();
  return endless_sampler(model, *few, border);
}

endless_sampler::endless_sampler(const qec::repeating_model &model, const qec::detector_error_model &few,
                                 std::uint64_t border)
    : border_(border), head_(model.head_detectors()), body_(model.body_detectors()), tail_(model.tail_detectors()) {
  const std::uint64_t first = head_ + border * body_;
  parts_.emplace_back(errors_of(few, 0, first));
  parts_.emplace_back(errors_of(few, first, first + body_));
  parts_.emplace_back(errors_of(few, first, first + kBlock * body_));
  parts_.emplace_back(errors_of(few, first + kBlock * body_, UINT64_MAX));
}

endless_sampler::shot endless_sampler::sample(std::uint64_t repetitions, std::mt19937_64 &random) const {
  shot made;
  made.detectors = head_ + repetitions * body_ + tail_;
  made.events.resize(made.detectors / 8 + 2);
  made.observables.resize(parts_[0].observable_bytes());
  std::vector<std::uint8_t> bits;
  const auto add = [&](const qec::model_sampler &part, std::uint64_t at) {
    bits.assign(part.shot_bytes(), 0);
    part.sample(random, bits, made.observables);
    add_bits(bits, at, made.events);
  };
  add(parts_[0], 0);
  std::uint64_t at = border_;
  for (; at + kBlock <= repetitions - border_; at += kBlock)
    add(parts_[2], head_ + at * body_);
  for (; at < repetitions - border_; ++at)
    add(parts_[1], head_ + at * body_);
  add(parts_[3], head_ + at * body_);
  return made;
}

} // namespace cudaq::realtime::tools
