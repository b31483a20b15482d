// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/pipeline/bench_pipeline_kernels.h"

#include "benchmarks/device/bench_poll.cuh"

#include "cudaq/qec/realtime/resident_kernel.cuh"

#include <algorithm>

namespace cudaq::realtime::tools {
namespace {

__global__ void busy_kernel(std::uint64_t ns) {
  for (const std::uint64_t begin = global_ns(); global_ns() - begin < ns;) {
  }
}

__global__ void signal_kernel(volatile int *flag) {
  cuda::atomic_ref<int>(const_cast<int &>(*flag)).store(1, cuda::memory_order_release);
}

__global__ void word_and_signal_kernel(const std::uint64_t *from, std::uint64_t *to, volatile int *flag) {
  if (threadIdx.x != 0)
    return;
  *to = *from;
  cuda::atomic_ref<int>(const_cast<int &>(*flag)).store(1, cuda::memory_order_release);
}

__global__ void busy_copy_and_signal_kernel(std::uint64_t ns, const std::uint64_t *from, std::uint64_t *to,
                                            std::uint32_t words, volatile int *flag) {
  for (const std::uint64_t begin = global_ns(); global_ns() - begin < ns;) {
  }
  for (std::uint32_t k = threadIdx.x; k < words; k += blockDim.x)
    to[k] = from[k];
  __syncthreads();
  if (threadIdx.x == 0)
    cuda::atomic_ref<int>(const_cast<int &>(*flag)).store(1, cuda::memory_order_release);
}

struct first_word {
  __device__ void operator()(const qec::realtime::gpu::resident_request &r) const {
    if (threadIdx.x == 0)
      *reinterpret_cast<std::uint64_t *>(r.output) = *reinterpret_cast<const std::uint64_t *>(r.frame);
  }
};

} // namespace

cudaError_t launch_busy(std::uint64_t ns, cudaStream_t stream) {
  busy_kernel<<<1, 1, 0, stream>>>(ns);
  return cudaGetLastError();
}

cudaError_t launch_signal(volatile int *flag, cudaStream_t stream) {
  signal_kernel<<<1, 1, 0, stream>>>(flag);
  return cudaGetLastError();
}

cudaError_t launch_word_and_signal(const std::uint64_t *from, std::uint64_t *to, volatile int *flag,
                                   cudaStream_t stream) {
  word_and_signal_kernel<<<1, 32, 0, stream>>>(from, to, flag);
  return cudaGetLastError();
}

cudaError_t launch_busy_copy_and_signal(std::uint64_t ns, const void *from, void *to, std::size_t bytes,
                                        volatile int *flag, cudaStream_t stream) {
  const auto words = static_cast<std::uint32_t>(bytes / sizeof(std::uint64_t));
  busy_copy_and_signal_kernel<<<1, std::min((words + 31) / 32 * 32, 1024u), 0, stream>>>(
      ns, static_cast<const std::uint64_t *>(from), static_cast<std::uint64_t *>(to), words, flag);
  return cudaGetLastError();
}

qec::realtime::gpu::resident_launcher launch_resident_first_word() {
  return qec::realtime::gpu::resident_launch(first_word{}, 128);
}

} // namespace cudaq::realtime::tools
