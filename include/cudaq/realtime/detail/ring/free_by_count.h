// SPDX-License-Identifier: Apache-2.0
// The free test of a CPU that does not know how often a slot of a ring with laps was signalled.
#pragma once

#include "cudaq/realtime/detail/base/slot_memory.h"
#include "cudaq/realtime/detail/ring/slot_ring.h"

namespace cudaq::realtime::detail {

/// With laps: true if the slot is free, for a producer that does not know how often it was signalled. Reads rx and
/// count across the bus, about 1 us each, but only if no answer is in the slot. rx = 0 alone proves nothing: the
/// device's stores of rx and of an answer's tx are seen in any order. Once rx is 0 the count is final, and the lap that
/// equals it comes after tx.
inline bool is_free_by_count(const slot_ring &ring, std::uint32_t slot) {
  if (!ring.collected(slot) || ring.ready(slot) != 0)
    return false;
  fence_posted_loads();
  return ring.free_after(slot, load_relaxed(ring.rx_flags[slot + ring.lap_offset]));
}

} // namespace cudaq::realtime::detail
