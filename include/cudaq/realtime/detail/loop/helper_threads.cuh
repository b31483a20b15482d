// SPDX-License-Identifier: Apache-2.0
// The helper threads of a dispatch kernel: all threads except the leading warp. They wait at a barrier, which costs
// nothing, until the leader sends a command: copy a long frame, run a handler (cooperative), or end.
//
//   leader (warp 0 of block 0)      others of its block         other blocks (cooperative)
//   write the command               wait at the barrier         thread 0 polls the sequence number
//   sequence + 1, barrier      -->  read it                     barrier, read it, frame to their own staging
//   do its own part                 do their part               do their part, barrier
//   barrier                    <--  barrier                     arrivals + 1
//   wait for the arrivals
//
// The frame is copied for the other blocks (spread) while the leader judges it.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/kernel_types.h"
#include "cudaq/realtime/detail/loop/dispatch_loop.cuh"

namespace cudaq::realtime::detail {

enum class command : std::uint32_t { copy, fetch, call, end };

/// The current command, in shared memory.
struct command_block {
  command what;
  std::uint8_t *to;
  const std::uint8_t *from;
  std::uint32_t bytes;
  bool aligned16;
  std::uint32_t first; ///< first thread that copies
  handler_call call;
  std::int32_t status;
  std::uint32_t result_len;
};

template <class Kernel>
class helper_threads {
  using solo = no_helpers<warp_thread_group>;

public:
  static constexpr bool kAllThreadsCall = Kernel::is_cooperative;
  /// `staging`: room for a frame in the block's shared memory.
  __device__ helper_threads(command_block &current, std::uint8_t *staging, const dispatch_params &params)
      : command_(current), staging_(staging), grid_command_(params.command), grid_staging_(params.grid_staging) {}

  __device__ void copy(std::uint8_t *to, const std::uint8_t *from, std::uint32_t bytes, bool aligned16) {
    copy_together<command::copy>(to, from, bytes, aligned16);
  }
  /// The same from a slot, a whole number of words.
  __device__ void fetch(std::uint8_t *to, const std::uint8_t *slot, std::uint32_t bytes, bool aligned16) {
    copy_together<command::fetch>(to, slot, bytes, aligned16);
  }
  /// fetch() by the helper threads if there are enough of them, while the leader runs `meanwhile`.
  template <class Meanwhile>
  __device__ void fetch_while(std::uint8_t *to, const std::uint8_t *slot, std::uint32_t bytes, bool aligned16,
                              Meanwhile &&meanwhile) {
    finish_spread();
    const bool helped = blockDim.x >= 4 * warp_thread_group::kWidth && bytes > kGroupCopyBytes;
    if (helped)
      command_copy(command::fetch, to, slot, bytes, aligned16, warp_thread_group::kWidth);
    meanwhile();
    if (helped)
      __syncthreads();
    else
      fetch(to, slot, bytes, aligned16);
  }
  /// Starts the copy of a frame in the block's staging for the other blocks, while the leader judges it. The frame must
  /// stay in the staging until finish_spread().
  __device__ void spread(std::uint32_t bytes) {
    if (!Kernel::is_cooperative || gridDim.x == 1)
      return;
    finish_spread();
    spread_ = round16(bytes);
    if (blockDim.x > warp_thread_group::kWidth)
      command_copy(command::copy, grid_staging_, staging_, spread_, true, warp_thread_group::kWidth);
    else
      solo::copy(grid_staging_, staging_, spread_, true);
  }

  __device__ void finish_spread() {
    if (spread_ == 0)
      return;
    if (blockDim.x > warp_thread_group::kWidth)
      __syncthreads();
    else
      __syncwarp();
    spread_ = 0;
  }

  /// Where an answer is staged: memory that all threads that run the handler can write.
  __device__ std::uint8_t *out(std::uint8_t *staged) const {
    return Kernel::is_cooperative && gridDim.x > 1 ? grid_staging_ + kDeviceStagingBytes : staged;
  }

  template <class Handlers>
  __device__ std::int32_t call(const Handlers &handlers, handler_call c, std::uint32_t &result_len) {
    if constexpr (!Kernel::is_cooperative) {
      return solo::call(handlers, c, result_len);
    } else {
      if (gridDim.x > 1)
        send_call_to_grid(c);
      if (threadIdx.x == 0) {
        command_.what = command::call;
        command_.call = c;
      }
      __syncthreads();
      run(handlers);
      __syncthreads();
      if (gridDim.x > 1)
        wait_for_grid();
      result_len = command_.result_len;
      return command_.status;
    }
  }

  /// Leader: ends all other threads.
  __device__ void send_end() {
    finish_spread();
    if (threadIdx.x == 0)
      command_.what = command::end;
    if (Kernel::is_cooperative && gridDim.x > 1 && threadIdx.x == 0)
      send_to_grid(command::end, 0);
    if (blockDim.x > warp_thread_group::kWidth)
      __syncthreads();
  }

  /// Body of the other warps of the leader's block.
  template <class Handlers>
  __device__ void follow_commands(const Handlers &handlers) {
    for (;;) {
      __syncthreads();
      const command what = command_.what;
      if (what == command::end)
        return;
      if (what != command::call)
        run_copy(what, command_.to, command_.from, command_.bytes, command_.aligned16, threadIdx.x - command_.first,
                 blockDim.x - command_.first);
      else
        run(handlers);
      __syncthreads();
    }
  }

