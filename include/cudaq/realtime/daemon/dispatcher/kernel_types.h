// SPDX-License-Identifier: Apache-2.0
// How the threads of a dispatch kernel belong together.
#ifndef CUDAQ_REALTIME_KERNEL_TYPES_H
#define CUDAQ_REALTIME_KERNEL_TYPES_H

#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace cudaq::realtime {

/// Thread 0 of the first block calls the handler; threads of a block synchronise.
struct RegularKernel {
  static constexpr bool is_cooperative = false;
  __device__ static void sync() { __syncthreads(); }
};

/// All threads of the grid call the handler, which may use grid-wide synchronisation; launched cooperatively.
struct CooperativeKernel {
  static constexpr bool is_cooperative = true;
  __device__ static void sync() { cooperative_groups::this_grid().sync(); }
};

/// Loads kernels of the program before a dispatcher starts. With lazy loading the first launch of a kernel, which loads
/// it, waits for every kernel that runs, and a dispatch kernel runs for ever. Must be called from the program's own code:
/// the library's runtime does not know its kernels. Returns the first error.
template <class... Kernels>
cudaError_t preload_kernels(Kernels... kernels) {
  cudaError_t first = cudaSuccess;
  cudaFuncAttributes attributes;
  (void)((first = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(kernels)), first == cudaSuccess) &&
         ...);
  return first;
}

} // namespace cudaq::realtime

#endif
