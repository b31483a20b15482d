// SPDX-License-Identifier: Apache-2.0
// The last step of a graph handler: its kernel publishes the answer. One thread calls this, after it has synchronised
// with every thread that wrote a part of the answer.
#ifndef CUDAQ_REALTIME_GRAPH_IO_CUH
#define CUDAQ_REALTIME_GRAPH_IO_CUH

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"
#include "cudaq/realtime/detail/base/flag_word.h"

namespace cudaq::realtime {

/// After this call the graph must not touch the slot.
__device__ inline void publish_graph_response(const GraphIOContext &io) {
  detail::store_release(*io.tx_flag, io.tx_flag_value);
}

/// The same for a context of kind CUDAQ_GRAPH_IO_PUBLISHING: first the ring's flag, then the scheduler's word.
__device__ inline void publish_graph_response(const GraphIOContextV2 &io) {
  const GraphIOContextV2 own = io; // copied first: after the first store the next request may follow
  publish_graph_response(own.io);
  detail::store_release(*own.done, own.done_value);
}

} // namespace cudaq::realtime

#endif
