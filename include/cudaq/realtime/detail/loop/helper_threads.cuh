// SPDX-License-Identifier: Apache-2.0
// The threads of a dispatch kernel beside the leading warp. They stand at a barrier, which costs nothing, until the leader
// gives an order: to copy a long frame, to run a handler (cooperative), or to end.
//
//   leader (warp 0 of block 0)      others of its block         other blocks (cooperative)
//   write the order                 wait at the barrier         thread 0 polls the ticket
//   ticket + 1, barrier        -->  read it                     barrier, read it, frame to their own stage
//   do its own part                 do their part               do their part, barrier
//   barrier                    <--  barrier                     arrivals + 1
//   wait for the arrivals
//
// The frame is on its way to the other blocks (spread) while the leader judges it.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/kernel_types.h"
#include "cudaq/realtime/detail/loop/dispatch_loop.cuh"

namespace cudaq::realtime::detail {

enum class crew_order : std::uint32_t { copy, call, end };

/// The order of the moment, in shared memory.
struct crew_board {
  crew_order what;
  std::uint8_t *to;
  const std::uint8_t *from;
  std::uint32_t bytes;
  bool wide;
  std::uint32_t first; ///< first thread that copies
  handler_call call;
  std::int32_t status;
  std::uint32_t result_len;
};

template <class Kernel>
class block_crew {
  using solo = solo_crew<warp_team>;

public:
  static constexpr bool kEverybodyCalls = Kernel::is_cooperative;
  /// `stage`: room for a frame in the block's shared memory.
  __device__ block_crew(crew_board &board, std::uint8_t *stage, const dispatch_params &params)
      : board_(board), stage_(stage), order_(params.order), grid_stage_(params.grid_stage) {}

  __device__ void copy(std::uint8_t *to, const std::uint8_t *from, std::uint32_t bytes, bool wide) {
    finish_spreading();
    if (blockDim.x <= warp_team::kWidth || bytes <= kTeamCopyBytes) {
      solo::copy(to, from, bytes, wide);
      return;
    }
    order_copy(to, from, bytes, wide, 0);
    copy_bytes(to, from, bytes, wide, threadIdx.x, blockDim.x);
    __syncthreads();
  }
  /// The same, by the others if there are enough of them, while the leader does something else.
  template <class Meanwhile>
  __device__ void copy_beside(std::uint8_t *to, const std::uint8_t *from, std::uint32_t bytes, bool wide,
                              Meanwhile &&meanwhile) {
    finish_spreading();
    const bool helped = blockDim.x >= 4 * warp_team::kWidth && bytes > kTeamCopyBytes;
    if (helped)
      order_copy(to, from, bytes, wide, warp_team::kWidth);
    meanwhile();
    if (helped)
      __syncthreads();
    else
      copy(to, from, bytes, wide);
  }
  /// Sends a frame that stands in the block's stage on its way to the other blocks, while it is judged. It has to stay
  /// there until finish_spreading().
  __device__ void spread(std::uint32_t bytes) {
    if (!Kernel::is_cooperative || gridDim.x == 1)
      return;
    finish_spreading();
    spread_ = round16(bytes);
    if (blockDim.x > warp_team::kWidth)
      order_copy(grid_stage_, stage_, spread_, true, warp_team::kWidth);
    else
      solo::copy(grid_stage_, stage_, spread_, true);
  }

  __device__ void finish_spreading() {
    if (spread_ == 0)
      return;
    if (blockDim.x > warp_team::kWidth)
      __syncthreads();
    else
      __syncwarp();
    spread_ = 0;
  }

  /// Where an answer is put together: in reach of everybody who runs the handler.
  __device__ std::uint8_t *out(std::uint8_t *staged) const {
    return Kernel::is_cooperative && gridDim.x > 1 ? grid_stage_ + kDeviceStageBytes : staged;
  }

  template <class Handlers>
  __device__ std::int32_t call(const Handlers &handlers, handler_call c, std::uint32_t &result_len) {
    if constexpr (!Kernel::is_cooperative) {
      return solo::call(handlers, c, result_len);
    } else {
      if (gridDim.x > 1)
        tell_grid(c);
      if (threadIdx.x == 0) {
        board_.what = crew_order::call;
        board_.call = c;
      }
      __syncthreads();
      run(handlers);
      __syncthreads();
      if (gridDim.x > 1)
        wait_for_grid();
      result_len = board_.result_len;
      return board_.status;
    }
  }

  /// The leader: everybody else ends.
  __device__ void dismiss() {
    finish_spreading();
    if (threadIdx.x == 0)
      board_.what = crew_order::end;
    if (Kernel::is_cooperative && gridDim.x > 1 && threadIdx.x == 0)
      issue(crew_order::end, 0);
    if (blockDim.x > warp_team::kWidth)
      __syncthreads();
  }

