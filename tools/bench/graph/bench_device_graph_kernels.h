// SPDX-License-Identifier: Apache-2.0
// The kernels of P8, as plain C++ sees them: what is captured for graphs that are launched from the device.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"

#include <cstdint>

namespace cudaq::realtime::tools {

/// What the floor's scheduler and its child share, in device memory.
struct floor_graph_state {
  cudaGraphExec_t child;
  std::uint64_t seen;     ///< the request in hand; flags count up
  std::uint64_t launches; ///< of this execution
  std::uint64_t *rx_flag; ///< of the CPU
  std::uint64_t *tx_flag; ///< of the child
  const std::uint32_t *stop;
  std::uint64_t *rx_slot, *tx_slot; ///< 32 bytes each; NULL: no frame is touched
};

cudaError_t preload_device_graph_bench();
/// A scheduler that is the least that can be: one thread, tail relaunch after 100 launches.
void launch_floor_scheduler(floor_graph_state *state_dev, cudaStream_t stream);
void launch_floor_child(const floor_graph_state *state_dev, cudaStream_t stream);
/// Under the library's scheduler: 24 bytes of header and 8 of payload come back.
void launch_answer(bool publishes, const GraphIOContextV2 *io_dev, cudaStream_t stream);

} // namespace cudaq::realtime::tools
