// SPDX-License-Identifier: Apache-2.0
// How the benchmark's kernels wait, and how they end. Uses no code of the library: floors are written without it.
#pragma once

#include "benchmarks/device/bench_gpu.h"
#include "tools/ring/raw_ring.h"

#include <cuda/atomic>

namespace cudaq::realtime::tools {

template <cuda::thread_scope Scope>
__device__ inline std::uint64_t load_flag(std::uint64_t &flag) {
  return cuda::atomic_ref<std::uint64_t, Scope>(flag).load(cuda::memory_order_acquire);
}
template <cuda::thread_scope Scope>
__device__ inline void store_flag(std::uint64_t &flag, std::uint64_t value) {
  cuda::atomic_ref<std::uint64_t, Scope>(flag).store(value, cuda::memory_order_release);
}

/// Makes the first 16 bytes of an answer from the first 16 bytes of its request: response magic, status 0; length and
/// id stay.
__device__ inline uint4 as_response(uint4 head) { return {CUDAQ_RPC_MAGIC_RESPONSE, 0, head.z, head.w}; }

/// Copies a frame and makes its header a response. All threads of the block call it. Each thread issues AtOnce loads
/// before its first store.
template <std::uint32_t AtOnce>
__device__ inline void answer_frame(const uint4 *rx, uint4 *tx, std::uint32_t vectors) {
  for (std::uint32_t first = threadIdx.x; first < vectors; first += AtOnce * blockDim.x) {
    uint4 held[AtOnce];
#pragma unroll
    for (std::uint32_t k = 0; k < AtOnce; ++k)
      if (const std::uint32_t at = first + k * blockDim.x; at < vectors)
        held[k] = rx[at];
#pragma unroll
    for (std::uint32_t k = 0; k < AtOnce; ++k)
      if (const std::uint32_t at = first + k * blockDim.x; at < vectors)
        tx[at] = at == 0 ? as_response(held[k]) : held[k];
  }
}

__device__ inline uint4 *rx_frame(const raw_ring &ring, std::uint32_t slot) {
  return reinterpret_cast<uint4 *>(ring.rx_data + slot * ring.rx_stride);
}
__device__ inline uint4 *tx_frame(const raw_ring &ring, std::uint32_t slot) {
  return reinterpret_cast<uint4 *>(ring.tx_data + slot * ring.tx_stride);
}

__device__ inline std::uint64_t global_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// The waiting of one thread. Counts empty polls, and checks the stop word and the clock at every 1024th empty poll in
/// a row.
class kernel_watch {
public:
  __device__ explicit kernel_watch(const kernel_control &control) : control_(control) {
    begin_ns_ = global_ns();
    begin_cycles_ = clock64();
  }

  __device__ void worked() { since_ = 0; }
  /// Call it after a poll that found nothing. Returns true if the kernel must end.
  __device__ bool idle() {
    ++polls_;
    return ++since_ % kPollsPerCheck == 0 && must_end();
  }
  /// Polls until ready(value of the flag) is true. Returns false if the kernel must end.
  template <cuda::thread_scope Scope, class Ready>
  __device__ bool wait(std::uint64_t &flag, Ready ready) {
    worked();
    while (!ready(load_flag<Scope>(flag)))
      if (idle())
        return false;
    return true;
  }
  /// Writes the report. One thread calls it, at its end.
  __device__ void report(std::uint64_t done, std::uint64_t wrong) const {
    *control_.report =
        kernel_report{polls_, global_ns() - begin_ns_, static_cast<std::uint64_t>(clock64() - begin_cycles_), done,
                      wrong,  timed_out_ ? 1u : 0u};
  }

private:
  static constexpr std::uint32_t kPollsPerCheck = 1024;

  __device__ bool must_end() {
    std::uint32_t &stop = const_cast<std::uint32_t &>(*control_.stop);
    if (cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>(stop).load(cuda::memory_order_relaxed) != 0)
      return true;
    const std::uint64_t now = global_ns();
    if (since_ == kPollsPerCheck)
      idle_since_ns_ = now;
    timed_out_ = now - idle_since_ns_ > control_.idle_limit_ns;
    return timed_out_;
  }

  kernel_control control_;
  std::uint64_t begin_ns_ = 0;
  long long begin_cycles_ = 0;
  std::uint64_t polls_ = 0;
  std::uint64_t idle_since_ns_ = 0;
  std::uint32_t since_ = 0;
  bool timed_out_ = false;
};

} // namespace cudaq::realtime::tools
