// SPDX-License-Identifier: Apache-2.0
// The unified kernel: one kernel receives, dispatches and sends, through a transport that it drives itself. The
// transport here is a ring with flags, so that unified mode can be used and tested without a NIC. For a NIC, write
// device hooks (dispatch_hooks.cu).
#include "kernels/entry_points/entry_points.cuh"

#include "cudaq/realtime/daemon/dispatcher/device_dispatch.h"

namespace cudaq::realtime::detail {
cudaError_t preload_unified_kernels() { return preload_dispatch_kernel<RegularKernel, table_handlers>(); }

} // namespace cudaq::realtime::detail

extern "C" void cudaq_launch_unified_ring_kernel(void *transport_ctx, cudaq_function_entry_t *function_table,
                                                 size_t func_count, volatile int *shutdown_flag, uint64_t *stats,
                                                 cudaStream_t stream) {
  using namespace cudaq::realtime::detail;
  cudaq_dispatch_launch_state_t *state = nullptr;
  if (transport_ctx == nullptr || state_of(cudaq_dispatch_launch_state(), state) != cudaSuccess)
    return;
  const auto &context = *static_cast<const cudaq_unified_ring_context_t *>(transport_ctx);
  const launch_report report{state};
  if (context.struct_size != sizeof(context)) {
    (void)report(cudaErrorInvalidValue, "transport_ctx->struct_size is %u, expected %zu", context.struct_size,
                 sizeof(context));
    return;
  }
  const cudaq_ringbuffer_t &r = context.ring;
  const std::size_t smaller = r.rx_stride_sz < r.tx_stride_sz ? r.rx_stride_sz : r.tx_stride_sz;
  const std::uint32_t slot_size = context.slot_size != 0 ? context.slot_size : static_cast<std::uint32_t>(smaller);
  if (const cudaError_t error = preload_entry_points()) {
    (void)report(error, "loading the kernels: %s", cudaGetErrorString(error));
    return;
  }
  dispatch_params params = state != nullptr ? state->params : dispatch_params{};
  params.ring = device_view(r, context.num_slots, slot_size);
  params.ring.rx_alias = reinterpret_cast<std::uint64_t>(r.rx_data_host);
  if (r.tx_flags != nullptr)
    find_laps(params.ring);
  if (check_ring(params.ring, shutdown_flag, report) != cudaSuccess)
    return;
  if (params.first_slot >= context.num_slots)
    params.first_slot = 0;
  const auto with = [&](const dispatch_params &p) {
    return launch<cudaq::realtime::RegularKernel, cudaq::realtime::table_handlers>(p, 1, context.threads, stream,
                                                                                   report);
  };
  if (state != nullptr) {
    (void)with(params);
    return;
  }
  cudaq_dispatch_launch_params_t direct{};
  direct.function_table = function_table, direct.func_count = func_count;
  direct.shutdown_flag = shutdown_flag, direct.stats = stats, direct.stream = stream;
  (void)launch_without_state(direct, params, false, with);
}
