// SPDX-License-Identifier: Apache-2.0
// The cooperative dispatch kernel of the archive: all threads of the grid run each handler of the function table.
#include "kernels/entry_points/entry_points.cuh"

#include "cudaq/realtime/daemon/dispatcher/device_dispatch.h"

cudaError_t cudaq::realtime::detail::preload_cooperative_kernels() {
  return preload_dispatch_kernel<CooperativeKernel, entry_point_handlers>();
}

extern "C" {

cudaError_t cudaq_launch_dispatch_kernel_cooperative_v2(const cudaq_dispatch_launch_params_t *params) {
  return cudaq::realtime::detail::launch_entry_point<cudaq::realtime::CooperativeKernel>(params);
}

void cudaq_launch_dispatch_kernel_cooperative(volatile uint64_t *rx_flags, volatile uint64_t *tx_flags,
                                              uint8_t *rx_data, uint8_t *tx_data, size_t rx_stride_sz,
                                              size_t tx_stride_sz, cudaq_function_entry_t *function_table,
                                              size_t func_count, volatile int *shutdown_flag, uint64_t *stats,
                                              size_t num_slots, uint32_t num_blocks, uint32_t threads_per_block,
                                              cudaStream_t stream) {
  using namespace cudaq::realtime;
  using namespace cudaq::realtime::detail;
  const auto params =
      make_launch_params(rx_flags, tx_flags, rx_data, tx_data, rx_stride_sz, tx_stride_sz, function_table, func_count,
                         shutdown_flag, stats, num_slots, num_blocks, threads_per_block, stream);
  (void)launch_entry_point<CooperativeKernel>(&params, default_sharing());
}

cudaError_t cudaq_dispatch_kernel_cooperative_query_occupancy(int *out_blocks, uint32_t threads_per_block) {
  return cudaq::realtime::detail::query_occupancy<cudaq::realtime::CooperativeKernel>(out_blocks, threads_per_block);
}

} // extern "C"
