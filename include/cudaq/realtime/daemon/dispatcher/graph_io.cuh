// SPDX-License-Identifier: Apache-2.0
// The last step of a graph handler: how its kernels say that the answer is written. Called by one thread, after every
// thread that wrote a part of the answer has synchronised with it.
#ifndef CUDAQ_REALTIME_GRAPH_IO_CUH
#define CUDAQ_REALTIME_GRAPH_IO_CUH

#include "cudaq/realtime/detail/base/flag_word.h"

namespace cudaq::realtime {

/// The graph must not touch the slot any more.
__device__ inline void publish_graph_response(const GraphIOContext &io) {
  detail::store_release(*io.tx_flag, io.tx_flag_value);
}

/// The same for a context of kind CUDAQ_GRAPH_IO_PUBLISHING: the ring's flag first, then the scheduler's word.
__device__ inline void publish_graph_response(const GraphIOContextV2 &io) {
  const GraphIOContextV2 own = io; // an answer that is taken may be followed by the next request
  publish_graph_response(own.io);
  detail::store_release(*own.done, own.done_value);
}

} // namespace cudaq::realtime

#endif
