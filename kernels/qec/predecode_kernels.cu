// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/predecode_kernels.h"

#include "kernels/qec/block_group.cuh"

#include "cudaq/qec/realtime/resident_kernel.cuh"

#include <algorithm>

namespace cudaq::qec::realtime::gpu {
namespace {

constexpr std::uint32_t kCopyThreads = 256;
constexpr std::size_t kBlockMemory = 96 * 1024; ///< shared memory that a block can have on every supported device

__device__ void spend(std::uint64_t ns) {
  const auto now = [] {
    std::uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
  };
  for (const std::uint64_t begin = now(); now() - begin < ns;) {
  }
}

__global__ void __launch_bounds__(kMaxBlockThreads)
    predecode_kernel(request_source from, predecode_job job, std::uint8_t *output) {
  extern __shared__ std::uint64_t block[];
  __shared__ std::uint32_t warp_sums[kMaxBlockThreads / 32];
  const std::uint8_t *const frame = request_frame(from);
  if (frame == nullptr)
    return;
  predecode(block_group(warp_sums), job, reinterpret_cast<const std::uint64_t *>(frame), output, block);
  set_ready(from);
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
  set_ready(from);
}

/// The predecoder as a resident stage.
struct resident_predecoder {
  predecode_job job;

  __device__ void operator()(const resident_request &request) const {
    extern __shared__ std::uint64_t block[];
    __shared__ std::uint32_t warp_sums[kMaxBlockThreads / 32];
    predecode(block_group(warp_sums), job, reinterpret_cast<const std::uint64_t *>(request.frame), request.output,
              block);
  }
};

/// A warp for each word, since each event needs one.
std::uint32_t predecode_threads(const predecoder_layout &layout) {
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(32 * layout.dense_words(), 512, kMaxBlockThreads));
}

} // namespace

bool fits_a_block(const predecoder_layout &layout) { return predecode_scratch::bytes(layout) <= kBlockMemory; }

cudaError_t launch_predecode(const request_source &from, const predecode_job &job, std::uint8_t *output,
                             cudaStream_t stream) {
  const std::size_t memory = predecode_scratch::bytes(job.layout);
  if (const cudaError_t refused = detail::allow_shared_memory(reinterpret_cast<const void *>(predecode_kernel), memory);
      refused != cudaSuccess)
    return refused;
  predecode_kernel<<<1, predecode_threads(job.layout), memory, stream>>>(from, job, output);
  return cudaGetLastError();
}

resident_launcher launch_resident_predecoder(const predecode_job &job) {
  return resident_launch(resident_predecoder{job}, predecode_threads(job.layout), predecode_scratch::bytes(job.layout));
}

cudaError_t launch_copy(const request_source &from, const copy_job &job, cudaStream_t stream) {
  copy_kernel<<<1, kCopyThreads, 0, stream>>>(from, job);
  return cudaGetLastError();
}

} // namespace cudaq::qec::realtime::gpu
