// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/session/detector_rates.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

/// What an event adds. Halvings lose less than 1/16 of an event each.
constexpr std::uint32_t kEvent = 16;
static_assert(std::uint64_t{detector_rates::kLongestWindow} * kEvent <= UINT32_MAX / 2);

constexpr std::uint32_t upper(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word >> 32); }
constexpr std::uint32_t lower(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word); }
constexpr std::uint64_t joined(std::uint32_t halvings, std::uint32_t count) noexcept {
  return std::uint64_t{halvings} << 32 | count;
}

/// The count of a word after so many halvings.
constexpr std::uint32_t count_at(std::uint64_t word, std::uint32_t halvings) noexcept {
  const std::uint32_t late = halvings - upper(word);
  return late < 32 ? lower(word) >> late : 0;
}

/// The events of a word for a reader that saw so many halvings. The word may be written after a few more of them.
double events_at(std::uint64_t word, std::uint32_t halvings) noexcept {
  const auto late = static_cast<std::int32_t>(halvings - upper(word));
  return late > -32 && late < 32 ? std::ldexp(static_cast<double>(lower(word)) / kEvent, -late) : 0;
}

/// The square of the sum of the weights of all shots, by the sum of their squares.
double independent_shots(std::uint32_t window, std::uint32_t halvings, double shots) noexcept {
  double squares = 0, begin = 0; // those at the begin of the present window
  constexpr std::uint32_t kFarPast = 32;
  for (std::uint32_t k = 0; k < std::min(halvings, kFarPast); ++k) {
    squares = (squares + window - begin) / 4;
    begin = window / 2;
  }
  squares += shots - begin;
  return squares > 0 ? shots * shots / squares : 0;
}

} // namespace

double sigma_between(double rate, double expected, double shots) noexcept {
  constexpr double kLeast = 1e-12;
  if (!(shots > 0) || std::isnan(rate) || std::isnan(expected))
    return kUnknown;
  rate = std::clamp(rate, 0.0, 1.0);
  expected = std::clamp(expected, kLeast, 1 - kLeast);
  const auto part = [](double measured, double of) { return measured > 0 ? measured * std::log(measured / of) : 0; };
  const double deviance = 2 * shots * (part(rate, expected) + part(1 - rate, 1 - expected));
  return std::copysign(std::sqrt(std::max(deviance, 0.0)), rate - expected);
}

std::size_t certain_differences(const detector_reading &of) noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(
      of.detectors, [](const detector_state &d) { return std::abs(d.sigma) >= kCertainSigma; })); // kUnknown: no
}

std::vector<std::size_t> worst_detectors(const detector_reading &of, std::size_t max_count) {
  std::vector<std::size_t> known;
  for (std::size_t d = 0; d < of.detectors.size(); ++d)
    if (!std::isnan(of.detectors[d].sigma))
      known.push_back(d);
  const std::size_t number = std::min(max_count, known.size());
  std::ranges::partial_sort(known, known.begin() + static_cast<std::ptrdiff_t>(number), std::ranges::greater(),
                            [&of](std::size_t d) { return std::abs(of.detectors[d].sigma); });
  known.resize(number);
  return known;
}

detector_rates::detector_rates(model_detectors detectors, std::uint32_t window)
    : model_(std::move(detectors)), window_(std::clamp<std::uint32_t>(window, 2, kLongestWindow) & ~1U),
      counts_(model_.head + model_.body + model_.tail) {
  std::uint64_t begin = 0;
  const std::array sizes{model_.head, model_.body, model_.tail};
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    parts_[k].begin = begin;
    parts_[k].size = sizes[k];
    begin += sizes[k];
  }
}

void detector_rates::count_event(const part &of, std::uint64_t index) noexcept {
  decaying &count = counts_[static_cast<std::size_t>(of.begin + index)];
  const std::uint32_t halvings = upper(of.shots.peek());
  count.store(joined(halvings, count_at(count.peek(), halvings) + kEvent));
}

/// Bits from `first_bit` on are the detectors from `index` on.
void detector_rates::count_bits(part &of, std::span<const std::uint8_t> bits, std::uint64_t first_bit,
                                std::uint64_t index, std::uint64_t count) noexcept {
  const std::uint64_t end = first_bit + std::min(count, of.size - index);
  for (std::uint64_t at = first_bit / 64 * 64; at < end; at += 64) { // events are rare: whole words are 0
    const auto byte = static_cast<std::size_t>(at / 8);
    if (byte >= bits.size())
      return;
    std::uint64_t word = 0;
    std::memcpy(&word, bits.data() + byte, std::min(sizeof word, bits.size() - byte));
    if (at < first_bit)
      word &= ~std::uint64_t{0} << (first_bit - at);
    if (end - at < 64)
      word &= (std::uint64_t{1} << (end - at)) - 1;
    for (; word != 0; word &= word - 1)
      count_event(of, index + (at + static_cast<std::uint64_t>(std::countr_zero(word)) - first_bit));
  }
}

void detector_rates::end_shot(part &of) noexcept {
  const std::uint64_t now = of.shots.peek();
  const std::uint32_t shots = lower(now) + 1;
  of.shots.store(shots < window_ ? joined(upper(now), shots) : joined(upper(now) + 1, shots / 2));
}

void detector_rates::count_shot(std::span<const std::uint8_t> events) noexcept {
  count_bits(parts_[1], events, 0, 0, parts_[1].size);
  end_shot(parts_[1]);
}

void detector_rates::count_rounds(std::span<const std::uint8_t> bits, std::uint64_t first,
                                  std::uint64_t count) noexcept {
  part &head = parts_[0], &body = parts_[1];
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t at = first + done;
    part &here = at < head.size ? head : body;
    const std::uint64_t index = at < head.size ? at : (at - head.size) % body.size;
    const std::uint64_t step = std::min(count - done, here.size - index);
    count_bits(here, bits, done, index, step);
    if (index + step == here.size)
      end_shot(here);
    done += step;
  }
}

void detector_rates::count_tail(std::span<const std::uint8_t> bits) noexcept {
  count_bits(parts_[2], bits, 0, 0, parts_[2].size);
  end_shot(parts_[2]);
}

double detector_rates::read_part(const part &of, std::span<detector_state> out) const noexcept {
  // Read again if counts were halved meanwhile. The counts of a shot that is just being counted are in no harm.
  constexpr int kTries = 100;
  std::uint64_t now = 0;
  for (int k = 0; k < kTries; ++k) {
    now = of.shots.load();
    for (std::size_t d = 0; d < out.size(); ++d)
      out[d].rate = events_at(counts_[static_cast<std::size_t>(of.begin) + d].load(), upper(now));
    if (upper(of.shots.load()) == upper(now))
      break;
  }
  const double shots = lower(now), exact = independent_shots(window_, upper(now), shots);
  for (std::size_t d = 0; d < out.size(); ++d) { // not above, where it would take longer than some halvings
    out[d].rate = shots > 0 ? std::min(out[d].rate / shots, 1.0) : kUnknown;
    out[d].sigma = sigma_between(out[d].rate, model_.all[static_cast<std::size_t>(of.begin) + d].rate, exact);
  }
  return exact;
}

detector_reading detector_rates::read() const {
  detector_reading reading;
  reading.detectors.resize(counts_.size());
  for (const part &of : parts_) {
    const auto out =
        std::span(reading.detectors).subspan(static_cast<std::size_t>(of.begin), static_cast<std::size_t>(of.size));
    const double shots = read_part(of, out);
    if (&of == &parts_[1])
      reading.shots = shots;
  }
  return reading;
}

} // namespace cudaq::qec::realtime
