// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stream/value_ring.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace cudaq::qec::realtime {
namespace {

constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 40; ///< of a push: their bytes are a number

std::size_t room_for(std::int64_t values) {
  return std::bit_ceil(static_cast<std::size_t>(std::max<std::int64_t>(values, 1)));
}

unsigned bits_of_value(soft_kind kind) noexcept { return kind == soft_kind::f32 ? 32 : kind == soft_kind::u8 ? 8 : 4; }

unsigned flag_at(const stream_values &of, std::uint64_t k) noexcept {
  return unsigned{of.leakage[k / 4]} >> 2 * (k % 4) & 3U;
}

float soft_at(const stream_values &of, std::uint64_t k) noexcept {
  float value = 0;
  if (of.kind == soft_kind::f32)
    std::memcpy(&value, of.soft.data() + 4 * k, sizeof value);
  else if (of.kind == soft_kind::u8)
    value = of.soft[k];
  else
    value = static_cast<float>(unsigned{of.soft[k / 2]} >> 4 * (k % 2) & 15U);
  return value;
}

} // namespace

value_ring::value_ring(const stream_readout &of, readout_place room)
    : of_(of), soft_(room_for(room.value)), flags_(room_for(room.flag)) {}

void value_ring::clear() noexcept {
  come_ = {};
  forget_fault();
}

decode_status value_ring::refuse(decode_status status, const char *format, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(fault_.data(), fault_.size(), format, arguments);
  va_end(arguments);
  return status;
}

decode_status value_ring::check(const stream_values &next, readout_place least, readout_place max_come) noexcept {
  forget_fault();
  if (of_.empty())
    return next.num_soft + next.num_leakage == 0
               ? decode_status::ok
               : refuse(decode_status::not_supported, "the stream has no table of a readout");
  if (next.num_soft > kMaxValues || next.num_leakage > kMaxValues)
    return refuse(decode_status::not_supported, "a push has more than 2^40 soft values or flags");
  if (next.num_soft != 0) {
    if (next.kind > soft_kind::u4 || (of_.kinds() >> static_cast<unsigned>(next.kind) & 1U) == 0)
      return refuse(decode_status::not_supported, "the table of the readout does not take this kind of soft values");
    if (come_.value != 0 && next.kind != kind_)
      return refuse(decode_status::not_supported, "the soft values have another kind than those before");
    if (next.soft.size() < (next.num_soft * bits_of_value(next.kind) + 7) / 8)
      return refuse(decode_status::buffer_too_small, "%" PRIu64 " soft values in %zu bytes", next.num_soft,
                    next.soft.size());
  }
  if (next.leakage.size() < (next.num_leakage + 3) / 4)
    return refuse(decode_status::buffer_too_small, "%" PRIu64 " flags in %zu bytes", next.num_leakage,
                  next.leakage.size());
  const readout_place then =
      come_ + readout_place{static_cast<std::int64_t>(next.num_soft), static_cast<std::int64_t>(next.num_leakage)};
  const struct {
    const char *what;
    std::int64_t then, least, max_come;
  } both[] = {{"soft values", then.value, least.value, max_come.value},
              {"flags", then.flag, least.flag, max_come.flag}};
  for (const auto &one : both) {
    if (one.then < one.least)
      return refuse(decode_status::buffer_too_small,
                    "%" PRId64 " %s have come, and the rounds that are complete need %" PRId64, one.then, one.what,
                    one.least);
    if (one.then > one.max_come)
      return refuse(one.least == one.max_come ? decode_status::buffer_too_small : decode_status::not_supported,
                    "%" PRId64 " %s have come, and with these rounds there may be %" PRId64, one.then, one.what,
                    one.max_come);
  }
  for (std::uint64_t k = 0; k < next.num_leakage; ++k)
    if (flag_at(next, k) == 3)
      return refuse(decode_status::bad_probability, "flag %" PRId64 " has the value 3, accepted: 0, 1, 2",
                    come_.flag + static_cast<std::int64_t>(k));
  return decode_status::ok;
}

void value_ring::store(const stream_values &next, readout_place &taken, readout_place max_come) noexcept {
  if (next.num_soft != 0)
    kind_ = next.kind;
  const auto all = static_cast<std::int64_t>(next.num_soft), all_flags = static_cast<std::int64_t>(next.num_leakage);
  for (; taken.value < all && come_.value < max_come.value; ++taken.value)
    soft_[index(soft_, come_.value++)] = soft_at(next, static_cast<std::uint64_t>(taken.value));
  for (; taken.flag < all_flags && come_.flag < max_come.flag; ++taken.flag)
    flags_[index(flags_, come_.flag++)] =
        static_cast<std::uint8_t>(flag_at(next, static_cast<std::uint64_t>(taken.flag)));
}

decode_status value_ring::list_of(const read_errors &errors, readout_place base, readout_place come,
                                  std::vector<error_probability> &list, text &why) const noexcept {
  constexpr double kNotSet = -1;
  const auto lacks = [&why](const char *what, std::int64_t at) {
    std::snprintf(why.data(), why.size(), "%s %" PRId64 " is needed, and the stream does not have it", what, at);
    return decode_status::internal_error;
  };
  std::size_t reading = 0, listing = 0;
  for (const read_errors::entry &one : errors.errors) {
    double probability = kNotSet;
    for (; listing < one.end_listings; ++listing) {
      const auto &[flag, value, listed] = errors.listings[listing];
      if (!has(flags_, base.flag + flag, come.flag))
        return lacks("flag", base.flag + flag);
      if (flags_[index(flags_, base.flag + flag)] == value)
        probability = std::max(probability, listed);
    }
    if (reading < one.end_readings && probability == kNotSet)
      probability = one.rest;
    for (; reading < one.end_readings; ++reading) {
      const std::int64_t at = base.value + errors.readings[reading].value;
      if (!has(soft_, at, come.value))
        return lacks("soft value", at);
      const float value = soft_[index(soft_, at)];
      if (!std::isfinite(value)) {
        std::snprintf(why.data(), why.size(), "soft value %" PRId64 " is not finite", at);
        return decode_status::bad_probability;
      }
      probability =
          merged_probability(probability, of_.calibrations()[errors.readings[reading].calibration].misread_of(value));
    }
    if (probability != kNotSet)
      list.push_back({one.error, probability});
  }
  return decode_status::ok;
}

} // namespace cudaq::qec::realtime
