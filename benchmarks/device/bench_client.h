// SPDX-License-Identifier: Apache-2.0
// The CPU's side of the device benchmark: clients of a ring in mapped memory. They keep no records except for the check
// of every reply. The same code measures floor kernels and dispatchers.
#pragma once

#include "benchmarks/device/request_port.h"
#include "tools/common/exchange.h"

#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::realtime::tools {

/// The content of a right reply.
enum class reply_rule : std::uint8_t {
  echo,      ///< the request
  add_words, ///< each 4-byte word plus 1
  add_bytes, ///< each byte plus 1
  last_word, ///< as long as the request; its last 4-byte word is the request's first, all bits inverted
};

/// True if `reply` is right for `request`. False if their lengths differ or if they are empty.
bool reply_follows(reply_rule rule, std::span<const std::uint64_t> request, std::span<const std::uint64_t> reply);

struct client_config {
  std::uint64_t exchanges = 0;
  std::uint64_t warm_up = 0;     ///< exchanges before the measured ones; checked, not measured
  std::size_t payload_bytes = 8; ///< multiple of 8, at least 8
  std::uint32_t function_id = 0;
  reply_rule rule = reply_rule::echo;
  std::uint64_t seed = 1;
  std::uint64_t timeout_ns = 0;
  bool share_core = false; ///< there are fewer cores than threads: yield at every poll
};

/// One request at a time, in ring order from slot 0. The measured time begins just before the rx flag is set and ends
/// just after the tx flag is seen. The test that the slot is free, writing the frame, and the check of the reply are
/// outside. Throws exchange_stalled.
loop_result exchange_one_by_one(const request_port &port, std::uint32_t slots, const client_config &config,
                                const tick_scale &scale);

/// The same for a floor that clears no flags: both flags of a slot count up. All flags must be 0 at the begin.
/// payload_bytes 0: only flags; no frame is written, and no reply is checked.
loop_result exchange_counting_flags(const cudaq_ringbuffer_t &ring, std::uint32_t slots, const client_config &config,
                                    const tick_scale &scale);

/// Starts two threads and waits for both. One keeps all slots full, in ring order from slot 0; the other collects in
/// ring order. Every 16th exchange is timed. `cores`: of sender and collector; fewer than two: not pinned.
loop_result exchange_full_ring(const request_port &port, std::uint32_t slots, const client_config &config,
                               const tick_scale &scale, const std::vector<int> &cores);

/// Starts up to `threads` threads and waits for all. The slots are divided among them, in units of 16 flags (a pair of
/// cache lines). Each thread keeps its slots full, and collects answers in any order. The number of exchanges is
/// rounded down to a multiple of the number of threads. `cores`: one for each thread; threads without one are not
/// pinned.
loop_result exchange_any_order(const cudaq_ringbuffer_t &ring, std::uint32_t slots, const client_config &config,
                               const tick_scale &scale, unsigned threads, const std::vector<int> &cores);

/// Number of threads that exchange_any_order can use for `slots` slots, at most `wanted`.
unsigned usable_threads(std::uint32_t slots, unsigned wanted);

} // namespace cudaq::realtime::tools
