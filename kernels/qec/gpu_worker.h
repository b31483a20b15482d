// SPDX-License-Identifier: Apache-2.0
// Pipeline workers with a GPU, for gpu_stage_factory. Each has one captured graph with the engine's kernel; its output
// and its ready flag are in mapped memory.
#pragma once

#include "kernels/qec/device_memory.h"
#include "kernels/qec/predecode_kernels.h"
#include "lib/qec/decoding/detector_graph.h"
#include "lib/qec/stages/decode_stage.h"

#include "cudaq/qec/realtime/pipeline.h"
#include "cudaq/realtime/daemon/dispatcher/graph_capture.h"

#include <memory>

namespace cudaq::qec::realtime::gpu {

/// How a request reaches the engine.
enum class staging {
  automatic, ///< mapped up to kStagingCrossover bytes, else dma
  mapped,    ///< the kernel reads the slot
  dma,       ///< the pre-launch hook copies the frame to device memory
};
/// A copy costs some 10 us before the graph begins. Reading a mapped slot costs about a microsecond, and the bytes
/// cross the bus. `cudaq-realtime-bench graph --curves` shows where the two are equal on a machine.
inline constexpr std::size_t kStagingCrossover = 64 * 1024;
staging decide(staging wanted, std::size_t frame_bytes);

/// The local rule's graph in device memory, for all workers of a model.
class device_graph {
public:
  explicit device_graph(const detector_graph &graph);
  detector_graph_view view() const { return view_; }

private:
  device_block edge_first_, edges_, boundary_, list_first_, lists_;
  detector_graph_view view_;
};

/// The common part of all workers. Not movable: the graph and the hook hold its address.
class gpu_worker {
public:
  gpu_worker(const gpu_worker &) = delete;
  gpu_worker &operator=(const gpu_worker &) = delete;
  virtual ~gpu_worker() = default;

  /// This object must outlive the run. user_context belongs to the caller.
  experimental::gpu_worker_resources resources(std::uint32_t function_id, void *user_context);
  const void *output() const { return output_.host<std::uint8_t>() + output_offset_; }
  bool has_staging() const { return staging_bytes_ != 0; }

protected:
  /// frame_bytes: of a request with its header. output_offset: where the engine's output begins.
  gpu_worker(staging how, std::size_t slot_size, std::size_t frame_bytes, std::size_t output_bytes,
             std::size_t output_offset = 0);
  template <class Launch>
  void capture(Launch &&launch) {
    const auto result = cudaq::realtime::capture_graph(graph_, launch);
    if (!result)
      throw std::runtime_error(result.text);
  }
  request_source source() const;
  std::uint8_t *output_dev() const { return output_.device<std::uint8_t>(); }

private:
  static void copy_to_staging(void *self, void *slot_dev, cudaStream_t stream);

  std::size_t staging_bytes_, output_bytes_, output_offset_;
  device_block staging_;
  mapped_block output_, control_; ///< control: io context, ready flag
  cudaq::realtime::captured_graph graph_;
};

/// Predecoder on bit-packed detection events. Its output has the form of predecoder_output.h.
class predecoding_worker final : public gpu_worker {
public:
  /// graph: for the local rule ("local"); null: "passthrough". slot_size: of the ring. With dma staging a request's
  /// payload may be at most one shot in whole words. Throws std::runtime_error.
  predecoding_worker(predecoder_layout layout, std::shared_ptr<const device_graph> graph, staging how,
                     std::size_t slot_size);

private:
  std::shared_ptr<const device_graph> graph_;
};

/// The same predecoder on resident blocks, one for each worker. `graph` must live as long as they do. slot_size: of the
/// ring. Throws std::runtime_error.
std::unique_ptr<resident_workers> resident_predecoders(int workers, predecoder_layout layout, const device_graph *graph,
                                                       std::size_t slot_size, int device_id,
                                                       cudaq_memory_kind_t memory_kind = CUDAQ_MEMORY_AUTO);

/// Passthrough of raw bytes: the output is as large as a request with `payload_bytes`. It waits `busy_ns` first.
class copy_gpu_worker final : public gpu_worker {
public:
  copy_gpu_worker(std::size_t payload_bytes, std::uint64_t busy_ns, staging how, std::size_t slot_size);
};

} // namespace cudaq::qec::realtime::gpu
