// SPDX-License-Identifier: Apache-2.0
// What start() hands to the launch function that it calls. The library and the program that holds the kernels have a
// CUDA runtime each, and the 14-argument launch functions have no room for it: so it travels in
// cudaq_dispatch_launch_params_t::state, or, for the 14-argument form, through cudaq_dispatch_launch_state(), which
// answers only the thread that is inside start().
#pragma once

#include "cudaq/realtime/detail/kernel_abi/device_params.h"
#include "cudaq/realtime/detail/kernel_abi/graph_bindings.h"

namespace cudaq::realtime::detail {

/// What a graph scheduler is given beside dispatch_params, and what it leaves to be given back.
struct graph_launch_state {
  const graph_binding *graphs = nullptr; ///< with their contexts
  std::uint32_t num_graphs = 0;
  std::uint32_t members = 0; ///< scheduler graphs; 0: this launch is for another kernel
  bool order_by_key = false;
  function_index_view host_index; ///< in host memory
  bool launched = false;          ///< out: schedulers may be on the stream
  /// In: what earlier runs have made. Out: what this one uses. Graphs for launches from the device are destroyed only
  /// when nothing runs on it any more, so they are used again.
  void *made = nullptr;
  void (*destroy)(void *made) = nullptr; ///< of the module that has made it; waits for all kernels of the device
};

} // namespace cudaq::realtime::detail

/// Private to one version of the library: its kernels refuse a state of another size.
struct cudaq_dispatch_launch_state_t {
  std::uint32_t struct_size = sizeof(cudaq_dispatch_launch_state_t);
  std::uint32_t taken = 0; ///< out: set by kernels of the library, which post a heartbeat
  cudaq::realtime::detail::dispatch_params params;
  cudaq::realtime::detail::graph_launch_state graphs;
  std::uint32_t reserved_blocks = 0; ///< blocks of others that stay resident on the device
  std::uint32_t resident_blocks = 0; ///< out: blocks of this launch, where the library's kernel knows them
  int error = 0;                     ///< out: cudaError_t of the launch
  char text[256] = {};               ///< out: what failed
};
