// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/graph/graph_service.h"

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"

namespace cudaq::realtime::tools {
namespace {

std::uint32_t round16(std::uint32_t bytes) { return (bytes + 15) / 16 * 16; }

/// User data of the pre-launch hook that copies a request to its staging buffer.
struct stage {
  void *to = nullptr;
  std::size_t bytes = 0;
};

void copy_request(void *user, void *slot_dev, cudaStream_t stream) {
  const auto &s = *static_cast<const stage *>(user);
  cudaMemcpyAsync(s.to, slot_dev, s.bytes, cudaMemcpyHostToDevice, stream);
}

} // namespace

echo_graphs::echo_graphs(const graph_service_config &config) : slot_bytes_(round16(config.slot_bytes)) {
  void *block = nullptr, *device = nullptr;
  const std::size_t bytes = config.workers * sizeof(GraphIOContext);
  require_cuda(cudaHostAlloc(&block, bytes, cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc");
  contexts_ = static_cast<GraphIOContext *>(block);
  std::fill_n(contexts_, config.workers, GraphIOContext{});
  require_cuda(cudaHostGetDevicePointer(&device, block, 0), "cudaHostGetDevicePointer");
  if (config.staged)
    staging_ = std::make_unique<gpu_memory>(std::size_t{config.workers} * slot_bytes_, stream_);
  for (std::uint32_t w = 0; w < config.workers; ++w) {
    const echo_task task{.io = static_cast<GraphIOContext *>(device) + w,
                         .staged = staged(w),
                         .frame_bytes = slot_bytes_,
                         .raises = config.completion == CUDAQ_WORKER_GRAPH_PUBLISHES,
                         .busy_ns = config.busy_ns};
    captured_graph graph;
    const graph_capture_result result =
        capture_graph(graph, [&](cudaStream_t stream) { return launch_echo(task, stream); });
    if (!result)
      throw gpu_error(result.text);
    graphs_.push_back(std::move(graph));
  }
}

echo_graphs::~echo_graphs() {
  graphs_.clear();
  cudaFreeHost(contexts_);
}

namespace {

struct graph_parts : service_parts {
  explicit graph_parts(const graph_service_config &c) : service_parts(c), graphs(c), stages(c.workers) {}

  void still_running() noexcept override {
    abandon(std::string("a graph does not end: ") + cudaq_last_error_message());
  }

  void add_workers(const graph_service_config &c) {
    std::vector<cudaq_host_worker_t> workers;
    for (std::uint32_t w = 0; w < c.workers; ++w) {
      cudaq_host_worker_t worker{};
      worker.struct_size = sizeof worker;
      worker.graph_exec = graphs.exec(w);
      worker.function_id = kGraphFunctionId;
      worker.completion = c.completion;
      worker.io_ctx = &graphs.context(w);
      if (c.staged) {
        stages[w] = {graphs.staged(w), graphs.slot_bytes()};
        worker.pre_launch_fn = copy_request;
        worker.pre_launch_data = &stages[w];
      }
      workers.push_back(worker);
    }
    require_ok(cudaq_dispatcher_set_host_workers(dispatcher, workers.data(), workers.size()),
               "cudaq_dispatcher_set_host_workers");
  }

  echo_graphs graphs;
  std::vector<stage> stages;
};

} // namespace

graph_service::graph_service(const graph_service_config &config) : ring_service(std::make_unique<graph_parts>(config)) {
  auto &parts = parts_as<graph_parts>();
  parts.create_ring(config, round16(config.slot_bytes), CUDAQ_MEMORY_MAPPED);
  cudaq_dispatcher_config_t c{};
  c.slot_size = config.slot_bytes;
  c.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
  c.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  parts.create_dispatcher(config, c);
  parts.add_workers(config);
}

} // namespace cudaq::realtime::tools
