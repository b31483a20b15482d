// SPDX-License-Identifier: Apache-2.0
#include "tools/shots/drawn_values.h"

#include "lib/qec/decoders/readout/readout_sampler.h"
#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/splitmix.h"
#include "tools/common/report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <random>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint64_t kDistances = std::uint64_t{1} << 14;

} // namespace

drawn_values::drawn_values(const qec::stream_readout &readout, qec::soft_kind kind, std::uint64_t repetitions,
                           double leaked)
    : readout_(readout), kind_(kind), body_(readout.info().body_soft), body_flags_(readout.info().body_leakage),
      repetitions_(repetitions), total_(static_cast<std::uint64_t>(readout.total(repetitions).value)), leaked_(leaked) {
  for (std::size_t k = 0; k < readout.calibrations().size(); ++k)
    if (const std::string why = qec::refuses_draws(readout.calibrations()[k], kind); !why.empty())
      throw usage_error(fmt::format("values cannot be drawn: calibration {}{}", k, why));
  const auto note = [](std::vector<std::uint32_t> &calibrations, std::uint64_t at, std::uint32_t calibration) {
    if (calibrations.size() <= at)
      calibrations.resize(at + 1, kNone);
    calibrations[at] = calibration;
  };
  for (const auto &one : readout.head().readings)
    note(head_, static_cast<std::uint64_t>(one.value), one.calibration);
  in_body_.resize(body_, kNone);
  first_in_body_.resize(body_);
  for (const auto &one : readout.body().readings) {
    const auto value = static_cast<std::uint64_t>(one.value);
    in_body_[value % body_] = one.calibration;
    first_in_body_[value % body_] = value;
  }
  const std::int64_t end = readout.total(1).value - 1; // from the end: of each number of repetitions the same
  for (const auto &one : readout.tail().readings)
    note(tail_, static_cast<std::uint64_t>(end - one.value), one.calibration);
  std::mt19937_64 random;
  for (std::uint64_t k = 0; k < kDistances; ++k) {
    const double radius = std::sqrt(-2 * std::log(qec::uniform(random)));
    normal_.push_back(radius * std::cos(2 * std::numbers::pi * qec::uniform(random)));
  }
}

void drawn_values::begin(std::uint64_t seed, std::uint64_t k) noexcept {
  key_ = qec::splitmix(qec::splitmix(seed + qec::kSplitmixStep) + k * qec::kSplitmixStep);
  flags_key_ = qec::splitmix(key_ + 1); // numbers of values are multiples of the step
}

std::uint32_t drawn_values::calibration_of(std::uint64_t number) const noexcept {
  if (number < head_.size() && head_[number] != kNone)
    return head_[number];
  if (const std::uint64_t from_end = total_ - 1 - number; from_end < tail_.size() && tail_[from_end] != kNone)
    return tail_[from_end];
  const std::uint64_t first = first_in_body_[number % body_];
  return number >= first && (number - first) / body_ < repetitions_ ? in_body_[number % body_] : kNone;
}

double drawn_values::drawn(std::uint64_t number, std::uint32_t calibration) const noexcept {
  const auto &of = readout_.calibrations()[calibration].both;
  const std::uint64_t bits = qec::splitmix(key_ + number * qec::kSplitmixStep);
  const double share = static_cast<double>(bits >> 32) * 0x1p-32;
  const double mean = share < of.share_of_1 ? of.mean_of_1 : of.mean_of_0;
  return qec::as_kind(mean + of.sigma * normal_[bits % kDistances], kind_);
}

void drawn_values::append(std::uint64_t from, std::uint64_t to, std::vector<std::uint8_t> &bytes) const {
  for (std::uint64_t number = from; number < to; ++number) {
    const std::uint32_t calibration = calibration_of(number);
    const double value = calibration == kNone ? 0 : drawn(number, calibration);
    if (kind_ == qec::soft_kind::f32) {
      const auto written = static_cast<float>(value);
      const auto *const first = reinterpret_cast<const std::uint8_t *>(&written);
      bytes.insert(bytes.end(), first, first + sizeof written);
    } else if (kind_ == qec::soft_kind::u8 || (number - from) % 2 == 0) {
      bytes.push_back(static_cast<std::uint8_t>(value));
    } else {
      bytes.back() = static_cast<std::uint8_t>(bytes.back() | static_cast<unsigned>(value) << 4);
    }
  }
}

unsigned drawn_values::flag(std::uint64_t number) const noexcept {
  const std::uint64_t bits = qec::splitmix(flags_key_ + number * qec::kSplitmixStep);
  return qec::drawn_flag(leaked_, static_cast<double>((bits >> 32) + 1) * 0x1p-32);
}

void drawn_values::append_flags(std::uint64_t from, std::uint64_t to, std::vector<std::uint8_t> &bytes) const {
  for (std::uint64_t number = from; number < to; ++number) {
    if ((number - from) % 4 == 0)
      bytes.push_back(0);
    bytes.back() = static_cast<std::uint8_t>(bytes.back() | flag(number) << 2 * ((number - from) % 4));
  }
}

double drawn_values::probability(double rest, std::span<const qec::read_errors::reading> readings,
                                 std::span<const qec::read_errors::listing> listings,
                                 std::uint64_t repetitions) const noexcept {
  double listed = -1;
  for (const auto &[number, value, probability] : listings)
    if (flag(static_cast<std::uint64_t>(number) + repetitions * body_flags_) == value)
      listed = std::max(listed, probability);
  rest = listed < 0 ? rest : listed;
  for (const auto &[value, calibration] : readings) {
    const double of_value = drawn(static_cast<std::uint64_t>(value) + repetitions * body_, calibration);
    rest = qec::merged_probability(rest, readout_.calibrations()[calibration].misread_of(of_value));
  }
  return rest;
}

} // namespace cudaq::realtime::tools
