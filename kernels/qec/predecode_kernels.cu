// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/predecode_kernels.h"

#include "cudaq/realtime/detail/base/flag_word.h"

#include <algorithm>

namespace cudaq::qec::realtime::gpu {
namespace {

constexpr std::uint32_t kMostThreads = 1024, kCopyThreads = 256;
constexpr std::size_t kBlockMemory = 48 * 1024; ///< shared memory that a kernel has without an attribute

/// A block's threads.
class block_group {
public:
  __device__ explicit block_group(std::uint32_t *warp_sums) : warp_sums_(warp_sums) {}
  __device__ std::uint32_t thread() const { return threadIdx.x; }
  __device__ std::uint32_t threads() const { return blockDim.x; }
  __device__ void sync() const { __syncthreads(); }
  __device__ bool any(bool mine) const { return __syncthreads_or(mine) != 0; }
  /// The threads are whole warps.
  __device__ std::uint32_t exclusive_sum(std::uint32_t mine, std::uint32_t &total) const {
    const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    std::uint32_t sum = mine;
    for (std::uint32_t distance = 1; distance < 32; distance *= 2) {
      const std::uint32_t other = __shfl_up_sync(0xffffffffu, sum, distance);
      sum += lane >= distance ? other : 0;
    }
    if (lane == 31)
      warp_sums_[warp] = sum;
    __syncthreads();
    std::uint32_t before = 0;
    total = 0;
    for (std::uint32_t w = 0; w < blockDim.x / 32; ++w) {
      before += w < warp ? warp_sums_[w] : 0;
      total += warp_sums_[w];
    }
    __syncthreads();
    return before + sum - mine;
  }
  __device__ void clear_bits(std::uint32_t &word, std::uint32_t bits) const { atomicAnd(&word, ~bits); }
  __device__ void flip_bits(std::uint32_t &word, std::uint32_t bits) const { atomicXor(&word, bits); }
  __device__ void add(std::uint32_t &word, std::uint32_t n) const { atomicAdd(&word, n); }

private:
  std::uint32_t *warp_sums_;
};

/// The frame of the request, or null in a warm-up run.
__device__ const std::uint8_t *request_frame(const request_source &from) {
  const auto *slot = static_cast<const std::uint8_t *>(from.io->rx_slot);
  return slot == nullptr || from.staging == nullptr ? slot : from.staging;
}

/// Sets the ready flag. Called by all threads of the block; all their writes come before the flag.
__device__ void tell(const request_source &from) {
  __syncthreads();
  if (threadIdx.x == 0)
    cudaq::realtime::detail::store_release<int>(*from.ready, 1);
}

__device__ void spend(std::uint64_t ns) {
  const auto now = [] {
    std::uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
  };
  for (const std::uint64_t begin = now(); now() - begin < ns;) {
  }
}

__global__ void __launch_bounds__(kMostThreads) predecode_kernel(request_source from, predecode_job job) {
  extern __shared__ std::uint64_t block[];
  __shared__ std::uint32_t warp_sums[kMostThreads / 32];
  const std::uint8_t *const frame = request_frame(from);
  if (frame == nullptr)
    return;
  predecode(block_group(warp_sums), job, reinterpret_cast<const std::uint64_t *>(frame), block);
  tell(from);
}

__global__ void __launch_bounds__(kCopyThreads) copy_kernel(request_source from, copy_job job) {
  constexpr std::uint32_t kAtOnce = 4; // loads in flight before the first store
  const std::uint8_t *const frame = request_frame(from);
  if (frame == nullptr)
    return;
  if (job.busy_ns != 0)
    spend(job.busy_ns);
  const auto *const in = reinterpret_cast<const uint4 *>(frame);
  auto *const out = reinterpret_cast<uint4 *>(job.output);
  const std::uint32_t vectors = job.frame_bytes / 16;
  for (std::uint32_t first = threadIdx.x; first < vectors; first += kAtOnce * blockDim.x) {
    uint4 held[kAtOnce];
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k)
      if (const std::uint32_t at = first + k * blockDim.x; at < vectors)
        held[k] = in[at];
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k)
      if (const std::uint32_t at = first + k * blockDim.x; at < vectors)
        out[at] = held[k];
  }
  tell(from);
}

} // namespace

bool fits_a_block(const predecoder_layout &layout) {
  return predecode_scratch::bytes(layout) + sizeof(std::uint32_t) * kMostThreads / 32 <= kBlockMemory;
}

cudaError_t launch_predecode(const request_source &from, const predecode_job &job, cudaStream_t stream) {
  // Four threads for each word: events are few, and one thread decides each of them.
  const auto wanted = static_cast<std::uint32_t>(4 * job.layout.dense_words() + 31) / 32 * 32;
  predecode_kernel<<<1, std::clamp(wanted, 128u, kMostThreads), predecode_scratch::bytes(job.layout), stream>>>(from,
                                                                                                                job);
  return cudaGetLastError();
}

cudaError_t launch_copy(const request_source &from, const copy_job &job, cudaStream_t stream) {
  copy_kernel<<<1, kCopyThreads, 0, stream>>>(from, job);
  return cudaGetLastError();
}

} // namespace cudaq::qec::realtime::gpu
