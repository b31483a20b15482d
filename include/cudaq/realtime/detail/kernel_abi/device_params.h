// SPDX-License-Identifier: Apache-2.0
// The state of one dispatcher that its kernel receives, and the report that the kernel writes for the host. There is no
// module-wide state.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include "cudaq/realtime/detail/ring/judge.h"
#include "cudaq/realtime/detail/ring/ring_inbox.h"

#include <cuda_runtime_api.h>

namespace cudaq::realtime::detail {

/// Bytes of a request, and of a response, that a kernel stages in shared memory. Longer frames are read and written in
/// the slot itself, byte by byte, by the handler.
inline constexpr std::uint32_t kDeviceStagingBytes = 16384 + 128;

// Values of loop_report::fault with device hooks.
inline constexpr cudaError_t kNotAttached = cudaErrorInvalidResourceHandle; ///< attach returned no session
inline constexpr cudaError_t kWrongFrames = cudaErrorMisalignedAddress;     ///< rx_poll returned frames of no use

/// The report of one loop (a leading warp) to the host, in mapped memory. The loop writes it with posted stores,
/// shortly after the answers that it counts. One loop writes; the host reads at any time. The counters of a dispatcher
/// are the sums over its loops.
struct alignas(128) loop_report {
  std::uint64_t dispatched, responded, refused;
  std::uint64_t dropped_bad_magic, dropped_unknown_function, dropped_flag_value;
  std::uint64_t unexpected_flag_values, handler_errors, cursor_jumps;
  std::uint64_t protocol_errors[CUDAQ_RPC_ERROR_COUNT];
  std::uint64_t heartbeat; ///< increases while the loop runs
  std::uint64_t polls;     ///< looks at the ring
  std::uint32_t cursor;    ///< slot of the next look
  std::uint32_t fault;     ///< cudaError_t that ended all scheduler graphs, or a transport; 0: no error
  /// Slot + 1 of the handler call in progress, or of the first of several. Soon after it 0; before, also the next slot,
  /// whose request is not there yet.
  std::uint64_t busy;
  std::uint64_t launches, relaunches; ///< launches of graphs; relaunches of scheduler graphs by themselves
  std::uint64_t unrelieved;           ///< relaunches while no other member could take the token
};
static_assert(sizeof(loop_report) == 256);

/// The record by which the first block of a cooperative grid sends commands to the other blocks; device memory.
struct alignas(128) grid_command {
  /// Low half: counts commands. High half: bytes of the frame that is staged for all blocks, or 0.
  std::uint64_t sequence;
  std::uint32_t arrivals;    ///< counts blocks that have executed a command
  std::uint32_t kind, route; ///< the command itself
  std::uint32_t arg_len, max_result_len;
  std::uint64_t input, output; ///< device addresses; input is 0 if the frame is staged
};

/// Which other dispatchers take requests from a kernel's ring.
enum class ring_sharing : std::uint8_t {
  alone,         ///< none: requests that the table does not serve are dropped or answered
  routed,        ///< others; the router on the host puts the kernel's requests into its inbox
  left_in_place, ///< others, without a router: requests that the table does not serve stay in their slots
};

/// Kernel argument, by value. Pointers are device addresses.
struct dispatch_params {
  slot_ring ring;
  function_index_view index;                       ///< in device memory
  const std::uint64_t *handlers = nullptr;         ///< by route: address of the device function
  const std::uint32_t *library_shutdown = nullptr; ///< device memory, written by the host
  volatile int *caller_shutdown = nullptr;
  std::uint64_t *caller_stats = nullptr; ///< the loops add to it
  loop_report *reports = nullptr;        ///< num_loops(...) reports
  grid_command *command = nullptr;       ///< cooperative kernels
  std::uint8_t *grid_staging = nullptr;  ///< cooperative, several blocks: kDeviceStagingBytes in, the same out
  std::uint32_t first_slot = 0;
  judge_rules rules;
  bool any_order = false;
  bool device_scope = false; ///< all threads that touch the ring run on this device
  ring_sharing sharing = ring_sharing::alone;
  ring_inbox inbox;              ///< if sharing is `routed`
  void *transport_ctx = nullptr; ///< device hooks: the provider's context
};

/// Number of loops of a launch with these settings: with ANY ordering every warp is a loop, otherwise only the first
/// warp is.
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t num_loops(bool any_order, std::uint32_t blocks,
                                                             std::uint32_t threads) {
  return any_order ? blocks * ((threads + 31) / 32) : 1;
}

} // namespace cudaq::realtime::detail
