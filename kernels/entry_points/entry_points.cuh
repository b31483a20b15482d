// SPDX-License-Identifier: Apache-2.0
// The common part of the archive's C entry points.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel.cuh"
#include "kernels/entry_points/shared_ring_mode.h"

namespace cudaq::realtime::detail {

// Each member of the archive loads its kernels with one of these functions. The references are weak: a program gets
// only the members that it names. Everything that is linked is loaded before the first of these kernels starts to
// spin.
__attribute__((weak)) cudaError_t preload_regular_kernels();
__attribute__((weak)) cudaError_t preload_cooperative_kernels();
__attribute__((weak)) cudaError_t preload_unified_kernels();
__attribute__((weak)) cudaError_t preload_graph_kernels();
__attribute__((weak)) cudaError_t preload_hook_kernels();

inline cudaError_t preload_entry_points() {
  for (cudaError_t (*preload)() : {preload_regular_kernels, preload_cooperative_kernels, preload_unified_kernels,
                                   preload_graph_kernels, preload_hook_kernels})
    if (preload != nullptr)
      if (const cudaError_t error = preload())
        return error;
  return cudaSuccess;
}

/// The function table, in kernels that can share a ring.
struct entry_point_handlers : table_handlers {
  static constexpr bool kSharesRings = true;
  static constexpr bool kCallsFunctions = true; ///< device functions are device-linked with the kernel
};

/// `direct`: how a launch without a dispatcher treats requests of other dispatchers.
template <class Kernel>
cudaError_t launch_entry_point(const cudaq_dispatch_launch_params_t *params,
                               ring_sharing direct = ring_sharing::alone) {
  if (params == nullptr)
    return cudaErrorInvalidValue;
  if (const cudaError_t error = preload_entry_points())
    return error;
  return launch_checked<Kernel, entry_point_handlers>(*params, direct);
}

template <class Kernel>
cudaError_t query_occupancy(int *out_blocks, std::uint32_t threads) {
  if (out_blocks == nullptr)
    return cudaErrorInvalidValue;
  *out_blocks = 0;
  using choice = kernel_choice<Kernel, entry_point_handlers>;
  if (const cudaError_t error = preload_entry_points())
    return error;
  // Rounded as a launch rounds it.
  threads = threads == 0 ? 32 : (threads + 31) / 32 * 32;
  threads = Kernel::is_cooperative ? threads : std::min(threads, kMaxThreads);
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(out_blocks, choice::in_order(ring_access::system_scope, threads),
                                                       static_cast<int>(threads),
                                                       kernel_memory(kDeviceStagingBytes, kInOrderStaging<Kernel>));
}

} // namespace cudaq::realtime::detail
