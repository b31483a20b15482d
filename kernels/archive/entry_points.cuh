// SPDX-License-Identifier: Apache-2.0
// What the C entry points of the archive share.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel.cuh"
#include "kernels/archive/shared_ring_mode.h"

namespace cudaq::realtime::detail {

// Each member of the archive loads its kernels by one of these. They are weak where they are called: a program gets
// only the members that it names, and what is linked is loaded before the first kernel of any of them spins.
__attribute__((weak)) cudaError_t preload_regular_kernels();
__attribute__((weak)) cudaError_t preload_cooperative_kernels();
__attribute__((weak)) cudaError_t preload_unified_kernels();
__attribute__((weak)) cudaError_t preload_graph_kernels();

inline cudaError_t preload_archive() {
  for (cudaError_t (*preload)() :
       {preload_regular_kernels, preload_cooperative_kernels, preload_unified_kernels, preload_graph_kernels})
    if (preload != nullptr)
      if (const cudaError_t error = preload())
        return error;
  return cudaSuccess;
}

/// The function table, in kernels that can share a ring.
struct archive_handlers : table_handlers {
  static constexpr bool kSharesRings = true;
  static constexpr bool kCallsFunctions = true; ///< they are device-linked with the kernel
};

/// `direct`: what a launch without a dispatcher does about requests of others.
template <class Kernel>
cudaError_t launch_archive_kernel(const cudaq_dispatch_launch_params_t *params,
                                  ring_sharing direct = ring_sharing::alone) {
  if (params == nullptr)
    return cudaErrorInvalidValue;
  if (const cudaError_t error = preload_archive())
    return error;
  return launch_checked<Kernel, archive_handlers>(*params, direct);
}

template <class Kernel>
cudaError_t query_occupancy(int *out_blocks, std::uint32_t threads) {
  if (out_blocks == nullptr)
    return cudaErrorInvalidValue;
  *out_blocks = 0;
  using choice = kernel_choice<Kernel, archive_handlers>;
  if (const cudaError_t error = preload_archive())
    return error;
  // What a launch makes of the number.
  threads = threads == 0 ? 32 : (threads + 31) / 32 * 32;
  threads = Kernel::is_cooperative ? threads : std::min(threads, kMostThreads);
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      out_blocks, choice::in_order(false, threads), static_cast<int>(threads), kernel_memory(kDeviceStagingBytes, 1));
}

} // namespace cudaq::realtime::detail
