// SPDX-License-Identifier: Apache-2.0
// Graphs that answer requests, for the tests of the graph scheduler. This header is plain C++.
#pragma once

#include "unittests/gpu/support/handlers.h"

#include <cuda_runtime_api.h>

namespace cudaq::realtime::test {

/// The routing key takes so many bytes before a checked frame.
inline constexpr std::uint32_t kKeyBytes = 8;
/// The largest slot that such a graph can serve.
inline constexpr std::uint32_t kGraphSlotBytes = 1024;

/// What a graph does, in this order: it waits, reads the request, checks it, answers and lingers.
struct graph_task {
  void *io_dev = nullptr; ///< GraphIOContext; GraphIOContextV2 if `publishes`
  bool publishes = false;
  checked_record *record_dev = nullptr;
  std::uint32_t function_id = 0; ///< salt of the answers
  std::uint64_t key = 0;         ///< the key that requests must carry; kAnyKey: any key
  std::uint32_t max_result_len = 0;
  std::uint64_t wait_ns = 0;           ///< waiting time before it reads the request
  std::uint64_t slow_every = 1;        ///< only each slow_every-th request, by sequence number, waits
  std::uint64_t linger_ns = 0;         ///< waiting time after its signal
  std::uint32_t silent = 0;            ///< not 0: the graph ends without an answer and without a signal
  std::uint32_t trap = 0;              ///< not 0: the graph ends the context with an error instead
  const std::uint32_t *gate = nullptr; ///< the graph waits, at most 20 s, until this word in device memory is not 0
};
inline constexpr std::uint64_t kAnyKey = ~std::uint64_t{0};

/// A graph of one kernel, instantiated for launches from the device. Called while no kernel runs that ends only when it
/// is stopped.
cudaError_t make_graph(const graph_task &task, bool upload, cudaStream_t stream, cudaGraphExec_t *out);
cudaError_t preload_graph_kernels();

} // namespace cudaq::realtime::test
