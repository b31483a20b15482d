// SPDX-License-Identifier: Apache-2.0
// The bodies of the dispatch kernels, and the layout of their shared memory.
//
// Threads of a dispatcher on a device. The host starts the grid (launch.cuh); all its threads begin in serve_in_order
// (FIFO, cooperative) or serve_side_by_side (ANY).
//
//   threads                  own                          wait                           end
//   warp 0 of block 0        cursor, workspace, report,   poll rx flags (or the inbox)   library_shutdown, which stop()
//   (FIFO): the loop         command_block                                               sets, or the caller's flag;
//                                                                                        the other threads get send_end
//   other warps of block 0   nothing; they copy, and      __syncthreads for a            command::end in the block's
//   (FIFO): helper threads   call if cooperative          command (follow_commands)      command_block
//   blocks 1.. of a          their staging and            thread 0 polls the sequence    command::end in the
//   cooperative grid         command_block                number of grid_command, the    grid_command
//                                                         others wait at the barrier
//   each warp (ANY): a loop  workspace, report, slots     poll the rx flags of its       as warp 0 of block 0, each
//                            32 w .. 32 w + 31 and so on  slots                          warp by itself
//
// Warps beyond `groups` (ANY) return immediately. Blocks 1.. of a regular FIFO kernel are not launched.
#pragma once

#include "cudaq/realtime/detail/loop/handler_sets.h"
#include "cudaq/realtime/detail/loop/helper_threads.cuh"
#include "cudaq/realtime/detail/loop/posted_ring_transport.h"
#include "cudaq/realtime/detail/loop/shared_ring_transport.h"

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kSharedRoutes = 64; ///< larger tables stay in device memory

/// A copy of the function index in shared memory. The loop may search it for every request, and every acquire empties
/// the first-level cache.
struct block_index {
  std::uint64_t handlers[kSharedRoutes];
  function_route routes[kSharedRoutes];
  function_bucket buckets[2 * kSharedRoutes];
};

/// Shared memory of a block. The workspaces of its groups follow, each with its staging.
struct block_memory {
  command_block commands;
  block_index index;
};

/// Bytes of a frame that a group stages: a slot, but not more than kDeviceStagingBytes.
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t staging_bytes(std::uint32_t slot_size) {
  return slot_size < kDeviceStagingBytes ? round16(slot_size) : kDeviceStagingBytes;
}
/// Rounds up to a line: workspaces hold counters that are aligned to a line.
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t round_line(std::size_t bytes) {
  return static_cast<std::uint32_t>((bytes + 127) & ~std::size_t{127});
}
template <class Kernel>
inline constexpr answer_staging kInOrderStaging =
    Kernel::is_cooperative ? answer_staging::one : answer_staging::in_order;
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t group_memory(std::uint32_t slot_size, answer_staging answers) {
  const std::uint32_t one = staging_bytes(slot_size);
  return round_line(sizeof(loop_workspace)) + round_line(one + 31 * out_pitch(slot_size, answers) + one);
}
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t kernel_memory(std::uint32_t slot_size, answer_staging answers,
                                                                 std::uint32_t groups = 1) {
  return round_line(sizeof(block_memory)) + groups * group_memory(slot_size, answers);
}

/// Address of the workspace of group `number` of the block; its staging follows.
__device__ inline std::uint8_t *workspace_memory(std::uint8_t *memory, std::uint32_t number, std::uint32_t slot_size,
                                                 answer_staging answers) {
  return memory + round_line(sizeof(block_memory)) + number * group_memory(slot_size, answers);
}
/// Prepares and returns the workspace of group `number` of the block.
__device__ inline loop_workspace &make_workspace(std::uint8_t *memory, std::uint32_t number, std::uint32_t slot_size,
                                                 answer_staging answers) {
  std::uint8_t *const at = workspace_memory(memory, number, slot_size, answers);
  auto &workspace = *reinterpret_cast<loop_workspace *>(at);
  if (warp_thread_group::lane() == 0) {
    workspace.staging_bytes = staging_bytes(slot_size);
    workspace.in = at + round_line(sizeof(loop_workspace));
    workspace.out = workspace.in + workspace.staging_bytes;
    workspace.out_pitch = out_pitch(slot_size, answers);
  }
  __syncwarp();
  return workspace;
}

/// Handlers of a kernel. All threads of a block call `prepare`, once. kSharesRings: the kernel also has variants for
/// rings that other dispatchers serve.
struct run_time_handlers {
  static constexpr bool kSharesRings = false;
  using set = table_handler_set;
  __device__ static set prepare(const dispatch_params &p, block_index &shared) {
    function_index_view index = p.index;
    if (index.num_routes > kSharedRoutes || index.bucket_mask >= 2 * kSharedRoutes)
      return {index, p.handlers};
    for (std::uint32_t i = threadIdx.x; i < index.num_routes; i += blockDim.x) {
      shared.routes[i] = index.routes[i];
      shared.handlers[i] = p.handlers[i];
    }
    for (std::uint32_t i = threadIdx.x; i <= index.bucket_mask; i += blockDim.x)
      shared.buckets[i] = index.buckets[i];
    index.routes = shared.routes;
    index.buckets = shared.buckets;
    __syncthreads();
    return {index, shared.handlers};
  }
};
template <class... StaticHandlers>
struct compile_time_handlers {
  static constexpr bool kSharesRings = false; // the router does not know these functions
  using set = static_handler_set<StaticHandlers...>;
  __device__ static set prepare(const dispatch_params &, block_index &) { return {}; }
};

