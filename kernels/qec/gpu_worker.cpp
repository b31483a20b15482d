// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/gpu_worker.h"

#include <algorithm>

namespace cudaq::qec::realtime::gpu {

using cudaq::realtime::GraphIOContext;
using experimental::gpu_worker_resources;

namespace {

constexpr std::size_t kReadyOffset = 128; ///< a separate cache line
constexpr std::size_t round16(std::size_t n) { return (n + 15) / 16 * 16; }

template <class T>
device_block upload(const T *from, std::size_t n) {
  return device_block(static_cast<const void *>(from), n * sizeof(T));
}

// Wrong arguments are refused before anything is allocated: freeing it would wait for the kernels of the device.

const predecoder_layout &fitting(const predecoder_layout &layout) {
  if (!fits_a_block(layout))
    throw std::runtime_error("the predecoder's kernel has too little shared memory for " +
                             std::to_string(layout.num_detectors) + " detectors");
  return layout;
}

std::size_t staging_bytes(staging how, std::size_t slot_size, std::size_t frame_bytes) {
  if (frame_bytes > slot_size)
    throw std::runtime_error("a request of this engine has " + std::to_string(frame_bytes) +
                             " bytes, more than slot_size, which is " + std::to_string(slot_size));
  return decide(how, frame_bytes) == staging::dma ? frame_bytes : 0;
}

predecode_job predecoder_job(const predecoder_layout &layout, const device_graph *graph) {
  return {fitting(layout), graph != nullptr ? graph->view() : detector_graph_view{}};
}

} // namespace

staging decide(staging wanted, std::size_t frame_bytes) {
  if (wanted != staging::automatic)
    return wanted;
  return frame_bytes > kStagingCrossover ? staging::dma : staging::mapped;
}

device_graph::device_graph(const detector_graph &graph) : view_(graph.view()) {
  const detector_graph_view host = view_;
  const std::uint32_t n = host.num_detectors, num_lists = graph.num_lists();
  edge_first_ = upload(host.edge_first, n + 1);
  edges_ = upload(host.edges, host.edge_first[n]);
  boundary_ = upload(host.boundary, n);
  list_first_ = upload(host.list_first, num_lists + 1);
  lists_ = upload(host.lists, host.list_first[num_lists]);
  view_.edge_first = edge_first_.as<std::uint32_t>();
  view_.edges = edges_.as<graph_edge>();
  view_.boundary = boundary_.as<std::uint32_t>();
  view_.list_first = list_first_.as<std::uint32_t>();
  view_.lists = lists_.as<std::uint32_t>();
}

gpu_worker::gpu_worker(staging how, std::size_t slot_size, std::size_t frame_bytes, std::size_t output_bytes,
                       std::size_t output_offset)
    : staging_bytes_(staging_bytes(how, slot_size, frame_bytes)), output_bytes_(output_bytes),
      output_offset_(output_offset), output_(round16(output_bytes + output_offset)),
      control_(kReadyOffset + sizeof(int)) {
  if (staging_bytes_ != 0)
    staging_ = device_block(round16(staging_bytes_));
}

request_source gpu_worker::source() const {
  return {control_.device<GraphIOContext>(), staging_.as<std::uint8_t>(),
          reinterpret_cast<int *>(control_.device<std::uint8_t>() + kReadyOffset)};
}

// Throws if the copy cannot be queued; the request then fails.
void gpu_worker::copy_to_staging(void *self, void *slot_dev, cudaStream_t stream) {
  const auto &w = *static_cast<gpu_worker *>(self);
  require(cudaMemcpyAsync(w.staging_.as<void>(), slot_dev, w.staging_bytes_, cudaMemcpyDefault, stream),
          "copying a request to its staging buffer");
}

gpu_worker_resources gpu_worker::resources(std::uint32_t function_id, void *user_context) {
  gpu_worker_resources r;
  r.graph_exec = graph_.exec();
  r.function_id = function_id;
  r.user_context = user_context;
  r.gpu_output = output();
  r.gpu_output_size = output_bytes_;
  r.ready_flag = reinterpret_cast<int *>(control_.host<std::uint8_t>() + kReadyOffset);
  r.io_ctx = control_.host<void>();
  if (has_staging()) {
    r.pre_launch_fn = &copy_to_staging;
    r.pre_launch_data = this;
  }
  return r;
}

predecoding_worker::predecoding_worker(predecoder_layout layout, std::shared_ptr<const device_graph> graph, staging how,
                                       std::size_t slot_size)
    : gpu_worker(how, slot_size, CUDAQ_RPC_HEADER_SIZE + fitting(layout).dense_words() * sizeof(std::uint64_t),
                 layout.bytes()),
      graph_(std::move(graph)) {
  predecode_job job = predecoder_job(layout, graph_.get());
  if (has_staging())
    job.readable = static_cast<std::uint32_t>(layout.dense_words() * sizeof(std::uint64_t));
  capture([&](cudaStream_t stream) { return launch_predecode(source(), job, output_dev(), stream); });
}

std::unique_ptr<resident_workers> resident_predecoders(int workers, predecoder_layout layout, const device_graph *graph,
                                                       std::size_t slot_size, int device_id,
                                                       cudaq_memory_kind_t memory_kind) {
  resident_config config;
  config.num_workers = workers;
  // The block reads the words of a shot at once, and longer payloads whole.
  config.payload_bytes = std::max(slot_size - CUDAQ_RPC_HEADER_SIZE, layout.dense_words() * sizeof(std::uint64_t));
  config.output_bytes = layout.bytes();
  config.device_id = device_id;
  config.memory_kind = memory_kind;
  return std::make_unique<resident_workers>(config, launch_resident_predecoder(predecoder_job(layout, graph)));
}

copy_gpu_worker::copy_gpu_worker(std::size_t payload_bytes, std::uint64_t busy_ns, staging how, std::size_t slot_size)
    : gpu_worker(how, slot_size, CUDAQ_RPC_HEADER_SIZE + payload_bytes, payload_bytes, CUDAQ_RPC_HEADER_SIZE) {
  const copy_job job{output_dev(), static_cast<std::uint32_t>(round16(CUDAQ_RPC_HEADER_SIZE + payload_bytes)), busy_ns};
  capture([&](cudaStream_t stream) { return launch_copy(source(), job, stream); });
}

} // namespace cudaq::qec::realtime::gpu
