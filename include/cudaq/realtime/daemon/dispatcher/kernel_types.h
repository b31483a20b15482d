// SPDX-License-Identifier: Apache-2.0
// Kernel kinds: which threads of a dispatch kernel call a handler, and how they synchronise.
#ifndef CUDAQ_REALTIME_KERNEL_TYPES_H
#define CUDAQ_REALTIME_KERNEL_TYPES_H

#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace cudaq::realtime {

/// Thread 0 of the first block calls the handler. sync() is the barrier of a block.
struct RegularKernel {
  static constexpr bool is_cooperative = false;
  __device__ static void sync() { __syncthreads(); }
};

/// All threads of the grid call the handler. sync() is the barrier of the grid, which the handler may use. The kernel
/// is launched cooperatively.
struct CooperativeKernel {
  static constexpr bool is_cooperative = true;
  __device__ static void sync() { cooperative_groups::this_grid().sync(); }
};

/// Loads kernels of the program. Call it before a dispatcher starts: with lazy loading, the first launch of a kernel
/// loads it, and that waits for all running kernels, while a dispatch kernel runs until it is stopped. Call it in the
/// program's own code: the library's CUDA runtime does not know the program's kernels. Returns the first error.
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
