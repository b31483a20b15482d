// SPDX-License-Identifier: Apache-2.0
// What a dispatch kernel is given, and what it tells the host: the per-dispatcher state. Nothing is module-wide.
#pragma once

#include "cudaq/realtime/detail/ring/judge.h"
#include "cudaq/realtime/detail/ring/ring_inbox.h"

namespace cudaq::realtime::detail {

/// Bytes of a request, and of a response, that a kernel stages in shared memory. Longer ones are read and written in
/// the slot itself, byte by byte as the handler goes.
inline constexpr std::uint32_t kDeviceStagingBytes = 16384 + 128;

/// What one loop (a leading warp) tells the host, in mapped memory: posted stores close behind the answers that they
/// count. One loop writes, the host reads at any time; sums over the loops of a dispatcher are its counters.
struct alignas(128) loop_report {
  std::uint64_t dispatched, responded, refused;
  std::uint64_t dropped_bad_magic, dropped_unknown_function, dropped_flag_value;
  std::uint64_t unexpected_flag_values, handler_errors, cursor_jumps;
  std::uint64_t protocol_errors[CUDAQ_RPC_ERROR_COUNT];
  std::uint64_t heartbeat; ///< moves while the loop turns
  std::uint64_t polls;     ///< looks at the ring
  std::uint32_t cursor;    ///< slot that is looked at next
  std::uint32_t fault;     ///< cudaError_t: why no scheduler of graphs could go on; else 0
  std::uint64_t busy;      ///< slot + 1 of the handler call in progress, or of the first of several; 0 soon after
  std::uint64_t launches, relaunches; ///< of graphs, and of the scheduler by itself
  std::uint64_t unrelieved;           ///< of the relaunches, those with no other scheduler there to go on
};
static_assert(sizeof(loop_report) == 256);

/// How the blocks of a cooperative grid follow the loop of the first one; device memory.
struct alignas(128) grid_command {
  std::uint64_t
      sequence; ///< counts commands in its low half; high half: bytes of the frame that is staged for all, or 0
  std::uint32_t arrivals;    ///< counts blocks that have carried one out
  std::uint32_t kind, route; ///< the command itself
  std::uint32_t arg_len, max_result_len;
  std::uint64_t input, output; ///< device addresses; no input if it is staged
};

/// Who else takes requests from a kernel's ring.
enum class ring_sharing : std::uint8_t {
  alone,         ///< nobody: what is no request of ours is disposed of
  routed,        ///< others; the host's router says in the inbox which requests are ours
  left_in_place, ///< others, and nobody routes: what is not ours stays in its slot
};

/// Kernel argument, by value. Pointers are device addresses.
struct dispatch_params {
  slot_ring ring;
  function_index_view index;                       ///< in device memory
  const std::uint64_t *handlers = nullptr;         ///< by route: address of the device function
  const std::uint32_t *library_shutdown = nullptr; ///< device memory, written by the host
  volatile int *caller_shutdown = nullptr;
  std::uint64_t *caller_stats = nullptr; ///< the loops add to it
  loop_report *reports = nullptr;        ///< num_loops(...) of them
  grid_command *command = nullptr;       ///< cooperative kernels
  std::uint8_t *grid_staging = nullptr;  ///< cooperative kernels of several blocks: kDeviceStagingBytes in, as many out
  std::uint32_t first_slot = 0;
  judge_rules rules;
  bool any_order = false;
  bool device_scope = false; ///< everybody who touches the ring runs on this device
  ring_sharing sharing = ring_sharing::alone;
  ring_inbox inbox; ///< if routed
};

/// Loops that a launch with these settings runs: with ANY ordering every warp is one, otherwise the first warp is.
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t num_loops(bool any_order, std::uint32_t blocks,
                                                             std::uint32_t threads) {
  return any_order ? blocks * ((threads + 31) / 32) : 1;
}

} // namespace cudaq::realtime::detail
