// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/readout/readout_sampler.h"

#include "lib/qec/decoding/event_bits.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <unordered_map>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

/// The errors that the table does not name.
detector_error_model without(detector_error_model model, const readout_table::content &all) {
  std::vector<bool> is_named(static_cast<std::size_t>(model.num_errors));
  for (const auto &one : all.errors)
    is_named[static_cast<std::size_t>(one.error)] = true;
  std::erase_if(model.components, [&](const dem_component &c) { return is_named[c.mechanism]; });
  return model;
}

/// Normal with mean 0 and standard deviation 1, by Box and Muller: an equal seed gives equal values with every library.
double normal(std::mt19937_64 &random) {
  const double radius = std::sqrt(-2 * std::log(uniform(random)));
  return radius * std::cos(2 * std::numbers::pi * uniform(random));
}

} // namespace

std::string refuses_draws(const readout_calibration &calibration, soft_kind kind) {
  if (!calibration.misread.empty())
    return " has levels, and does not say how often each of them comes; accepted: gaussian";
  if (!calibration.takes(kind))
    return " has means that are not values of this kind; accepted: two numbers from 0 to " +
           std::to_string(std::lround(highest_of(kind))) + ", or the kind f32";
  return "";
}

double as_kind(double value, soft_kind kind) noexcept {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return kind == soft_kind::f32 ? static_cast<double>(static_cast<float>(std::clamp(value, -kLargest, kLargest)))
                                : static_cast<double>(std::lround(std::clamp(value, 0.0, highest_of(kind))));
}

void draw_flags(std::mt19937_64 &random, double leaked, std::uint64_t flags, std::span<std::uint8_t> row) {
  std::ranges::fill(row, std::uint8_t{0});
  for (std::uint64_t k = 0; k < flags; ++k)
    row[k / 4] = static_cast<std::uint8_t>(row[k / 4] | drawn_flag(leaked, uniform(random)) << 2 * (k % 4));
}

expected<readout_sampler> readout_sampler::of(const detector_error_model &model, const readout_table &table,
                                              soft_kind kind) {
  for (const auto &[measurement, number] : table.contents().readings)
    if (const std::string why = refuses_draws(table.contents().calibrations[number], kind); !why.empty())
      return reason("values of measurement " + std::to_string(measurement) + " cannot be drawn: calibration " +
                    std::to_string(number) + why);
  return readout_sampler(model, table, kind);
}

readout_sampler::readout_sampler(const detector_error_model &model, const readout_table &table, soft_kind kind)
    : kind_(kind), table_(table), all_(table.contents()), named_(all_.errors.size()), others_(without(model, all_)) {
  std::unordered_map<std::uint64_t, std::size_t> place;
  for (std::size_t k = 0; k < all_.errors.size(); ++k)
    place.emplace(all_.errors[k].error, k);
  for (const dem_component &c : model.components)
    if (const auto found = place.find(c.mechanism); found != place.end()) {
      named_error &one = named_[found->second];
      one.probability = c.probability;
      const auto append = [](std::vector<std::uint64_t> &to, std::span<const std::uint64_t> more) {
        to.insert(to.end(), more.begin(), more.end());
      };
      append(one.detectors, model.detectors_of(c));
      append(one.observables, model.observables_of(c));
    }
}

void readout_sampler::draw_value(std::mt19937_64 &random, const readout_table::content::reading &reading,
                                 std::span<std::uint8_t> soft) const {
  const readout_calibration::gaussians &of = all_.calibrations[reading.calibration].both;
  const double mean = uniform(random) <= of.share_of_1 ? of.mean_of_1 : of.mean_of_0; // drawn first by each compiler
  const double value = as_kind(mean + of.sigma * normal(random), kind_);
  const auto at = static_cast<std::size_t>(reading.measurement);
  if (kind_ == soft_kind::f32) {
    const auto written = static_cast<float>(value);
    std::memcpy(soft.data() + 4 * at, &written, sizeof written);
    return;
  }
  const auto level = static_cast<std::uint8_t>(value);
  if (kind_ == soft_kind::u8)
    soft[at] = level;
  else
    soft[at / 2] = static_cast<std::uint8_t>(soft[at / 2] | level << 4 * (at % 2));
}

decode_status readout_sampler::sample(std::mt19937_64 &random, std::span<const std::uint8_t> leakage,
                                      const shot_room &shot, std::string &fault) {
  for (const auto &reading : all_.readings)
    draw_value(random, reading, shot.soft);
  const decode_status status = table_.list_of({.soft = shot.soft, .kind = kind_, .leakage = leakage}, list_, fault);
  if (status != decode_status::ok)
    return status;
  others_.sample(random, shot.events, shot.observables);
  std::size_t next = 0; // of the list, which has the errors in the same order, without some
  for (std::size_t k = 0; k < named_.size(); ++k) {
    const bool is_listed = next < list_.size() && list_[next].error == all_.errors[k].error;
    const double probability = is_listed ? list_[next++].probability : named_[k].probability;
    if (uniform(random) > probability)
      continue;
    flip_bits(named_[k].detectors, shot.events);
    flip_bits(named_[k].observables, shot.observables);
  }
  return decode_status::ok;
}

} // namespace cudaq::qec::realtime
