// SPDX-License-Identifier: Apache-2.0
// The record of a ring that cudaq_ringbuffer_create has made, for code that has only addresses of the ring.
//
// A process has no list of its rings, because the library keeps no process-wide state. So the record lies in the ring's
// own memory, at a fixed distance before its first flags in host memory: the tx flags of a ring with requests in device
// memory, the rx flags of any other ring. Before the flags of a foreign ring there is foreign memory. Two rules make it
// safe to look there: the flags after a record have a certain offset in their page, and the record is in the same
// page, so it can be read; and a record is used only if it holds two magic numbers and its own address.
#pragma once

#include "cudaq/realtime/detail/base/flag_word.h"
#include "cudaq/realtime/detail/base/shared_word.h"

#include <cstddef>

namespace cudaq::realtime::detail {

inline constexpr std::size_t kPageBytes = 4096;          ///< a page of the host has at least this size
inline constexpr std::size_t kFlagsOffsetInPage = 0x580; ///< of the flags after a record; a multiple of 128

struct alignas(64) ring_record {
  std::uint64_t magic[2];
  std::uint64_t self;               ///< address of this record
  shared_word<std::uint64_t> owner; ///< manager whose dispatcher runs on the ring (lib/api/ring_claims.h); 0: none.
                                    ///< While the ring is destroyed: the address of its memory object
  std::uint64_t lap_offset;         ///< scoped_slot_ring::lap_offset
  std::uint64_t requests;           ///< the CPU's address of rx_data
};
static_assert(sizeof(ring_record) == 64 && kFlagsOffsetInPage >= sizeof(ring_record));

/// An owner that has ended and left a graph which may still write to the ring.
inline constexpr std::uint64_t kOwnerLeftAGraph = 1;

inline constexpr std::uint64_t kRecordMagic[2] = {0x9D2C5680B1F30E47u, 0x71C6A3E85DF4029Bu};

// The memory may be foreign: part of an object of the program, or between two objects. A sanitizer would report that.
__attribute__((noinline, no_sanitize("address"), no_sanitize("thread"))) inline bool
holds_record(const void *at, bool of_this_process) {
  std::uint64_t words[3];
  for (int i = 0; i < 3; ++i)
    __builtin_memcpy(&words[i], static_cast<const std::uint64_t *>(at) + i, sizeof(words[i]));
  return words[0] == kRecordMagic[0] && words[1] == kRecordMagic[1] &&
         (!of_this_process || words[2] == reinterpret_cast<std::uint64_t>(at));
}

/// The record before these flags, given as the host's address of them. NULL: there is none. of_this_process: if not,
/// also the record of a ring of another process, whose memory this process has mapped: it holds its address there.
inline ring_record *find_record(const volatile std::uint64_t *flags, bool of_this_process = true) {
  if (flags == nullptr || reinterpret_cast<std::uintptr_t>(flags) % kPageBytes != kFlagsOffsetInPage)
    return nullptr;
  auto *const record = reinterpret_cast<ring_record *>(reinterpret_cast<std::uintptr_t>(flags)) - 1;
  return holds_record(record, of_this_process) ? record : nullptr;
}

/// Bytes of an array of flags in a ring of the library. Flags of different owners do not share a pair of cache lines,
/// and the second array of a ring does not lie where a record would be looked for.
inline constexpr std::size_t flag_bytes(std::uint32_t num_slots) {
  constexpr std::size_t kLines = 128;
  const std::size_t bytes = (std::size_t{num_slots} * sizeof(std::uint64_t) + kLines - 1) / kLines * kLines;
  return bytes + (bytes % kPageBytes == 0 ? kLines : 0);
}

/// Words from the flags of a ring to its counts and its laps.
inline constexpr std::size_t lap_distance(std::uint32_t num_slots) {
  return flag_bytes(num_slots) / sizeof(std::uint64_t);
}

/// The record of a ring with requests in device memory, found by its tx flags, given as the host's address of them.
/// NULL for any other ring. A record whose distance does not fit the ring is not one of the library. A process that
/// shares the memory may write the record at any time: use lap_distance, not what the record holds.
inline const ring_record *find_lap_record(const volatile std::uint64_t *tx_flags, std::uint32_t num_slots) {
  const ring_record *const record = find_record(tx_flags);
  const bool fits = record != nullptr && load_relaxed(record->lap_offset) == lap_distance(num_slots);
  return fits ? record : nullptr;
}
inline std::size_t lap_offset_of(const volatile std::uint64_t *tx_flags, std::uint32_t num_slots) {
  return find_lap_record(tx_flags, num_slots) != nullptr ? lap_distance(num_slots) : 0;
}

} // namespace cudaq::realtime::detail
