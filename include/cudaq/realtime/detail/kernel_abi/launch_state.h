// SPDX-License-Identifier: Apache-2.0
// The state that start() passes to the launch function that it calls. The library and the program that holds the
// kernels have a CUDA runtime each, and the 14-argument launch functions have no parameter for it. So it is passed in
// cudaq_dispatch_launch_params_t::state. A 14-argument launch function gets it from cudaq_dispatch_launch_state(),
// which returns it only on the thread that is inside start().
#pragma once

#include "cudaq/realtime/detail/kernel_abi/device_params.h"
#include "cudaq/realtime/detail/kernel_abi/graph_bindings.h"

namespace cudaq::realtime::detail {

struct graph_report;

/// Input of a graph scheduler in addition to dispatch_params, and its output.
struct graph_launch_state {
  const graph_binding *graphs = nullptr; ///< with their contexts (graph_binding::io)
  std::uint32_t num_graphs = 0;
  std::uint32_t members = 0; ///< scheduler graphs of the rotation; 0: this launch is for another kernel
  bool order_by_key = false;
  std::uint64_t grace_ns = 0;     ///< how long a stop waits for waiting requests and for graphs in flight
  graph_report *report = nullptr; ///< mapped memory, as the device addresses it
  function_index_view host_index; ///< in host memory
  bool launched = false;          ///< out: scheduler graphs may be on the stream
  /// In: the scheduler graphs that earlier runs made. Out: those that this run uses. Graphs for launches from the
  /// device can be destroyed only when nothing runs on the device any more, so later runs use them again.
  void *made = nullptr;
  void (*destroy)(void *made) = nullptr; ///< a function of the module that made it; waits for all kernels of the device
};

} // namespace cudaq::realtime::detail

/// Private to one version of the library: kernels refuse a state of another size.
struct cudaq_dispatch_launch_state_t {
  std::uint32_t struct_size = sizeof(cudaq_dispatch_launch_state_t);
  std::uint32_t taken = 0; ///< out: set by kernels of the library; they post a heartbeat
  cudaq::realtime::detail::dispatch_params params;
  cudaq::realtime::detail::graph_launch_state graphs;
  std::uint32_t reserved_blocks = 0; ///< blocks of other kernels that stay resident on the device
  std::uint32_t resident_blocks = 0; ///< out: blocks of this launch, if a kernel of the library sets it
  int error = 0;                     ///< out: cudaError_t of the launch
  char text[256] = {};               ///< out: text of the error
};
