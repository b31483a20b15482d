// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decode_status.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace cudaq::qec::realtime {

static_assert(std::endian::native == std::endian::little, "the 64-bit loads below assume little endian");

struct unpack_result {
  decode_status status;
  std::size_t count; ///< events written; 0 with any status but ok
};

/// Calls visit(index) for every event of a bit-packed shot (detector k in bit k % 8 of byte k / 8, Stim's b8), in
/// ascending order. buffer_too_small: `packed` is shorter than the detectors need; nothing is called.
/// bad_detector_index: a bit after the last detector is set, in the last byte or in any byte after it; the events
/// before it were visited.
template <typename Visit>
[[nodiscard]] decode_status for_each_event(std::span<const std::uint8_t> packed, std::uint64_t num_detectors,
                                           const Visit &visit) noexcept {
  if (packed.size() < num_detectors / 8 + (num_detectors % 8 != 0))
    return decode_status::buffer_too_small;
  for (std::size_t at = 0; at < packed.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    if (packed.size() - at >= sizeof word) // a copy with constant length is one load
      std::memcpy(&word, packed.data() + at, sizeof word);
    else
      std::memcpy(&word, packed.data() + at, packed.size() - at);
    if (word == 0)
      continue;
    const std::uint64_t base = std::uint64_t{8} * at;
    if (base + static_cast<std::uint64_t>(std::bit_width(word)) > num_detectors)
      return decode_status::bad_detector_index;
    for (; word != 0; word &= word - 1)
      visit(base + static_cast<std::uint64_t>(std::countr_zero(word)));
  }
  return decode_status::ok;
}

/// The same into a list. buffer_too_small also if `events` has too little room for the events that fired (room for
/// num_detectors always suffices). Example with 10 detectors: bytes {0x05, 0x02} are events 0, 2, 9; bytes {0x05, 0x04}
/// name detector 10 and are refused.
[[nodiscard]] inline unpack_result unpack_events(std::span<const std::uint8_t> packed, std::uint64_t num_detectors,
                                                 std::span<std::uint64_t> events) noexcept {
  std::size_t count = 0;
  const decode_status status = for_each_event(packed, num_detectors, [&](std::uint64_t event) {
    if (count < events.size())
      events[count] = event;
    ++count;
  });
  if (status != decode_status::ok)
    return {status, 0};
  return count > events.size() ? unpack_result{decode_status::buffer_too_small, 0}
                               : unpack_result{decode_status::ok, count};
}

/// The inverse: converts sparse indices in any order to bits. Writes ceil(num_detectors / 8) bytes of `packed`; after
/// an error their content is unspecified.
[[nodiscard]] inline decode_status pack_events(std::span<const std::uint64_t> events, std::uint64_t num_detectors,
                                               std::span<std::uint8_t> packed) noexcept {
  const std::uint64_t bytes = num_detectors / 8 + (num_detectors % 8 != 0);
  if (packed.size() < bytes)
    return decode_status::buffer_too_small;
  std::fill_n(packed.begin(), bytes, std::uint8_t{0});
  for (const std::uint64_t event : events) {
    if (event >= num_detectors)
      return decode_status::bad_detector_index;
    std::uint8_t &byte = packed[static_cast<std::size_t>(event / 8)];
    const auto bit = static_cast<std::uint8_t>(1U << (event % 8));
    if ((byte & bit) != 0)
      return decode_status::duplicate_detector_index;
    byte = static_cast<std::uint8_t>(byte | bit);
  }
  return decode_status::ok;
}

/// Flips the bit of every index in the list, as often as it stands there. `packed` has room for all of them.
template <typename Indices>
void flip_bits(const Indices &indices, std::span<std::uint8_t> packed) noexcept {
  for (const std::size_t k : indices)
    packed[k / 8] = static_cast<std::uint8_t>(packed[k / 8] ^ 1U << k % 8);
}

} // namespace cudaq::qec::realtime
