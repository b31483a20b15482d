// SPDX-License-Identifier: Apache-2.0
// The memory that a server and one client share: one segment, with one ring. docs/transport/transport_shm.md has the
// reasons.
//
// Example: 8 slots of 256 bytes, pages of 4096 bytes
//
//      0  head         the bell of the client
//    128  rx_flags     8 words
//    256  tx_flags     8 words
//    384  rx_data      8 * 256, then up to the next page
//   4096  tx_data      8 * 256, then up to the next page
//   8192  end
//
// A server maps the segments of all clients into two ranges of addresses, the part before tx_data into one and tx_data
// into the other, so that one base and one stride address the requests of all clients, and another base the answers:
// client k has the slot numbers from k * span. A window, the part of a range that one client gets, is a multiple of the
// page and of the stride; here it has 4096 bytes, and span is 16. Only the first 8 numbers of each span are used.
#pragma once

#include "lib/transport/shm/shm_bell.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <unistd.h>

namespace cudaq::realtime::detail {

/// What lies at offset 0 of a segment. A client may write anything into it.
struct shm_head {
  alignas(128) shm_bell answers; ///< rung by the server after an answer, for a client that waits in the kernel
};
static_assert(sizeof(shm_head) == 128);

/// Offsets in a segment, in bytes. The server keeps its own copy; a client gets one when it attaches.
struct shm_layout {
  std::uint32_t num_slots = 0;
  std::uint32_t slot_size = 0; ///< usable bytes of a slot, header included
  std::uint64_t stride = 0;
  std::uint64_t rx_flags = 0, tx_flags = 0, rx_data = 0, tx_data = 0;
  std::uint64_t bytes = 0; ///< of the segment

  bool operator==(const shm_layout &) const = default;
};

inline constexpr std::uint64_t shm_round_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

inline constexpr shm_layout make_shm_layout(std::uint32_t num_slots, std::uint32_t slot_size, std::uint64_t page) {
  constexpr std::uint64_t kLines = 128; // the adjacent-line prefetcher reads pairs of lines
  shm_layout at;
  at.num_slots = num_slots, at.slot_size = slot_size;
  at.stride = shm_round_up(slot_size, 64);
  at.rx_flags = sizeof(shm_head);
  at.tx_flags = shm_round_up(at.rx_flags + num_slots * sizeof(std::uint64_t), kLines);
  // The library looks for a record of its own before flags at this offset in a page (ring_record.h). Here it would find
  // what a client has written.
  constexpr std::uint64_t kPage = 4096, kFlagsAfterRecord = 0x580;
  at.tx_flags += at.tx_flags % kPage == kFlagsAfterRecord ? kLines : 0;
  at.rx_data = shm_round_up(at.tx_flags + num_slots * sizeof(std::uint64_t), kLines);
  at.tx_data = shm_round_up(at.rx_data + num_slots * at.stride, page);
  at.bytes = shm_round_up(at.tx_data + num_slots * at.stride, page);
  return at;
}

inline std::uint64_t shm_page(bool huge) {
  return huge ? 2u << 20 : static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// The bytes of each range that a segment gets, and the slot numbers.
inline constexpr std::uint64_t shm_window(const shm_layout &at, std::uint64_t page) {
  return shm_round_up(std::max(at.tx_data, at.bytes - at.tx_data), std::lcm(page, at.stride));
}
inline constexpr std::uint32_t shm_span(const shm_layout &at, std::uint64_t page) {
  return static_cast<std::uint32_t>(shm_window(at, page) / at.stride);
}

} // namespace cudaq::realtime::detail
