// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/relay_bp/relay_bp_kernels.h"

#include "kernels/qec/relay_bp/relay_bp_team.h"

#include "cudaq/qec/realtime/resident_kernel.cuh"

#include <initializer_list>

namespace cudaq::qec::realtime::gpu {
namespace {

class relay_group : public detail::resident_group {
public:
  __device__ static std::uint32_t threads() { return blockDim.x; }
  /// Each warp looks for itself. All its threads call it.
  __device__ static bool any_word(const std::uint32_t *words, std::uint32_t n) {
    std::uint32_t any = 0;
    for (std::uint32_t w = threadIdx.x % kWarpLanes; w < n; w += kWarpLanes)
      any |= words[w];
    return __any_sync(0xffffffffu, any != 0) != 0;
  }
  __device__ static void flip_bits(std::uint32_t &word, std::uint32_t bits) { atomicXor(&word, bits); }
  __device__ static void set_bits(std::uint32_t &word, std::uint32_t bits) { atomicOr(&word, bits); }
  __device__ static void add(std::uint64_t &word, std::uint64_t n) {
    atomicAdd(reinterpret_cast<unsigned long long *>(&word), n);
  }
  /// The same value, which the compiler cannot compute with before.
  __device__ static std::uint32_t opaque(std::uint32_t word) {
    asm volatile("" : "+r"(word));
    return word;
  }
  __device__ static std::uint32_t clock() { return static_cast<std::uint32_t>(::clock()); }
  __device__ static std::uint64_t now_ns() {
    std::uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
  }
};

template <relay_variant Variant>
__global__ void __launch_bounds__(kBlockThreads, 1)
    relay_bp_kernel(const __grid_constant__ resident_mailboxes boxes, const __grid_constant__ relay_job job) {
  extern __shared__ std::uint64_t block[];
  const relay_memory<Variant> memory(block, job);
  const relay_group group;
  relay_chain<relay_group, Variant> chain(group, job, memory, blockIdx.x);
  if (blockIdx.x == 0)
    lead(group, boxes, job, memory, chain);
  else
    follow(group, job, memory, chain);
}

/// Loads the kernel of each variant: one that is loaded later would wait for the blocks that run.
cudaError_t load_all() {
  cudaFuncAttributes found{};
  for (const auto kernel : {&relay_bp_kernel<relay_variant::registers>, &relay_bp_kernel<relay_variant::shared>,
                            &relay_bp_kernel<relay_variant::device>})
    if (const cudaError_t error = cudaFuncGetAttributes(&found, reinterpret_cast<const void *>(kernel));
        error != cudaSuccess)
      return error;
  return cudaSuccess;
}

template <relay_variant Variant>
resident_launcher launcher_of(const relay_job &job) {
  return [=](const resident_mailboxes &boxes, unsigned blocks, cudaStream_t stream) {
    if (blocks == 0)
      if (const cudaError_t error = load_all(); error != cudaSuccess)
        return error;
    return detail::launch_to_stay<resident_mailboxes, relay_job>(&relay_bp_kernel<Variant>, job.chains,
                                                                 blocks == 0 ? 0 : job.chains, kBlockThreads,
                                                                 relay_memory<Variant>::bytes(job), stream, boxes, job);
  };
}

} // namespace

resident_launcher launch_relay_bp(const relay_job &job, relay_variant variant) {
  switch (variant) {
  case relay_variant::registers:
    return launcher_of<relay_variant::registers>(job);
  case relay_variant::shared:
    return launcher_of<relay_variant::shared>(job);
  case relay_variant::device:
    break;
  }
  return launcher_of<relay_variant::device>(job);
}

} // namespace cudaq::qec::realtime::gpu
