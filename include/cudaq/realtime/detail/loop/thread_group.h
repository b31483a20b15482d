// SPDX-License-Identifier: Apache-2.0
// The threads that run one dispatch loop together: a warp, or one thread if the loop is compiled for a CPU.
// dispatch_body.cuh has a table of all threads of a dispatch kernel.
#pragma once

#include "cudaq/realtime/detail/base/flag_word.h"

#include <cstddef>
#include <cstring>

namespace cudaq::realtime::detail {

/// A group of one thread.
struct single_thread_group {
  static constexpr std::uint32_t kWidth = 1;
  CUDAQ_REALTIME_HOST_DEVICE static std::uint32_t lane() { return 0; }
  CUDAQ_REALTIME_HOST_DEVICE static void sync() {}
  CUDAQ_REALTIME_HOST_DEVICE static std::uint32_t ballot(bool vote) { return vote; }
  template <class T>
  CUDAQ_REALTIME_HOST_DEVICE static T from(const T &mine, std::uint32_t) {
    return mine;
  }
  CUDAQ_REALTIME_HOST_DEVICE static long long cycles() { return 0; }
  CUDAQ_REALTIME_HOST_DEVICE static long long common_cycles() { return 0; }
};

#if defined(__CUDACC__)
/// A warp of a one-dimensional block. All lanes must make every call together.
struct warp_thread_group {
  static constexpr std::uint32_t kWidth = 32;
  __device__ static std::uint32_t lane() { return threadIdx.x % kWidth; }
  /// Writes of a lane before sync() are visible to the other lanes after it, and to threads that acquire a flag which
  /// one of these lanes releases after it.
  __device__ static void sync() { __syncwarp(); }
  /// Bit k: lane k votes yes.
  __device__ static std::uint32_t ballot(bool vote) { return __ballot_sync(~0u, vote); }
  /// The value of `mine` in lane k, copied word by word.
  template <class T>
  __device__ static T from(const T &mine, std::uint32_t k) {
    constexpr std::size_t kWords = (sizeof(T) + 3) / 4;
    std::uint32_t words[kWords] = {};
    std::memcpy(words, &mine, sizeof(T));
#pragma unroll
    for (std::size_t w = 0; w < kWords; ++w)
      words[w] = __shfl_sync(~0u, words[w], static_cast<int>(k));
    T value;
    std::memcpy(&value, words, sizeof(T));
    return value;
  }
  /// The clock of the calling lane. Lanes may differ, so decisions of the whole group use common_cycles.
  __device__ static long long cycles() { return clock64(); }
  __device__ static long long common_cycles() { return from(clock64(), 0); }
};
#endif

/// For functions that a loop calls rarely: their instructions stay out of the loop's code, because instructions are
/// fetched from memory too. Not for member functions: `this` would keep the object out of registers.
#if defined(__CUDACC__)
#define CUDAQ_REALTIME_OUT_OF_LINE __noinline__ __host__ __device__
#else
#define CUDAQ_REALTIME_OUT_OF_LINE
#endif

// The usual result of a condition: the compiler moves the rare branch out of the instruction stream.
CUDAQ_REALTIME_HOST_DEVICE inline bool likely(bool b) { return __builtin_expect(b, true); }
CUDAQ_REALTIME_HOST_DEVICE inline bool unlikely(bool b) { return __builtin_expect(b, false); }

/// Bits 0..n-1; n <= 32.
CUDAQ_REALTIME_HOST_DEVICE inline std::uint32_t low_bits(std::uint32_t n) { return n >= 32 ? ~0u : (1u << n) - 1; }

/// Number of the lowest set bit; `bits` is not 0.
CUDAQ_REALTIME_HOST_DEVICE inline std::uint32_t lowest_bit(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__ffs(static_cast<int>(bits))) - 1;
#else
  return static_cast<std::uint32_t>(__builtin_ctz(bits));
#endif
}

/// The number of set bits.
CUDAQ_REALTIME_HOST_DEVICE inline std::uint32_t count_bits(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__popc(bits));
#else
  return static_cast<std::uint32_t>(__builtin_popcount(bits));
#endif
}

} // namespace cudaq::realtime::detail
