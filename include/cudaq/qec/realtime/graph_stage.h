/* SPDX-License-Identifier: Apache-2.0 */
// A graph that its worker's own thread launches, in place of the dispatcher's. In libcudaq-qec-realtime-gpu.so (target
// cudaq::qec-realtime-gpu).
//
//   std::vector<std::unique_ptr<graph_stage>> stages;                       // one for each worker
//   pipeline.set_gpu_stage([&](int id) { return stages[id]->resources(my_graph_resources(id)); });
//
// When to use it: docs/pipeline.md.
#ifndef CUDAQ_QEC_REALTIME_GRAPH_STAGE_H
#define CUDAQ_QEC_REALTIME_GRAPH_STAGE_H

#include "cudaq/qec/realtime/pipeline.h"
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace cudaq::qec::realtime::gpu {

struct graph_stage_config {
  int device_id = 0;
  /// Not 0: the worker's thread writes the payload to input() before the launch, so the graph needs no hook that copies
  /// it. Longer payloads are answered LAUNCH_FAILED. 0: hooks bring the request to the graph, or it reads the slot.
  std::size_t input_bytes = 0;
  /// Of the input: CUDAQ_MEMORY_AUTO, _DEVICE_RX (GPU memory that the CPU writes) or _MAPPED (the graph reads host
  /// memory).
  cudaq_memory_kind_t input_memory = CUDAQ_MEMORY_AUTO;
  /// How long stop waits for a graph that still runs; not 0.
  std::uint64_t timeout_ns = 5000000000u;
};

/// The graph of one worker. It becomes a host stage: hooks and launch run on the worker's thread, so workers do not
/// wait for each other's CUDA calls, and hooks of different workers run at the same time. Not movable.
class CUDAQ_QEC_REALTIME_API graph_stage {
public:
  /// Allocates. Throws std::invalid_argument that names the wrong field, std::runtime_error with the reason if the
  /// machine refuses.
  explicit graph_stage(const graph_stage_config &config = {});
  /// Stop the pipeline first. Otherwise, and if the graph did not end in timeout_ns, the memory that they use is kept.
  ~graph_stage();
  graph_stage(const graph_stage &) = delete;
  graph_stage &operator=(const graph_stage &) = delete;

  /// Device address of the payload of the request that the graph works on, 8-byte aligned. The bytes after a
  /// shorter payload are left from earlier requests. nullptr: input_bytes is 0.
  [[nodiscard]] const void *input() const;
  /// The kind of memory of the input that was made, and why. input_bytes must not be 0.
  [[nodiscard]] cudaq_ringbuffer_info_t input_info() const;

  /// What the worker needs, for gpu_stage_factory. `graph`: as for the dispatcher, with graph_exec; if its stream is
  /// nullptr, the stream is one of this object. Its hooks get the stream. Throws std::invalid_argument: no graph, or
  /// io_ctx is set (only the dispatcher knows the slot's addresses for it); std::logic_error: it serves a worker of a
  /// running pipeline.
  experimental::gpu_worker_resources resources(const experimental::gpu_worker_resources &graph);

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace cudaq::qec::realtime::gpu

#endif
