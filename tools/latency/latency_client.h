// SPDX-License-Identifier: Apache-2.0
// The client of a ring for `latency`. It keeps no records except for the check of the reply. The same code measures the
// dispatcher and floor (b).
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"
#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "tools/common/exchange.h"

#include <cstdint>

namespace cudaq::realtime::tools {

/// HOST_CALL handler: transforms the payload word by word.
std::int32_t transform_handler(cudaq_host_call_t *call, void *user) noexcept;

/// One request at a time, in ring order from slot 0. The measured time begins before the frame is written and ends
/// after the result is copied out. The test that the slot is free, and giving the slot back, are outside of that time,
/// but inside laps and wall_ns. Throws exchange_stalled if an answer does not come within config.timeout_ns.
loop_result exchange_closed_loop(const cudaq_ringbuffer_t &ring, std::uint32_t slots, std::uint32_t function_id,
                                 const loop_config &config, const tick_scale &scale);

/// As many requests in flight as the ring has slots; answers are collected in order. Every kSampleEvery-th request is
/// timed, from before its frame is written to after its result is copied out. Throws exchange_stalled if neither a
/// request can be sent nor an answer collected for config.timeout_ns.
inline constexpr std::uint64_t kSampleEvery = 16;
loop_result exchange_pipelined(const cudaq_ringbuffer_t &ring, std::uint32_t slots, std::uint32_t function_id,
                               const loop_config &config, const tick_scale &scale);

} // namespace cudaq::realtime::tools
