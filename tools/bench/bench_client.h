// SPDX-License-Identifier: Apache-2.0
// The CPU's side of the device benchmark: clients of a ring in mapped memory that keep no books beyond the check of
// every reply. The same code drives floor kernels and dispatchers.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "tools/common/exchange.h"

#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::realtime::tools {

/// What a good reply holds.
enum class reply_rule : std::uint8_t {
  echo,      ///< the request
  add_words, ///< each 4-byte word plus 1
  add_bytes, ///< each byte plus 1
  last_word, ///< as long as the request; its last 4-byte word is the request's first, all bits inverted
};

/// Whether `reply` is right for `request`; both of one length, a multiple of 8.
bool reply_follows(reply_rule rule, std::span<const std::uint64_t> request, std::span<const std::uint64_t> reply);

struct client_config {
  std::uint64_t exchanges = 0;
  std::uint64_t warm_up = 0;     ///< before them, checked but not measured
  std::size_t payload_bytes = 8; ///< multiple of 8, at least 8
  std::uint32_t function_id = 0;
  reply_rule rule = reply_rule::echo;
  std::uint64_t seed = 1;
  std::uint64_t timeout_ns = 0;
  bool share_core = false; ///< fewer cores than threads
};

/// One request at a time, in ring order from slot 0. Timed: from just before the rx flag is raised to just after the tx
/// flag was seen; the free test, the frame and the check of the reply lie outside. Throws exchange_stalled.
loop_result exchange_one_by_one(const cudaq_ringbuffer_t &ring, std::uint32_t slots, const client_config &config,
                                const tick_scale &scale);

/// The same against a floor that clears no flags: both flags of a slot count up, starting from 0 in all of them.
/// payload_bytes 0: flags only, nothing is written and nothing checked but the flag.
loop_result exchange_counting_flags(const cudaq_ringbuffer_t &ring, std::uint32_t slots, const client_config &config,
                                    const tick_scale &scale);

/// Two threads: one keeps all slots full in ring order from slot 0, one collects in ring order. Every 16th exchange is
/// timed. `cores`: sender, collector; empty: not pinned.
loop_result exchange_full_ring(const cudaq_ringbuffer_t &ring, std::uint32_t slots, const client_config &config,
                               const tick_scale &scale, const std::vector<int> &cores);

/// Slots are shared out among `threads` threads, in whole cache lines of flags; each keeps its slots full and collects
/// in whatever order the answers come. Exchanges are rounded down to whole ones per thread. `cores`: one for each, or
/// empty.
loop_result exchange_any_order(const cudaq_ringbuffer_t &ring, std::uint32_t slots, const client_config &config,
                               const tick_scale &scale, unsigned threads, const std::vector<int> &cores);

/// Threads that exchange_any_order can use for so many slots, at most `wanted`.
unsigned usable_threads(std::uint32_t slots, unsigned wanted);

} // namespace cudaq::realtime::tools
