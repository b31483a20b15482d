// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/readout/readout_content.h"

#include "lib/qec/decoders/heralds/list_trial.h"
#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/number_of.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>

namespace cudaq::qec::realtime {
namespace {

/// In list_of: the error has no probability yet.
constexpr double kNotSet = -1;

const char *name_of(soft_kind kind) noexcept {
  return kind == soft_kind::f32 ? "f32" : kind == soft_kind::u8 ? "u8" : "u4";
}

std::string kind_refusal(const readout_calibration &calibration, std::uint64_t measurement, soft_kind kind) {
  const std::string begin = "measurement " + std::to_string(measurement) + " has ";
  if (const std::size_t levels = calibration.misread.size(); levels != 0)
    return begin + "a table of " + std::to_string(levels) + " levels, which takes the kind " +
           (levels == 16 ? "u4" : "u8") + ", not " + name_of(kind);
  char means[64];
  std::snprintf(means, sizeof means, "%g and %g", calibration.both.mean_of_0, calibration.both.mean_of_1);
  return begin + "Gaussians with the means " + means + ", so its values are not in the kind " + name_of(kind) +
         ", numbers from 0 to " + std::to_string(std::lround(highest_of(kind))) +
         "; accepted: f32 in the unit of the means, or a table of levels";
}

} // namespace

readout_table::readout_table(std::unique_ptr<const content> all) noexcept : all_(std::move(all)) {}
readout_table::~readout_table() = default;

std::uint64_t readout_table::num_measurements() const noexcept { return all_->measurements; }
std::uint64_t readout_table::num_flags() const noexcept { return all_->flags; }
std::size_t readout_table::max_errors() const noexcept { return all_->errors.size(); }

std::size_t readout_table::soft_bytes(soft_kind kind) const noexcept {
  const auto count = static_cast<std::size_t>(all_->measurements);
  return kind == soft_kind::f32 ? 4 * count : kind == soft_kind::u8 ? count : (count + 1) / 2;
}

decode_status readout_table::list_of(const shot_readout &shot, std::vector<error_probability> &list,
                                     std::string &fault) const {
  const content &all = *all_;
  list.clear();
  const auto refuse = [&list, &fault](decode_status status, std::string text) {
    list.clear();
    fault = std::move(text);
    return status;
  };
  if (shot.kind > soft_kind::u4)
    return refuse(decode_status::not_supported, "the kind of the soft values is none of f32, u8, u4");
  const auto check_size = [](std::size_t got, std::size_t accepted, const char *what, std::uint64_t count) {
    return got == accepted ? std::string()
                           : std::string(what) + ": " + number_of(got, "byte") +
                                 ", accepted: " + std::to_string(accepted) + " for " + std::to_string(count);
  };
  for (const std::string &text : {check_size(shot.soft.size(), soft_bytes(shot.kind), "soft values", all.measurements),
                                  check_size(shot.leakage.size(), leakage_bytes(), "flags", all.flags)})
    if (!text.empty())
      return refuse(decode_status::buffer_too_small, text);
  if (shot.kind == soft_kind::u4 && all.measurements % 2 != 0 && shot.soft.back() >> 4 != 0)
    return refuse(decode_status::bad_probability, "the unused half of the last byte of soft values is not 0");
  if (all.flags % 4 != 0 && shot.leakage.back() >> 2 * (all.flags % 4) != 0)
    return refuse(decode_status::bad_probability, "the unused bits of the last byte of flags are not 0");

  for (const content::named_error &one : all.errors)
    list.push_back({one.error, kNotSet});
  for (std::uint64_t flag = 0; flag < all.flags; ++flag) {
    const unsigned value = shot.leakage[flag / 4] >> 2 * (flag % 4) & 3;
    if (value == 3)
      return refuse(decode_status::bad_probability,
                    "flag " + std::to_string(flag) + " has the value 3, accepted: 0, 1, 2");
    const std::size_t range = static_cast<std::size_t>(3 * flag + value);
    for (std::size_t k = all.begin_listed[range]; k < all.begin_listed[range + 1]; ++k) {
      double &probability = list[all.listed_errors[k].named].probability;
      probability = std::max(probability, all.listed_errors[k].probability);
    }
  }

  std::size_t reading = 0;
  for (std::size_t k = 0; k < all.num_misread; ++k) {
    double probability = list[k].probability == kNotSet ? all.errors[k].rest : list[k].probability;
    for (; reading < all.errors[k].end_readings; ++reading) {
      const auto &[measurement, number] = all.readings[reading];
      const readout_calibration &calibration = all.calibrations[number];
      double value = 0;
      if (shot.kind == soft_kind::f32) {
        float read = 0;
        std::memcpy(&read, shot.soft.data() + 4 * measurement, sizeof read);
        if (!std::isfinite(read))
          return refuse(decode_status::bad_probability,
                        "the soft value of measurement " + std::to_string(measurement) + " is not finite");
        value = static_cast<double>(read);
      } else {
        value = shot.kind == soft_kind::u8 ? shot.soft[measurement]
                                           : std::uint32_t{shot.soft[measurement / 2]} >> 4 * (measurement % 2) & 15U;
      }
      if (!calibration.takes(shot.kind))
        return refuse(decode_status::not_supported, kind_refusal(calibration, measurement, shot.kind));
      probability = merged_probability(probability, calibration.misread_of(value));
    }
    list[k].probability = probability;
  }
  const auto first_of_flags = list.begin() + static_cast<std::ptrdiff_t>(all.num_misread);
  list.erase(std::remove_if(first_of_flags, list.end(), [](const auto &one) { return one.probability == kNotSet; }),
             list.end());
  return decode_status::ok;
}

readout_table_result read_readout_table(std::string_view table_text, std::string_view dem_text) {
  try {
    auto table = parse_readout_table(table_text, decoder_model(dem_text));
    if (table.failed())
      return {nullptr, table.text()};
    return {std::move(*table), {}};
  } catch (const std::bad_alloc &) {
    return {nullptr, "out of memory"};
  }
}

std::string refuses_readout(decoder &with, const readout_table &table) {
  if (const char *const refusal = with.refuses_probabilities())
    return refusal;
  const readout_table::content &all = table.contents();
  std::vector<error_probability> largest;
  for (const auto &one : all.errors)
    largest.push_back({one.error, kTriedProbability});
  for (std::size_t k = 0; k < all.num_misread; ++k) // a misread measurement moves it towards 1/2
    largest[k].probability = std::max(largest[k].probability, all.errors[k].rest);
  for (const auto &one : all.listed_errors)
    largest[one.named].probability = std::max(largest[one.named].probability, one.probability);
  std::vector<std::uint8_t> observables(with.observable_bytes());
  const decode_status status = try_list(with, observables, largest);
  return takes_list(status) ? "" : decode_status_text(status, with.fault());
}

} // namespace cudaq::qec::realtime
