/* SPDX-License-Identifier: Apache-2.0 */
// The kernel of resident_workers (resident_workers.h) with a program's own stage.
//
//   struct my_stage {
//     my_model model;                                        // plain data: a kernel argument
//     __device__ void operator()(const resident_request &r) const {
//       // all threads of the block: reads r.frame, writes r.output. __syncthreads() is allowed.
//     }
//   };
//   resident_workers workers(config, resident_launch(my_stage{model}, 256, shared_bytes));
//
// A stage has no time limit: a block that does not return holds up its worker, and stop.
#ifndef CUDAQ_QEC_REALTIME_RESIDENT_KERNEL_CUH
#define CUDAQ_QEC_REALTIME_RESIDENT_KERNEL_CUH

#include "cudaq/qec/realtime/resident_mailbox.cuh"
#include "cudaq/qec/realtime/resident_workers.h"

namespace cudaq::qec::realtime::gpu {

namespace detail {

class resident_group {
public:
  __device__ std::uint32_t thread() const { return threadIdx.x; }
  __device__ void sync() const { __syncthreads(); }
  __device__ bool any(bool mine) const { return __syncthreads_or(mine) != 0; }
  __device__ void idle() const {}
};

template <class Stage>
__global__ void __launch_bounds__(1024) resident_kernel(resident_mailboxes boxes, Stage stage) {
  serve_mailbox(resident_group{}, boxes, blockIdx.x, stage);
}

/// The launch of `blocks` blocks that are alone, or in clusters of `cluster` blocks each.
struct launch_configuration {
  launch_configuration(unsigned blocks, unsigned threads, std::size_t shared_bytes, cudaStream_t stream,
                       unsigned cluster) {
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.attrs = &attribute;
    config.numAttrs = cluster > 1 ? 1 : 0;
  }
  launch_configuration(const launch_configuration &) = delete;
  launch_configuration &operator=(const launch_configuration &) = delete;
  cudaLaunchConfig_t config{};
  cudaLaunchAttribute attribute{};
};

/// Loads a kernel on the current device, and allows it the most dynamic shared memory that a block can have there:
/// what is allowed belongs to the kernel, so less would refuse a launch of another thread at that time.
/// cudaErrorInvalidValue: it is less than shared_bytes.
inline cudaError_t allow_shared_memory(const void *kernel, std::size_t shared_bytes) {
  int device = 0, of_block = 0;
  cudaFuncAttributes attributes{};
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&of_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error == cudaSuccess)
    error = cudaFuncGetAttributes(&attributes, kernel);
  const int max_bytes = of_block - static_cast<int>(attributes.sharedSizeBytes);
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, max_bytes);
  return error == cudaSuccess && shared_bytes > static_cast<std::size_t>(max_bytes) ? cudaErrorInvalidValue : error;
}

/// Launches `blocks` blocks of a kernel that stays on the GPU, in clusters of `cluster` blocks; 0: loads it only.
/// `together`: blocks that must find room at the same time on an empty device; else
/// cudaErrorCooperativeLaunchTooLarge.
template <class... Parameters>
cudaError_t launch_to_stay(void (*kernel)(Parameters...), unsigned together, unsigned blocks, unsigned cluster,
                           unsigned threads, std::size_t shared_bytes, cudaStream_t stream, Parameters... values) {
  if (threads == 0 || threads > 1024 || threads % 32 != 0 || cluster == 0)
    return cudaErrorInvalidConfiguration;
  const auto *const code = reinterpret_cast<const void *>(kernel);
  if (const cudaError_t refused = allow_shared_memory(code, shared_bytes); refused != cudaSuccess)
    return refused;
  const launch_configuration launch(blocks == 0 ? together : blocks, threads, shared_bytes, stream, cluster);
  int device = 0, processors = 0, at_once = 0;
  if (cluster > 1) {
    if (const cudaError_t unknown = cudaOccupancyMaxActiveClusters(&at_once, code, &launch.config);
        unknown != cudaSuccess)
      return unknown;
    at_once *= static_cast<int>(cluster);
    processors = 1;
  } else {
    if (const cudaError_t unknown = cudaGetDevice(&device); unknown != cudaSuccess)
      return unknown;
    if (const cudaError_t unknown = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
        unknown != cudaSuccess)
      return unknown;
    if (const cudaError_t unknown =
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, kernel, static_cast<int>(threads), shared_bytes);
        unknown != cudaSuccess)
      return unknown;
  }
  if (static_cast<unsigned>(at_once) * static_cast<unsigned>(processors) < together)
    return cudaErrorCooperativeLaunchTooLarge;
  if (blocks == 0) // the calls above have loaded the kernel
    return cudaSuccess;
  void *arguments[] = {&values...};
  // Not <<<>>>: its error is that of any earlier call.
  return cudaLaunchKernelExC(&launch.config, code, arguments);
}

} // namespace detail

/// A launcher for `stage`, with `threads` threads in each block (a multiple of 32, at most 1024) and this much dynamic
/// shared memory. The launch is refused with cudaErrorCooperativeLaunchTooLarge if an empty device has no room for all
/// blocks at a time.
template <class Stage>
resident_launcher resident_launch(const Stage &stage, unsigned threads, std::size_t shared_bytes = 0) {
  return [=](const resident_mailboxes &boxes, unsigned blocks, cudaStream_t stream) -> cudaError_t {
    return detail::launch_to_stay(&detail::resident_kernel<Stage>, boxes.workers, blocks, 1, threads, shared_bytes,
                                  stream, boxes, stage);
  };
}

} // namespace cudaq::qec::realtime::gpu

#endif
