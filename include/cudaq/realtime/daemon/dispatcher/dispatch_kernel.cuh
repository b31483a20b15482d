// SPDX-License-Identifier: Apache-2.0
// The dispatch kernel as a template. A program instantiates it in the .cu file that holds its handlers. It needs no
// separable compilation.
//
//   using handlers = cudaq::realtime::handler_list<
//       cudaq::realtime::static_handler<cudaq::realtime::fnv1a_hash("decode"), decode>>;
//
//   extern "C" cudaError_t launch_decoder(const cudaq_dispatch_launch_params_t *params) {
//     return cudaq::realtime::launch_dispatch_kernel<cudaq::realtime::RegularKernel, handlers>(*params);
//   }
//   ... cudaq_dispatcher_set_launch_fn_v2(dispatcher, launch_decoder);
#ifndef CUDAQ_REALTIME_DISPATCH_KERNEL_CUH
#define CUDAQ_REALTIME_DISPATCH_KERNEL_CUH

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"
#include "cudaq/realtime/detail/loop/launch.cuh"

namespace cudaq::realtime {

/// Handlers known at compile time, inlined. The run-time function table is ignored and may be empty.
template <class... StaticHandlers>
struct handler_list : detail::compile_time_handlers<StaticHandlers...> {};

/// The handlers of the run-time table. Its device pointers must be of the module that instantiates the kernel.
struct table_handlers : detail::run_time_handlers {};

/// The 14 arguments of a cudaq_dispatch_launch_fn_t as a struct, with the state of the dispatcher that calls the
/// function.
inline cudaq_dispatch_launch_params_t
make_launch_params(volatile std::uint64_t *rx_flags, volatile std::uint64_t *tx_flags, std::uint8_t *rx_data,
                   std::uint8_t *tx_data, std::size_t rx_stride_sz, std::size_t tx_stride_sz,
                   cudaq_function_entry_t *function_table, std::size_t func_count, volatile int *shutdown_flag,
                   std::uint64_t *stats, std::size_t num_slots, std::uint32_t num_blocks,
                   std::uint32_t threads_per_block, cudaStream_t stream) {
  cudaq_dispatch_launch_params_t p{};
  p.struct_size = sizeof(p);
  p.num_blocks = num_blocks, p.threads_per_block = threads_per_block;
  p.rx_flags = rx_flags, p.tx_flags = tx_flags, p.rx_data = rx_data, p.tx_data = tx_data;
  p.rx_stride_sz = rx_stride_sz, p.tx_stride_sz = tx_stride_sz;
  p.function_table = function_table, p.func_count = func_count;
  p.shutdown_flag = shutdown_flag, p.stats = stats, p.num_slots = num_slots, p.stream = stream;
  p.state = cudaq_dispatch_launch_state();
  return p;
}

namespace detail {

/// Implements launch_dispatch_kernel. `direct_sharing`: the sharing mode of the ring for a launch without a dispatcher.
template <class Kernel, class Handlers>
cudaError_t launch_checked(const cudaq_dispatch_launch_params_t &params, ring_sharing direct_sharing) {
  if (params.struct_size != sizeof(params))
    return cudaErrorInvalidValue;
  const auto with = [&](const dispatch_params &p, cudaq_dispatch_launch_state_t *state) {
    return launch<Kernel, Handlers>(p, params.num_blocks, params.threads_per_block, params.stream,
                                    launch_report{state});
  };
  cudaq_dispatch_launch_state_t *state = nullptr;
  if (const cudaError_t refused = state_of(params.state, state))
    return refused;
  if (state != nullptr)
    return with(state->params, state);
  dispatch_params direct;
  if (const cudaError_t refused = ring_of(params, direct.ring))
    return refused;
  direct.sharing = direct_sharing;
  // In place an answer of another dispatcher may look like a request of ours. Such a kernel posts no laps.
  if (direct_sharing != ring_sharing::alone && (direct.ring.in_place() || direct.ring.lap_offset != 0))
    return cudaErrorNotSupported;
  return launch_without_state(params, direct, Kernel::is_cooperative,
                              [&](const dispatch_params &p) { return with(p, nullptr); });
}

} // namespace detail

/// Launches the kernel on params.stream and returns immediately. Kernel: RegularKernel or CooperativeKernel. Handlers:
/// handler_list<...> or table_handlers. With the state of a dispatcher the kernel serves until stop. Without one it
/// serves until *shutdown_flag is non-zero, with slots of the smaller stride. Returns the error of the launch; start()
/// reports the reason.
template <class Kernel, class Handlers>
cudaError_t launch_dispatch_kernel(const cudaq_dispatch_launch_params_t &params) {
  return detail::launch_checked<Kernel, Handlers>(params, detail::ring_sharing::alone);
}

/// Loads the kernel. Call this before the first dispatcher starts, if a dispatcher with other handlers starts later:
/// with lazy loading, the first launch of a kernel waits for every running kernel, and a dispatch kernel runs until it
/// is stopped.
template <class Kernel, class Handlers>
cudaError_t preload_dispatch_kernel() {
  return detail::kernel_choice<Kernel, Handlers>::preload();
}

} // namespace cudaq::realtime

#endif
