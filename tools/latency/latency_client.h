// SPDX-License-Identifier: Apache-2.0
// The client of a ring as `latency` needs it: no bookkeeping beyond the check of the reply. The same code drives the
// dispatcher and floor (b).
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"
#include "tools/common/exchange.h"

#include <cstdint>

namespace cudaq::realtime::tools {

/// HOST_CALL handler: transforms the payload word by word.
std::int32_t transform_handler(cudaq_host_call_t *call, void *user) noexcept;

/// One request at a time, in ring order from slot 0. Timed: from before the frame is written to after the result
/// is copied out. The free test and giving the slot back are outside of that, but inside laps and wall_ns.
loop_result exchange_closed_loop(const cudaq_ringbuffer_t &ring, std::uint32_t slots, std::uint32_t function_id,
                                 const loop_config &config, const tick_scale &scale);

/// As many requests in flight as the ring has slots, collected in order. Every kSampleEvery-th request is timed, from
/// before its frame is written to after its result is copied out.
inline constexpr std::uint64_t kSampleEvery = 16;
loop_result exchange_pipelined(const cudaq_ringbuffer_t &ring, std::uint32_t slots, std::uint32_t function_id,
                               const loop_config &config, const tick_scale &scale);

} // namespace cudaq::realtime::tools
