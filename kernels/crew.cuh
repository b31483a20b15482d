// SPDX-License-Identifier: Apache-2.0
// The threads of a dispatch kernel beside the leading warp. They stand at a barrier, which costs nothing, until the leader
// gives an order: to copy a long frame, to run a handler (cooperative), or to end.
//
//   leader (warp 0 of block 0)      others of its block         other blocks (cooperative)
//   write the order                 wait at the barrier         thread 0 polls the ticket
//   ticket + 1, barrier        -->  read it                     barrier, read it
//   do its own part                 do their part               do their part, barrier
//   barrier                    <--  barrier                     arrivals + 1
//   wait for the arrivals
#pragma once

#include "cudaq/realtime/daemon/dispatcher/kernel_types.h"
#include "kernels/dispatch_loop.cuh"

namespace cudaq::realtime::detail {

enum class crew_order : std::uint32_t { copy, call, end };

/// The order of the moment, in shared memory.
struct crew_board {
  crew_order what;
  std::uint8_t *to;
  const std::uint8_t *from;
  std::uint32_t bytes;
  bool wide;
  handler_call call;
  std::int32_t status;
  std::uint32_t result_len;
};

template <class Kernel>
class block_crew {
  using solo = solo_crew<warp_team>;

public:
  static constexpr bool kEverybodyCalls = Kernel::is_cooperative;
  __device__ block_crew(crew_board &board, const dispatch_params &params)
      : board_(board), order_(params.order), grid_stage_(params.grid_stage) {}

  __device__ void copy(std::uint8_t *to, const std::uint8_t *from, std::uint32_t bytes, bool wide) {
    if (blockDim.x <= warp_team::kWidth || bytes <= kTeamCopyBytes) {
      solo::copy(to, from, bytes, wide);
      return;
    }
    if (threadIdx.x == 0)
      board_.what = crew_order::copy, board_.to = to, board_.from = from, board_.bytes = bytes, board_.wide = wide;
    __syncthreads();
    copy_bytes(to, from, bytes, wide, threadIdx.x, blockDim.x);
    __syncthreads();
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
    if (threadIdx.x == 0)
      board_.what = crew_order::end;
    if (Kernel::is_cooperative && gridDim.x > 1 && threadIdx.x == 0)
      issue(crew_order::end);
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
        copy_bytes(board_.to, board_.from, board_.bytes, board_.wide, threadIdx.x, blockDim.x);
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
        while (load_acquire<std::uint32_t, cuda::thread_scope_device>(order_->ticket) == seen) {
        }
        const grid_order &o = *order_;
        board_.what = static_cast<crew_order>(o.kind);
        board_.call = {o.route,
                       o.arg_len,
                       o.max_result_len,
                       reinterpret_cast<const std::uint8_t *>(o.input),
                       reinterpret_cast<std::uint8_t *>(o.output),
                       true};
      }
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
  /// Every thread; status and length of thread 0 of each block stay on its board, and the leader's count.
  template <class Handlers>
  __device__ void run(const Handlers &handlers) {
    const handler_call c = board_.call;
    std::uint32_t result_len = 0;
    const std::int32_t status = handlers.call(c.route, c.in + CUDAQ_RPC_HEADER_SIZE, c.out + CUDAQ_RPC_HEADER_SIZE,
                                              c.arg_len, c.max_result_len, &result_len);
    if (threadIdx.x == 0) {
      board_.status = status;
      board_.result_len = result_len;
    }
  }

  /// Leader: the request goes where every block can read it.
  __device__ void tell_grid(handler_call &c) {
    if (c.staged) {
      solo::copy(grid_stage_, c.in, round16(CUDAQ_RPC_HEADER_SIZE + c.arg_len), true);
      c.in = grid_stage_;
      __syncwarp();
    }
    if (threadIdx.x == 0) {
      order_->route = c.route, order_->arg_len = c.arg_len, order_->max_result_len = c.max_result_len;
      order_->input = reinterpret_cast<std::uint64_t>(c.in);
      order_->output = reinterpret_cast<std::uint64_t>(c.out);
      issue(crew_order::call);
    }
  }
  __device__ void issue(crew_order what) {
    order_->kind = static_cast<std::uint32_t>(what);
    store_release<std::uint32_t, cuda::thread_scope_device>(order_->ticket, ++tickets_);
  }
  __device__ void wait_for_grid() {
    if (threadIdx.x == 0)
      while (load_acquire<std::uint32_t, cuda::thread_scope_device>(order_->arrivals) != tickets_ * (gridDim.x - 1)) {
      }
    __syncwarp();
  }

  crew_board &board_;
  grid_order *order_;
  std::uint8_t *grid_stage_;
  std::uint32_t tickets_ = 0; ///< of the leader's first thread
};

} // namespace cudaq::realtime::detail
