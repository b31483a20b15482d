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
//
// With requests in the memory of a GPU (--requests gpu) the rx side is in that memory, and the segment has the laps of
// docs/ring_protocol.md section 13:
//
//      GPU memory: rx_flags | counts | rx_data            segment: head | record | tx_flags | laps | tx_data
//
// The tx flags lie where the library looks for a record before them (ring_record.h), by which it finds the laps.
#pragma once

#include "cudaq/realtime/detail/ring/ring_record.h"
#include "lib/transport/shm/shm_bell.h"

#include <algorithm>
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
  // bytes that a client has written.
  constexpr std::uint64_t kPage = 4096, kFlagsAfterRecord = 0x580;
  at.tx_flags += at.tx_flags % kPage == kFlagsAfterRecord ? kLines : 0;
  at.rx_data = shm_round_up(at.tx_flags + num_slots * sizeof(std::uint64_t), kLines);
  at.tx_data = shm_round_up(at.rx_data + num_slots * at.stride, page);
  at.bytes = shm_round_up(at.tx_data + num_slots * at.stride, page);
  return at;
}

/// The layout with requests in the memory of a GPU: rx_flags and rx_data are offsets in that memory.
inline constexpr shm_layout make_gpu_layout(std::uint32_t num_slots, std::uint32_t slot_size, std::uint64_t page) {
  static_assert(kFlagsOffsetInPage >= sizeof(shm_head) + sizeof(ring_record));
  shm_layout at;
  at.num_slots = num_slots, at.slot_size = slot_size;
  at.stride = shm_round_up(slot_size, 64);
  at.rx_data = 2 * flag_bytes(num_slots);
  at.tx_flags = kFlagsOffsetInPage;
  at.tx_data = shm_round_up(at.tx_flags + 2 * flag_bytes(num_slots), page);
  at.bytes = shm_round_up(at.tx_data + num_slots * at.stride, page);
  return at;
}
/// Bytes of the GPU memory of such a layout.
inline constexpr std::uint64_t gpu_bytes(const shm_layout &at) { return at.rx_data + at.num_slots * at.stride; }

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
