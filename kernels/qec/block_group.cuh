// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/qec/predecode_kernels.h"

#include "cudaq/realtime/detail/base/flag_word.h"

#include <cstdint>

namespace cudaq::qec::realtime::gpu {

inline constexpr std::uint32_t kMaxBlockThreads = 1024;

/// `Lanes` neighbouring threads of a warp, as lanes of local_rule.h. All threads of the warp call each function.
template <std::uint32_t Lanes, std::uint32_t AtOnce>
struct warp_lanes {
  static constexpr std::uint32_t kAtOnce = AtOnce;
  __device__ static std::uint32_t lane() { return threadIdx.x % Lanes; }
  __device__ static constexpr std::uint32_t lanes() { return Lanes; }
  __device__ static std::uint32_t which(bool mine) {
    return __ballot_sync(kWarp, mine) >> (threadIdx.x % 32 / Lanes * Lanes) & kAll;
  }
  __device__ static bool any_group(bool mine) { return __any_sync(kWarp, mine) != 0; }

private:
  static constexpr unsigned kWarp = 0xffffffffu, kAll = Lanes == 32 ? kWarp : (1u << Lanes % 32) - 1;
};

/// A block's threads, for the predecoder's body: whole warps.
class block_group {
public:
  /// warp_sums: shared memory, kMaxBlockThreads / 32 words.
  __device__ explicit block_group(std::uint32_t *warp_sums) : warp_sums_(warp_sums) {}
  __device__ static std::uint32_t thread() { return threadIdx.x; }
  __device__ static std::uint32_t threads() { return blockDim.x; }
  __device__ static void sync() { __syncthreads(); }
  __device__ static bool any(bool mine) { return __syncthreads_or(mine) != 0; }
  /// The sum over the threads before this one, and over all. Only the first `used` threads have a value other than 0.
  /// Warps without a value skip most of it: a block has more warps than can issue at a time.
  __device__ std::uint32_t sum_before(std::uint32_t mine, std::uint32_t used, std::uint32_t &total) const {
    const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const std::uint32_t warps = min((used + 31) / 32, blockDim.x / 32);
    std::uint32_t to_here = mine;
    if (warp < warps) {
      for (std::uint32_t distance = 1; distance < 32; distance *= 2) {
        const std::uint32_t other = __shfl_up_sync(0xffffffffu, to_here, distance);
        to_here += lane >= distance ? other : 0;
      }
      if (lane == 31)
        warp_sums_[warp] = to_here;
    }
    __syncthreads();
    const std::uint32_t sums = lane < warps ? warp_sums_[lane] : 0;
    total = __reduce_add_sync(0xffffffffu, sums);
    const std::uint32_t before = __reduce_add_sync(0xffffffffu, lane < warp ? sums : 0);
    return before + to_here - mine;
  }
  /// For lists of edges: most detectors have 8 to 12.
  __device__ static group_team<warp_lanes<8, 2>> team() { return {threadIdx.x / 8, blockDim.x / 8, {}}; }
  __device__ static void clear_bits(std::uint32_t &word, std::uint32_t bits) { atomicAnd(&word, ~bits); }
  __device__ static void flip_bits(std::uint32_t &word, std::uint32_t bits) { atomicXor(&word, bits); }
  __device__ static std::uint32_t add(std::uint32_t &word, std::uint32_t n) { return atomicAdd(&word, n); }

private:
  std::uint32_t *warp_sums_;
};

/// The frame of the request, or null in a warm-up run.
__device__ inline const std::uint8_t *request_frame(const request_source &from) {
  const auto *slot = static_cast<const std::uint8_t *>(from.io->rx_slot);
  return slot == nullptr || from.staging == nullptr ? slot : from.staging;
}

/// Sets the ready flag. Called by all threads of the block; all their writes come before the flag.
__device__ inline void set_ready(const request_source &from) {
  __syncthreads();
  if (threadIdx.x == 0)
    cudaq::realtime::detail::store_release<int>(*from.ready, 1);
}

} // namespace cudaq::qec::realtime::gpu
