// SPDX-License-Identifier: Apache-2.0
#include "bench_graph_gpu.h"
#include "bench_poll.cuh"

#include <algorithm>

namespace cudaq::realtime::tools {
namespace {

__global__ void __launch_bounds__(1024) echo_kernel(echo_task task) {
  constexpr std::uint32_t kAtOnce = 4; // loads on their way before the first is stored
  const auto *const slot = static_cast<const std::uint8_t *>(task.io->rx_slot);
  if (slot == nullptr)
    return;
  if (task.busy_ns != 0)
    for (const std::uint64_t begin = global_ns(); global_ns() - begin < task.busy_ns;) {
    }
  const auto *const rx = reinterpret_cast<const uint4 *>(task.staged != nullptr ? task.staged : slot);
  auto *const tx = reinterpret_cast<uint4 *>(task.io->tx_slot);
  const std::uint32_t vectors = task.frame_bytes / 16;
  for (std::uint32_t first = threadIdx.x; first < vectors; first += kAtOnce * blockDim.x) {
    uint4 held[kAtOnce];
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k)
      if (const std::uint32_t at = first + k * blockDim.x; at < vectors)
        held[k] = rx[at];
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k)
      if (const std::uint32_t at = first + k * blockDim.x; at < vectors)
        tx[at] = at == 0 ? uint4{CUDAQ_RPC_MAGIC_RESPONSE, 0, held[k].z, held[k].w} : held[k];
  }
  if (!task.raises)
    return;
  __syncthreads();
  if (threadIdx.x == 0)
    store_flag<cuda::thread_scope_system>(const_cast<std::uint64_t &>(*task.io->tx_flag), task.io->tx_flag_value);
}

} // namespace

cudaError_t launch_echo(const echo_task &task, cudaStream_t stream) {
  const std::uint32_t threads = std::clamp((task.frame_bytes / 16 + 31) / 32 * 32, 32u, 1024u);
  echo_kernel<<<1, threads, 0, stream>>>(task);
  return cudaGetLastError();
}

} // namespace cudaq::realtime::tools
