// SPDX-License-Identifier: Apache-2.0
// The inbox by which the router of a shared ring hands slots to a dispatcher on the other side of a bus. Atomic
// read-modify-writes do not work across the bus, so the inbox uses loads and stores of words that have one writer each.
// docs/ring_protocol.md section 9.
//
//   router      put(position, sequence, slot)           the next request of this dispatcher is in `slot`
//   dispatcher  taken(position, sequence, slot)         true: serves the slot, publishes tx, clears rx
//   dispatcher  post_answered(slot, sequence)           only after that: else the router takes the answered request
//                                                       for a new one
//   router      answered(slot) == sequence              the router may read the slot's rx flag again, after this
//
// Both sides count positions from 0 to num_slots - 1 and sequences from 1 to kLast, and then start again. 0 is no
// sequence: unused words hold it. A slot has one sequence at a time, so at most num_slots entries wait, and an entry is
// read before its position is used again. At a million requests per second a sequence repeats after 12 days.
#pragma once

#include "cudaq/realtime/detail/base/flag_word.h"

#include <cstddef>

namespace cudaq::realtime::detail {

/// One side's view of the shared memory. Plain data.
struct ring_inbox {
  volatile std::uint64_t *entries = nullptr; ///< num_slots, written by the router: sequence << 24 | slot
  volatile std::uint64_t *answers = nullptr; ///< by slot, written by the dispatcher: the last answered sequence

  static constexpr std::uint32_t kMaxSlots = 1u << 24;
  static constexpr std::uint64_t kLast = (std::uint64_t{1} << 40) - 1;
  /// The n-th sequence after this one.
  CUDAQ_REALTIME_HOST_DEVICE static constexpr std::uint64_t after(std::uint64_t sequence, std::uint32_t n) {
    return sequence + n <= kLast ? sequence + n : sequence + n - kLast;
  }

  static constexpr std::size_t bytes(std::uint32_t num_slots) { return std::size_t{num_slots} * 16; }
  /// The inbox in `memory`, which is aligned to 8. `memory` is an address of the side that uses the view.
  static ring_inbox in(void *memory, std::uint32_t num_slots) {
    auto *const entries = static_cast<std::uint64_t *>(memory);
    return {entries, entries + num_slots};
  }

  void put(std::uint32_t position, std::uint64_t sequence, std::uint32_t slot) const {
    store_release(entries[position], sequence << 24 | slot);
  }
  std::uint64_t answered(std::uint32_t slot) const { return load_acquire(answers[slot]); }

  CUDAQ_REALTIME_HOST_DEVICE bool taken(std::uint32_t position, std::uint64_t sequence, std::uint32_t &slot) const {
    const std::uint64_t entry = load_acquire(entries[position]);
    slot = static_cast<std::uint32_t>(entry) & (kMaxSlots - 1);
    return entry >> 24 == sequence;
  }
  CUDAQ_REALTIME_HOST_DEVICE void post_answered(std::uint32_t slot, std::uint64_t sequence) const {
    store_release(answers[slot], sequence);
  }
};

} // namespace cudaq::realtime::detail