  /// Body of the other blocks.
  template <class Handlers>
  __device__ void follow_grid_commands(const Handlers &handlers) {
    for (std::uint32_t seen = 0;; ++seen) {
      if (threadIdx.x == 0) {
        std::uint64_t sequence = 0;
        do {
          sequence = load_acquire<std::uint64_t, thread_scope_device>(grid_command_->sequence);
        } while (static_cast<std::uint32_t>(sequence) == seen);
        command_.bytes = static_cast<std::uint32_t>(sequence >> 32);
      }
      __syncthreads();
      if (threadIdx.x == 0)
        read_grid_command(command_.bytes != 0);
      // Handlers may read the frame byte by byte, so it has to be in shared memory here, too.
      copy_bytes(staging_, grid_staging_, command_.bytes, true, threadIdx.x, blockDim.x);
      __syncthreads();
      if (command_.what == command::end)
        return;
      run(handlers);
      __syncthreads();
      if (threadIdx.x == 0)
        arrive(grid_command_->arrivals);
    }
  }

private:
  template <command kWhat>
  __device__ void copy_together(std::uint8_t *to, const std::uint8_t *from, std::uint32_t bytes, bool aligned16) {
    finish_spread();
    if (blockDim.x <= warp_thread_group::kWidth || bytes <= kGroupCopyBytes) {
      kWhat == command::fetch ? solo::fetch(to, from, bytes, aligned16) : solo::copy(to, from, bytes, aligned16);
      return;
    }
    command_copy(kWhat, to, from, bytes, aligned16, 0);
    run_copy(kWhat, to, from, bytes, aligned16, threadIdx.x, blockDim.x);
    __syncthreads();
  }
  __device__ static void run_copy(command what, std::uint8_t *to, const std::uint8_t *from, std::uint32_t bytes,
                                  bool aligned16, std::uint32_t rank, std::uint32_t size) {
    if (what == command::fetch)
      copy_request(to, from, bytes, aligned16, rank, size);
    else
      copy_bytes(to, from, bytes, aligned16, rank, size);
  }
  __device__ void command_copy(command what, std::uint8_t *to, const std::uint8_t *from, std::uint32_t bytes,
                               bool aligned16, std::uint32_t first) {
    if (threadIdx.x == 0) {
      command_.what = what, command_.bytes = bytes, command_.aligned16 = aligned16, command_.first = first;
      command_.to = to, command_.from = from;
    }
    __syncthreads();
  }
  __device__ void read_grid_command(bool staged) {
    const grid_command &o = *grid_command_;
    command_.what = static_cast<command>(o.kind);
    command_.call = {o.route,
                     o.arg_len,
                     o.max_result_len,
                     staged ? staging_ : reinterpret_cast<const std::uint8_t *>(o.input),
                     reinterpret_cast<std::uint8_t *>(o.output),
                     staged};
  }

  /// All threads call the handler. Status and length of thread 0 go to the command block of its block; those of the
  /// leader's block count.
  template <class Handlers>
  __device__ void run(const Handlers &handlers) {
    const handler_call c = command_.call;
    std::uint32_t result_len = 0;
    const std::int32_t status = handlers.call(handlers.callee(c.route), c.in + CUDAQ_RPC_HEADER_SIZE,
                                              c.out + CUDAQ_RPC_HEADER_SIZE, c.arg_len, c.max_result_len, &result_len);
    if (threadIdx.x == 0) {
      command_.status = status;
      command_.result_len = result_len;
    }
  }

  /// Leader: makes the request readable for every block and sends the call.
  __device__ void send_call_to_grid(const handler_call &c) {
    const std::uint32_t bytes = c.staged ? round16(CUDAQ_RPC_HEADER_SIZE + c.arg_len) : 0;
    const bool there = c.in == staging_ && bytes <= spread_;
    finish_spread();
    if (bytes != 0 && !there) {
      copy(grid_staging_, c.in, bytes, true);
      __syncwarp();
    }
    if (threadIdx.x == 0) {
      grid_command_->route = c.route, grid_command_->arg_len = c.arg_len,
      grid_command_->max_result_len = c.max_result_len;
      grid_command_->input = bytes != 0 ? 0 : reinterpret_cast<std::uint64_t>(c.in);
      grid_command_->output = reinterpret_cast<std::uint64_t>(c.out);
      send_to_grid(command::call, bytes);
    }
  }
  __device__ void send_to_grid(command what, std::uint32_t staged_bytes) {
    grid_command_->kind = static_cast<std::uint32_t>(what);
    store_release<std::uint64_t, thread_scope_device>(grid_command_->sequence,
                                                      std::uint64_t{staged_bytes} << 32 | ++commands_sent_);
  }
  __device__ void wait_for_grid() {
    if (threadIdx.x == 0)
      while (load_acquire<std::uint32_t, thread_scope_device>(grid_command_->arrivals) !=
             commands_sent_ * (gridDim.x - 1)) {
      }
    __syncwarp();
  }

  command_block &command_;
  std::uint8_t *const staging_;
  grid_command *grid_command_;
  std::uint8_t *grid_staging_;
  std::uint32_t commands_sent_ = 0; ///< valid in the leader's first thread
  std::uint32_t spread_ = 0;        ///< bytes of the staging that are being copied, or are copied, for the other blocks
};

} // namespace cudaq::realtime::detail
