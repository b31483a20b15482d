// SPDX-License-Identifier: Apache-2.0
// The kernels and graphs of bench_device_graph, as plain C++ sees them.
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

/// What a graph of ours does with the slot.
enum class answer_kind : std::uint8_t {
  signal, ///< nothing is read: a header that is always the same
  echo,   ///< 24 bytes of header and 8 of payload come back
};

cudaError_t preload_graph_benchmark();
/// The graph of a scheduler that is the least that can be: one thread, tail relaunch after 100 launches.
cudaError_t make_floor_scheduler(floor_graph_state *state_dev, cudaStream_t stream, cudaGraphExec_t *out);
cudaError_t make_floor_child(floor_graph_state *state_dev, cudaStream_t stream, cudaGraphExec_t *out);
/// A graph for the library's scheduler.
cudaError_t make_answer_graph(answer_kind kind, bool publishes, GraphIOContextV2 *io_dev, cudaStream_t stream,
                              cudaGraphExec_t *out);

} // namespace cudaq::realtime::tools
