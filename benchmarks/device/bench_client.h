// SPDX-License-Identifier: Apache-2.0
// Clients of a ring beyond those of tools/ring/ring_exchange.h: with several threads, and for floors whose flags count.
#pragma once

#include "tools/ring/ring_exchange.h"

#include <cstdint>
#include <vector>

namespace cudaq::realtime::tools {

/// As exchange_one_by_one, for a floor that clears no flags: both flags of a slot count up. All flags must be 0 at the
/// begin. payload_bytes 0: only flags; no frame is written, and no reply is checked.
loop_result exchange_counting_flags(const cudaq_ringbuffer_t &ring, std::uint32_t slots, const exchange_config &config,
                                    const tick_scale &scale);

/// Starts two threads and waits for both. One keeps all slots full, in ring order from slot 0; the other collects in
/// ring order. Every 16th exchange is timed. `cores`: of sender and collector; fewer than two: not pinned.
loop_result exchange_full_ring(const ring_port &port, std::uint32_t slots, const exchange_config &config,
                               const tick_scale &scale, const std::vector<int> &cores);

/// Starts up to `threads` threads and waits for all. The slots are divided among them, in units of 16 flags (a pair of
/// cache lines). Each thread keeps its slots full, and collects answers in any order. The number of exchanges is
/// rounded down to a multiple of the number of threads. `cores`: one for each thread; threads without one are not
/// pinned.
loop_result exchange_any_order(const ring_port &port, std::uint32_t slots, const exchange_config &config,
                               const tick_scale &scale, unsigned threads, const std::vector<int> &cores);

/// Number of threads that exchange_any_order can use for `slots` slots, at most `wanted`.
unsigned usable_threads(std::uint32_t slots, unsigned wanted);

} // namespace cudaq::realtime::tools