/// The transport of a kernel. Second argument of open(): the shared memory after that of kernel_memory, if there is
/// any.
template <thread_scope Scope>
struct own_ring {
  using transport = ring_transport<warp_thread_group, Scope>;
  __device__ static transport open(const dispatch_params &p, std::uint8_t *) { return {p.ring, p.first_slot}; }
};
struct posted_ring {
  using transport = posted_ring_transport<warp_thread_group>;
  __device__ static transport open(const dispatch_params &p, std::uint8_t *) { return {p.ring, p.first_slot}; }
};
struct routed_ring {
  using transport = inbox_transport<warp_thread_group>;
  static constexpr std::uint32_t kTrailingBytes = transport::kLooked * sizeof(std::uint32_t);
  __device__ static transport open(const dispatch_params &p, std::uint8_t *trailing) {
    return {p.ring, p.inbox, reinterpret_cast<std::uint32_t *>(trailing)};
  }
};
struct common_ring {
  using transport = leaving_transport<warp_thread_group>;
  __device__ static transport open(const dispatch_params &p, std::uint8_t *) {
    return {p.ring, p.first_slot, p.index, p.rules.served_modes};
  }
};

/// FIFO and cooperative kernels. The first warp of the first block runs the loop.
template <class Kernel, class Handlers, class Ring>
__device__ void serve_in_order(const dispatch_params &p, std::uint8_t *memory) {
  auto &shared = *reinterpret_cast<block_memory *>(memory);
  const auto handlers = Handlers::prepare(p, shared.index);
  constexpr answer_staging kStaging = kInOrderStaging<Kernel>;
  helper_threads<Kernel> helpers(
      shared.commands, workspace_memory(memory, 0, p.ring.slot_size, kStaging) + round_line(sizeof(loop_workspace)), p);
  if (blockIdx.x != 0) {
    if constexpr (Kernel::is_cooperative)
      helpers.follow_grid_commands(handlers);
    return;
  }
  if (threadIdx.x >= warp_thread_group::kWidth) {
    helpers.follow_commands(handlers);
    return;
  }
  loop_workspace &workspace = make_workspace(memory, 0, p.ring.slot_size, kStaging);
  dispatch_loop<warp_thread_group, typename Ring::transport, typename Handlers::set, helper_threads<Kernel>, false>
      loop(p, 0, workspace, Ring::open(p, memory + kernel_memory(p.ring.slot_size, kStaging)), handlers, helpers);
  loop.run(1);
  helpers.send_end();
}

/// ANY: each of the first `groups` warps of the grid runs a loop.
template <class Handlers, class Ring>
__device__ void serve_side_by_side(const dispatch_params &p, std::uint8_t *memory, std::uint32_t groups) {
  auto &shared = *reinterpret_cast<block_memory *>(memory);
  const auto handlers = Handlers::prepare(p, shared.index);
  const std::uint32_t here = threadIdx.x / warp_thread_group::kWidth;
  const std::uint32_t number = blockIdx.x * (blockDim.x / warp_thread_group::kWidth) + here;
  if (number >= groups)
    return;
  loop_workspace &workspace = make_workspace(memory, here, p.ring.slot_size, answer_staging::by_lane);
  no_helpers<warp_thread_group> helpers;
  dispatch_loop<warp_thread_group, typename Ring::transport, typename Handlers::set, no_helpers<warp_thread_group>,
                true>
      loop(p, number, workspace, Ring::open(p, nullptr), handlers, helpers);
  loop.run(groups);
}

/// Internal linkage: each module that instantiates the kernel launches its own kernel.
template <class Kernel, class Handlers, class Ring, std::uint32_t MaxThreads>
static __global__ void __launch_bounds__(MaxThreads, 1)
    dispatch_in_order_kernel(const __grid_constant__ dispatch_params p) {
  extern __shared__ __align__(128) std::uint8_t cudaq_dispatch_memory[];
  serve_in_order<Kernel, Handlers, Ring>(p, cudaq_dispatch_memory);
}
/// Ring: own_ring or posted_ring.
template <class Handlers, class Ring, std::uint32_t MaxThreads>
static __global__ void __launch_bounds__(MaxThreads, 1)
    dispatch_side_by_side_kernel(const __grid_constant__ dispatch_params p, std::uint32_t groups) {
  extern __shared__ __align__(128) std::uint8_t cudaq_dispatch_memory[];
  serve_side_by_side<Handlers, Ring>(p, cudaq_dispatch_memory, groups);
}

} // namespace cudaq::realtime::detail
