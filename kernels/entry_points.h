// SPDX-License-Identifier: Apache-2.0
// What the C entry points of the archive share.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel.cuh"

namespace cudaq::realtime::detail {

// Each member of the archive loads its kernels by one of these. They are weak where they are called: a program gets only
// the members that it names, and what is linked is loaded before the first kernel of any of them spins.
__attribute__((weak)) cudaError_t preload_regular_kernels();
__attribute__((weak)) cudaError_t preload_cooperative_kernels();
__attribute__((weak)) cudaError_t preload_unified_kernels();

inline cudaError_t preload_archive() {
  for (cudaError_t (*preload)() : {preload_regular_kernels, preload_cooperative_kernels, preload_unified_kernels})
    if (preload != nullptr)
      if (const cudaError_t error = preload())
        return error;
  return cudaSuccess;
}

template <class Kernel>
cudaError_t launch_archive_kernel(const cudaq_dispatch_launch_params_t *params) {
  if (params == nullptr)
    return cudaErrorInvalidValue;
  if (const cudaError_t error = preload_archive())
    return error;
  return launch_dispatch_kernel<Kernel, table_handlers>(*params);
}

template <class Kernel>
cudaError_t query_occupancy(int *out_blocks, std::uint32_t threads) {
  if (out_blocks == nullptr)
    return cudaErrorInvalidValue;
  *out_blocks = 0;
  using choice = kernel_choice<Kernel, table_handlers>;
  if (const cudaError_t error = preload_archive())
    return error;
  // What a launch makes of the number.
  threads = threads == 0 ? 32 : (threads + 31) / 32 * 32;
  threads = Kernel::is_cooperative ? threads : std::min(threads, kMostThreads);
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(out_blocks, choice::in_order(false, threads),
                                                       static_cast<int>(threads), kernel_memory(kDeviceStageBytes, 1));
}

} // namespace cudaq::realtime::detail
