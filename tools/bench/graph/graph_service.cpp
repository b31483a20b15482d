// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/graph/graph_service.h"

namespace cudaq::realtime::tools {
namespace {

std::uint32_t round16(std::uint32_t bytes) { return (bytes + 15) / 16 * 16; }

/// What a pre-launch hook needs to stage a request.
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

struct graph_service::parts : api_handles {
  explicit parts(const graph_service_config &c) : num_slots(c.num_slots), graphs(c), stages(c.workers) {}

  std::uint32_t num_slots;
  echo_graphs graphs;
  std::vector<stage> stages;
  volatile int shutdown_flag = 0;
  std::uint64_t processed = 0;

  void wire(const graph_service_config &c) {
    require_ok(cudaq_dispatch_manager_create(&manager), "cudaq_dispatch_manager_create");
    cudaq_dispatcher_config_t config{};
    config.device_id = c.device;
    config.num_slots = c.num_slots;
    config.slot_size = c.slot_bytes;
    config.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
    config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
    require_ok(cudaq_dispatcher_create(manager, &config, &dispatcher), "cudaq_dispatcher_create");
    require_ok(cudaq_dispatcher_set_ringbuffer(dispatcher, &ring), "cudaq_dispatcher_set_ringbuffer");
    require_ok(cudaq_dispatcher_set_control(dispatcher, &shutdown_flag, &processed), "cudaq_dispatcher_set_control");
    require_ok(cudaq_dispatcher_set_options(dispatcher, &c.options), "cudaq_dispatcher_set_options");
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
};

graph_service::graph_service(const graph_service_config &config) : parts_(std::make_unique<parts>(config)) {
  try {
    create_ring(config.device, config.num_slots, round16(config.slot_bytes), CUDAQ_MEMORY_MAPPED, false,
                &parts_->memory, &parts_->ring);
    parts_->wire(config);
  } catch (...) {
    parts_->release(); // nothing has been started
    throw;
  }
}

graph_service::~graph_service() {
  if (!parts_->release())
    abandon(std::string("a graph does not end: ") + cudaq_last_error_message());
}

const cudaq_ringbuffer_t &graph_service::ring() const { return parts_->ring; }
std::uint32_t graph_service::num_slots() const { return parts_->num_slots; }
cudaq_dispatcher_t *graph_service::dispatcher() const { return parts_->dispatcher; }

} // namespace cudaq::realtime::tools
