// SPDX-License-Identifier: Apache-2.0
#include "tools/shots/stream_sampler.h"

#include "lib/qec/decoding/event_bits.h"
#include "tools/common/report.h"
#include "tools/shots/sampled_shots.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

qec::detector_error_model unrolled_or_throw(const qec::repeating_model &model, std::uint64_t repetitions) {
  auto whole = model.unrolled(repetitions);
  if (whole.failed())
    throw usage_error(whole.text());
  return std::move(*whole);
}

} // namespace

std::uint64_t repetitions_for(const qec::repeating_model &model, std::uint64_t rounds) {
  const std::uint64_t ends = model.head().size() + model.tail().size(), body = model.body().size();
  return rounds <= ends + body ? 1 : (rounds - ends + body - 1) / body;
}

stream_sampler::part stream_sampler::part_of(const qec::detector_error_model &whole, std::size_t begin, std::size_t end,
                                             std::uint64_t first_error, const qec::read_errors &read) {
  qec::detector_error_model one;
  one.num_detectors = whole.num_detectors;
  one.num_observables = whole.num_observables;
  one.targets = whole.targets;
  const auto components = std::span(whole.components).subspan(begin, end - begin);
  std::uint64_t lowest = UINT64_MAX;
  std::vector<read_error> of_values(read.errors.size());
  for (const qec::dem_component &c : components) {
    if (c.detectors != 0)
      lowest = std::min(lowest, whole.detectors_of(c).front());
    const std::uint64_t error = c.mechanism - first_error;
    const auto found = std::ranges::lower_bound(read.errors, error, {}, &qec::read_errors::entry::error);
    if (found == read.errors.end() || found->error != error) {
      one.components.push_back(c);
      continue;
    }
    const auto k = static_cast<std::size_t>(found - read.errors.begin());
    read_error &named = of_values[k];
    named.readings.assign(read.readings_of(k).begin(), read.readings_of(k).end());
    named.listings.assign(read.listings_of(k).begin(), read.listings_of(k).end());
    named.rest = named.readings.empty() ? c.probability : found->rest;
    const auto append = [](std::vector<std::uint64_t> &to, std::span<const std::uint64_t> more) {
      to.insert(to.end(), more.begin(), more.end());
    };
    append(named.detectors, whole.detectors_of(c));
    append(named.observables, whole.observables_of(c));
  }
  return {qec::model_sampler(one), std::move(of_values), lowest};
}

stream_sampler::stream_sampler(const qec::repeating_model &model, std::uint64_t repetitions, drawn_values *values)
    : model_(model), repetitions_(repetitions), before_tail_(model.head().size() + repetitions * model.body().size()),
      values_(values) {
  const qec::detector_error_model none = unrolled_or_throw(model, 0), once = unrolled_or_throw(model, 1);
  // Without the loop the errors of the tail follow those of the head: the first other line is that of the loop.
  const auto same_line = [](const qec::dem_component &a, const qec::dem_component &b) { return a.line == b.line; };
  const auto first = std::ranges::mismatch(none.components, once.components, same_line);
  const auto head = static_cast<std::size_t>(first.in2 - once.components.begin());
  const std::size_t tail = head + once.components.size() - none.components.size();
  const qec::stream_readout without, &readout = values == nullptr ? without : values->readout();
  parts_.push_back(part_of(once, 0, head, 0, readout.head()));
  parts_.push_back(part_of(once, head, tail, model.head_errors(), readout.body()));
  parts_.push_back(
      part_of(once, tail, once.components.size(), model.head_errors() + model.body_errors(), readout.tail()));
  shot_.resize(parts_[0].sampler.shot_bytes());
  observables_.resize(parts_[0].sampler.observable_bytes());
  ring_.resize(std::bit_ceil(4 * once.num_detectors)); // of the ends of all parts that are not complete
}

void stream_sampler::begin(std::uint64_t seed, std::uint64_t k) {
  random_ = random_of_batch(seed, k);
  if (values_ != nullptr)
    values_->begin(seed, k);
  std::ranges::fill(ring_, std::uint8_t{0});
  std::ranges::fill(observables_, std::uint8_t{0});
  next_round_ = next_detector_ = sampled_ = 0;
}

void stream_sampler::sample_next() {
  const std::uint64_t body = model_.body_detectors();
  const std::size_t which = sampled_ == 0 ? 0 : sampled_ <= repetitions_ ? 1 : 2;
  const std::uint64_t before = which == 0 ? 0 : which == 1 ? sampled_ - 1 : repetitions_ - 1; // repetitions
  const std::uint64_t shift = before * body;
  std::ranges::fill(shot_, std::uint8_t{0});
  parts_[which].sampler.sample(random_, shot_, observables_);
  for (const read_error &one : parts_[which].read) {
    if (qec::uniform(random_) > values_->probability(one.rest, one.readings, one.listings, before))
      continue;
    qec::flip_bits(one.detectors, shot_);
    qec::flip_bits(one.observables, observables_);
  }
  for (std::size_t at = 0; at < shot_.size(); ++at)
    for (unsigned bits = shot_[at]; bits != 0; bits &= bits - 1)
      bit(at * 8 + static_cast<std::uint64_t>(std::countr_zero(bits)) + shift) ^= 1;
  ++sampled_;
}

/// Detectors below this one are not flipped any more.
std::uint64_t stream_sampler::complete() const noexcept {
  const std::uint64_t body = model_.body_detectors();
  const auto lowest = [](const part &p, std::uint64_t shift) {
    return p.lowest == UINT64_MAX ? UINT64_MAX : p.lowest + shift;
  };
  const std::uint64_t repeated = sampled_ == 0 ? 0 : sampled_ - 1; // repetitions that were sampled
  std::uint64_t first = sampled_ == 0 ? lowest(parts_[0], 0) : UINT64_MAX;
  if (repeated < repetitions_)
    first = std::min(first, lowest(parts_[1], repeated * body));
  return sampled_ > repetitions_ + 1 ? UINT64_MAX : std::min(first, lowest(parts_[2], (repetitions_ - 1) * body));
}

std::span<const std::uint8_t> stream_sampler::next_round() {
  const std::uint64_t size = next_round_ < before_tail_
                                 ? model_.first_detector(next_round_ + 1) - model_.first_detector(next_round_)
                                 : model_.tail()[next_round_ - before_tail_];
  ++next_round_;
  const std::uint64_t end = next_detector_ + size;
  while (complete() < end)
    sample_next();
  round_.clear();
  for (; next_detector_ < end; ++next_detector_) {
    round_.push_back(bit(next_detector_));
    bit(next_detector_) = 0;
  }
  return round_;
}

} // namespace cudaq::realtime::tools
