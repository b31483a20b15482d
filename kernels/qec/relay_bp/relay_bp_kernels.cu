// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/relay_bp/relay_bp_kernels.h"

#include "kernels/qec/relay_bp/relay_bp_team.h"

#include "cudaq/qec/realtime/resident_kernel.cuh"

#include <initializer_list>

namespace cudaq::qec::realtime::gpu {
namespace {

constexpr unsigned kWarp = 0xffffffffu;

class relay_group : public detail::resident_group {
public:
  __device__ static std::uint32_t threads() { return blockDim.x; }
  /// Each warp looks for itself. All its threads call it.
  __device__ static bool any_word(const std::uint32_t *words, std::uint32_t n) {
    std::uint32_t any = 0;
    for (std::uint32_t w = threadIdx.x % kWarpLanes; w < n; w += kWarpLanes)
      any |= words[w];
    return __any_sync(kWarp, any != 0) != 0;
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
  static constexpr std::uint32_t kCheckLanes = kClusterCheckLanes;
  __device__ static relay_pair across(const relay_pair &pair, std::uint32_t distance) {
    return {__shfl_xor_sync(kWarp, pair.least, distance), __shfl_xor_sync(kWarp, pair.second, distance)};
  }
  __device__ static std::uint32_t clock() { return static_cast<std::uint32_t>(::clock()); }
  __device__ static std::uint64_t now_ns() {
    std::uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
  }
};

/// A block that is alone with its chain.
class single_group : public relay_group {
public:
  __device__ static std::uint32_t rank() { return 0; }
  template <class T>
  __device__ static T *of_part(T *pointer, std::uint32_t) {
    return pointer;
  }
  __device__ static void arrive() {}
  __device__ void wait() const { sync(); }
};

#if __CUDA_ARCH__ >= 900
/// A block of a cluster.
class cluster_group : public relay_group {
public:
  __device__ static std::uint32_t rank() {
    std::uint32_t r;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
  }
  template <class T>
  __device__ static T *of_part(T *pointer, std::uint32_t part) {
    T *other;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(pointer), "r"(part));
    return other;
  }
  __device__ static void arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
  __device__ static void wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
};
#else
/// Before sm_90 there are no clusters: their kernels are not launched there.
class cluster_group : public single_group {};
#endif

template <relay_variant Variant, class Group>
__device__ void live(const Group &group, const resident_mailboxes &boxes, const relay_job &job, std::uint64_t *block,
                     std::uint32_t chain_number) {
  const relay_memory<Variant> memory(block, job);
  relay_chain<Group, Variant> chain(group, job, memory, chain_number);
  if (blockIdx.x == 0)
    lead(group, boxes, job, memory, chain);
  else
    follow(group, job, memory, chain);
}

template <relay_variant Variant>
__global__ void __launch_bounds__(kBlockThreads, 1)
    relay_bp_kernel(const __grid_constant__ resident_mailboxes boxes, const __grid_constant__ relay_job job) {
  extern __shared__ std::uint64_t block[];
  if constexpr (is_cluster(Variant)) {
    __shared__ relay_job part; // registers are scarce
    if (threadIdx.x == 0)
      part = part_of<Variant>(job, blockIdx.x % job.parts);
    __syncthreads();
    live<Variant>(cluster_group{}, boxes, part, block, blockIdx.x / job.parts);
  } else {
    live<Variant>(single_group{}, boxes, job, block, blockIdx.x);
  }
}

template <relay_variant Variant>
resident_launcher launcher_of(const relay_job &job) {
  return [=](const resident_mailboxes &boxes, unsigned blocks, cudaStream_t stream) {
    const unsigned all = job.chains * job.parts;
    return detail::launch_to_stay<resident_mailboxes, relay_job>(&relay_bp_kernel<Variant>, all, blocks == 0 ? 0 : all,
                                                                 job.parts, kBlockThreads,
                                                                 relay_memory_bytes(job, Variant), stream, boxes, job);
  };
}

} // namespace

cudaError_t load_relay_bp() {
  cudaFuncAttributes found{};
  for (const auto kernel : {&relay_bp_kernel<relay_variant::cluster>, &relay_bp_kernel<relay_variant::cluster_shared>,
                            &relay_bp_kernel<relay_variant::cluster_device>, &relay_bp_kernel<relay_variant::registers>,
                            &relay_bp_kernel<relay_variant::shared>, &relay_bp_kernel<relay_variant::device>})
    if (const cudaError_t error = cudaFuncGetAttributes(&found, reinterpret_cast<const void *>(kernel));
        error != cudaSuccess)
      return error;
  return cudaSuccess;
}

resident_launcher launch_relay_bp(const relay_job &job, relay_variant variant) {
  return with_variant(variant, [&](auto v) { return launcher_of<v()>(job); });
}

cudaError_t max_relay_chains(unsigned parts, std::size_t block_bytes, unsigned &chains) {
  chains = 0;
  const auto *const kernel = reinterpret_cast<const void *>(&relay_bp_kernel<relay_variant::cluster>);
  if (const cudaError_t refused = detail::allow_shared_memory(kernel, block_bytes); refused != cudaSuccess)
    return refused;
  const detail::launch_configuration launch(parts, kBlockThreads, block_bytes, nullptr, parts);
  int found = 0;
  const cudaError_t error = cudaOccupancyMaxActiveClusters(&found, kernel, &launch.config);
  chains = static_cast<unsigned>(found);
  return error;
}

} // namespace cudaq::qec::realtime::gpu
