// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/device/bench_poll.cuh"
#include "benchmarks/graph/bench_graph_gpu.h"

#include <algorithm>

namespace cudaq::realtime::tools {
namespace {

__global__ void __launch_bounds__(1024) echo_kernel(echo_task task) {
  const auto *const slot = static_cast<const std::uint8_t *>(task.io->rx_slot);
  if (slot == nullptr)
    return;
  if (task.busy_ns != 0)
    for (const std::uint64_t begin = global_ns(); global_ns() - begin < task.busy_ns;) {
    }
  const auto *const rx = reinterpret_cast<const uint4 *>(task.staged != nullptr ? task.staged : slot);
  auto *const tx = reinterpret_cast<uint4 *>(task.io->tx_slot);
  answer_frame<4>(rx, tx, task.frame_bytes / 16);
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
