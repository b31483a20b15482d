// SPDX-License-Identifier: Apache-2.0
// Kernels that are captured into graphs that are launched from the device. Plain C++.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"

#include <cstdint>
#include <cuda_runtime_api.h>

namespace cudaq::realtime::tools {

/// State that the floor's scheduler and its child share, in device memory.
struct floor_graph_state {
  cudaGraphExec_t child;
  std::uint64_t seen;     ///< number of the current request; flags count up
  std::uint64_t launches; ///< child launches of this execution
  std::uint64_t *rx_flag; ///< the CPU writes it
  std::uint64_t *tx_flag; ///< the child writes it
  const std::uint32_t *stop;
  std::uint64_t *rx_slot, *tx_slot; ///< 32 bytes each; rx_slot NULL: no frame is touched
};

cudaError_t preload_device_graph_bench();
/// A minimal scheduler: one thread, tail relaunch after 100 launches.
void launch_floor_scheduler(floor_graph_state *state_dev, cudaStream_t stream);
void launch_floor_child(const floor_graph_state *state_dev, cudaStream_t stream);
/// The graph's kernel for the library's scheduler: it answers with 24 bytes of header and 8 bytes of payload.
void launch_answer(bool publishes, const GraphIOContextV2 *io_dev, cudaStream_t stream);

} // namespace cudaq::realtime::tools