  /// The other warps of the leader's block.
  template <class Handlers>
  __device__ void assist(const Handlers &handlers) {
    for (;;) {
      __syncthreads();
      const crew_order what = board_.what;
      if (what == crew_order::end)
        return;
      if (what == crew_order::copy)
        copy_bytes(board_.to, board_.from, board_.bytes, board_.wide, threadIdx.x - board_.first,
                   blockDim.x - board_.first);
      else
        run(handlers);
      __syncthreads();
    }
  }

  /// The other blocks.
  template <class Handlers>
  __device__ void assist_from_afar(const Handlers &handlers) {
    for (std::uint32_t seen = 0;; ++seen) {
      if (threadIdx.x == 0) {
        std::uint64_t ticket = 0;
        do {
          ticket = load_acquire<std::uint64_t, cuda::thread_scope_device>(order_->ticket);
        } while (static_cast<std::uint32_t>(ticket) == seen);
        board_.bytes = static_cast<std::uint32_t>(ticket >> 32);
      }
      __syncthreads();
      if (threadIdx.x == 0)
        read_order(board_.bytes != 0);
      // Handlers may read it byte by byte: that takes shared memory here, too.
      copy_bytes(stage_, grid_stage_, board_.bytes, true, threadIdx.x, blockDim.x);
      __syncthreads();
      if (board_.what == crew_order::end)
        return;
      run(handlers);
      __syncthreads();
      if (threadIdx.x == 0)
        arrive(order_->arrivals);
    }
  }

private:
  __device__ void order_copy(std::uint8_t *to, const std::uint8_t *from, std::uint32_t bytes, bool wide,
                             std::uint32_t first) {
    if (threadIdx.x == 0) {
      board_.what = crew_order::copy, board_.bytes = bytes, board_.wide = wide, board_.first = first;
      board_.to = to, board_.from = from;
    }
    __syncthreads();
  }
  __device__ void read_order(bool staged) {
    const grid_order &o = *order_;
    board_.what = static_cast<crew_order>(o.kind);
    board_.call = {o.route,
                   o.arg_len,
                   o.max_result_len,
                   staged ? stage_ : reinterpret_cast<const std::uint8_t *>(o.input),
                   reinterpret_cast<std::uint8_t *>(o.output),
                   staged};
  }

  /// Every thread; status and length of thread 0 of each block stay on its board, and the leader's count.
  template <class Handlers>
  __device__ void run(const Handlers &handlers) {
    const handler_call c = board_.call;
    std::uint32_t result_len = 0;
    const std::int32_t status = handlers.call(handlers.callee(c.route), c.in + CUDAQ_RPC_HEADER_SIZE,
                                              c.out + CUDAQ_RPC_HEADER_SIZE, c.arg_len, c.max_result_len, &result_len);
    if (threadIdx.x == 0) {
      board_.status = status;
      board_.result_len = result_len;
    }
  }

  /// Leader: the request goes where every block can read it.
  __device__ void tell_grid(const handler_call &c) {
    const std::uint32_t bytes = c.staged ? round16(CUDAQ_RPC_HEADER_SIZE + c.arg_len) : 0;
    const bool there = c.in == stage_ && bytes <= spread_;
    finish_spreading();
    if (bytes != 0 && !there) {
      copy(grid_stage_, c.in, bytes, true);
      __syncwarp();
    }
    if (threadIdx.x == 0) {
      order_->route = c.route, order_->arg_len = c.arg_len, order_->max_result_len = c.max_result_len;
      order_->input = bytes != 0 ? 0 : reinterpret_cast<std::uint64_t>(c.in);
      order_->output = reinterpret_cast<std::uint64_t>(c.out);
      issue(crew_order::call, bytes);
    }
  }
  __device__ void issue(crew_order what, std::uint32_t staged_bytes) {
    order_->kind = static_cast<std::uint32_t>(what);
    store_release<std::uint64_t, cuda::thread_scope_device>(order_->ticket,
                                                            std::uint64_t{staged_bytes} << 32 | ++tickets_);
  }
  __device__ void wait_for_grid() {
    if (threadIdx.x == 0)
      while (load_acquire<std::uint32_t, cuda::thread_scope_device>(order_->arrivals) != tickets_ * (gridDim.x - 1)) {
      }
    __syncwarp();
  }

  crew_board &board_;
  std::uint8_t *const stage_;
  grid_order *order_;
  std::uint8_t *grid_stage_;
  std::uint32_t tickets_ = 0; ///< of the leader's first thread
  std::uint32_t spread_ = 0;  ///< bytes of the stage that are on their way to the other blocks, or there; 0: none
};

} // namespace cudaq::realtime::detail
