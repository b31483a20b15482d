// SPDX-License-Identifier: Apache-2.0
// Graphs that answer requests, for the tests of the graph scheduler, as plain C++ sees them.
#pragma once

#include "unittests/gpu/support/handlers.h"

namespace cudaq::realtime::test {

/// Bytes in front of a checked frame: the routing key.
inline constexpr std::uint32_t kKeyBytes = 8;
/// The largest slot that such a graph can serve.
inline constexpr std::uint32_t kGraphSlotBytes = 1024;

/// What a graph does: waits, reads the request, checks it, answers, lingers.
struct graph_task {
  void *io_dev = nullptr; ///< GraphIOContext, or GraphIOContextV2 if publishes
  bool publishes = false;
  checked_record *record_dev = nullptr;
  std::uint32_t function_id = 0; ///< salt of the answers
  std::uint64_t key = 0;         ///< that requests must carry; kAnyKey: whatever they carry
  std::uint32_t max_result_len = 0;
  std::uint64_t wait_ns = 0;           ///< before it reads the request
  std::uint64_t slow_every = 1;        ///< every so manyth request, by sequence number, waits; the others do not
  std::uint64_t linger_ns = 0;         ///< after its signal
  std::uint32_t trap = 0;              ///< not 0: ends the context with an error instead
  const std::uint32_t *gate = nullptr; ///< waits, at most 20 s, until this word of the device is not 0
};
inline constexpr std::uint64_t kAnyKey = ~std::uint64_t{0};

/// A graph of one kernel, instantiated for launches from the device. Made while no kernel runs for ever.
cudaError_t make_graph(const graph_task &task, bool upload, cudaStream_t stream, cudaGraphExec_t *out);
cudaError_t preload_graph_kernels();

} // namespace cudaq::realtime::test
