// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/realtime/graph_stage.h"
#include "cudaq/realtime/detail/base/shared_word.h"
#include "cudaq/realtime/detail/base/slot_memory.h"

#include "kernels/qec/request_memory.h"
#include "lib/base/cuda_device.h"

#include <limits>
#include <optional>

namespace cudaq::qec::realtime::gpu {

using cudaq::realtime::detail::device_guard;
using experimental::gpu_worker_resources;
using experimental::host_stage_call;

namespace {

const graph_stage_config &checked(const graph_stage_config &c) {
  const auto refuse = [](const std::string &text) { throw std::invalid_argument("graph stage: " + text); };
  if (c.input_bytes > std::numeric_limits<std::uint32_t>::max() / 2)
    refuse("input_bytes is " + std::to_string(c.input_bytes) + ", it must be at most 2 GiB");
  if (!is_kind_for_requests(c.input_memory))
    refuse("input_memory is " + std::to_string(c.input_memory) +
           ", it must be CUDAQ_MEMORY_AUTO, CUDAQ_MEMORY_DEVICE_RX or CUDAQ_MEMORY_MAPPED");
  if (c.timeout_ns == 0)
    refuse("timeout_ns is 0, so stop would not wait for the graph");
  return c;
}

} // namespace

class graph_stage::impl {
public:
  explicit impl(const graph_stage_config &config) : config_(config), stream_("graph stage") {
    if (config.input_bytes != 0)
      input_.emplace("graph stage: input", config.input_memory, 1, config.input_bytes, config.device_id);
  }
  impl(const impl &) = delete;
  impl &operator=(const impl &) = delete;

  const void *input() const { return input_ ? input_->ring.rx_data + CUDAQ_RPC_HEADER_SIZE : nullptr; }
  cudaq_ringbuffer_info_t input_info() const { return input_ ? input_->info() : cudaq_ringbuffer_info_t{}; }

  gpu_worker_resources resources(const gpu_worker_resources &graph) {
    if (graph.graph_exec == nullptr)
      throw std::invalid_argument("graph stage: graph_exec is NULL");
    if (graph.io_ctx != nullptr)
      throw std::invalid_argument("graph stage: io_ctx is set; only a graph that the dispatcher launches can have one");
    refuse_if_in_use();
    graph_ = graph;
    if (graph_.stream == nullptr)
      graph_.stream = stream_.get();
    gpu_worker_resources r = graph;
    r.graph_exec = nullptr;
    r.stream = nullptr;
    r.post_launch_fn = nullptr; // launch() calls the hooks, because they need the stream
    r.pre_launch_data = r.host_stage_data = this;
    r.pre_launch_fn = [](void *self, void *slot_dev, cudaStream_t) { static_cast<impl *>(self)->slot_ = slot_dev; };
    r.host_stage_fn = [](void *self, host_stage_call *call) { return static_cast<impl *>(self)->launch(*call); };
    r.stage_begin_fn = [](void *self) { static_cast<impl *>(self)->begin(); };
    r.stage_end_fn = [](void *self) { return static_cast<impl *>(self)->end(); };
    r.stage_error_fn = [](void *self) { return static_cast<impl *>(self)->error(); };
    return r;
  }
  /// Waits for the graph. False: it still runs.
  bool end() noexcept {
    const bool ended = spin_until(config_.timeout_ns, [this] { return state_of_stream() != cudaErrorNotReady; });
    in_use_.store(in_use_.load() != 0 && !ended);
    return ended;
  }

  /// The graph's stream may be gone if this is false.
  bool in_use() const { return in_use_.load() != 0; }

private:
  cudaError_t state_of_stream() const {
    return cudaq::realtime::detail::query_stream(config_.device_id,
                                                 graph_.stream != nullptr ? graph_.stream : stream_.get());
  }
  void refuse_if_in_use() const {
    if (in_use())
      throw std::logic_error("graph stage: it serves a worker already");
  }
  void begin() {
    refuse_if_in_use();
    const device_guard here(config_.device_id);
    require(here.error(), "graph stage: making the device current");
    require(cudaGraphUpload(graph_.graph_exec, graph_.stream), "graph stage: cudaGraphUpload");
    in_use_.store(1);
  }
  /// Returns a CUDA error. Exceptions of the hooks fail the request. Both return after the work that the hooks have
  /// queued has ended: it may use the slot, and the next request follows at once and must not find this one's flag.
  /// They wait no longer than timeout_ns: the graph of another buffer may be before it on the stream.
  int launch(const host_stage_call &call) {
    if (const cudaError_t refused = cudaSetDevice(config_.device_id); refused != cudaSuccess) // a stage may change it
      return refused;
    if (input_) {
      if (call.payload_size > config_.input_bytes || !input_->write(0, call.payload, call.payload_size))
        return cudaErrorInvalidValue;
      cudaq::realtime::detail::fence_posted_stores(); // before the launch
    }
    try {
      if (graph_.pre_launch_fn != nullptr)
        graph_.pre_launch_fn(graph_.pre_launch_data, slot_, graph_.stream);
      const cudaError_t refused = cudaGraphLaunch(graph_.graph_exec, graph_.stream);
      if (refused == cudaSuccess && graph_.post_launch_fn != nullptr)
        graph_.post_launch_fn(graph_.post_launch_data, slot_, graph_.stream);
      if (refused != cudaSuccess)
        await_hooks();
      return refused;
    } catch (...) {
      await_hooks();
      throw;
    }
  }
  void await_hooks() const {
    if (graph_.pre_launch_fn != nullptr || graph_.post_launch_fn != nullptr)
      spin_until(config_.timeout_ns, [this] { return state_of_stream() != cudaErrorNotReady; });
  }
  /// Not 0: the context has ended, and no graph runs any more.
  int error() const {
    const cudaError_t state = state_of_stream();
    return cudaq::realtime::detail::ends_the_context(state) ? state : 0;
  }

  const graph_stage_config config_;
  own_stream stream_;
  std::optional<request_ring> input_;
  gpu_worker_resources graph_;
  void *slot_ = nullptr;                                       ///< of the request that the worker launches
  cudaq::realtime::detail::shared_word<std::uint32_t> in_use_; ///< 1: by a worker of a pipeline that runs
};

graph_stage::graph_stage(const graph_stage_config &config) {
  const device_guard here(checked(config).device_id);
  require(here.error(), "graph stage: making the device current");
  impl_ = std::make_unique<impl>(config);
}

graph_stage::~graph_stage() {
  if (impl_->in_use())
    static_cast<void>(impl_.release());
}

const void *graph_stage::input() const { return impl_->input(); }
cudaq_ringbuffer_info_t graph_stage::input_info() const { return impl_->input_info(); }
gpu_worker_resources graph_stage::resources(const gpu_worker_resources &graph) { return impl_->resources(graph); }

} // namespace cudaq::qec::realtime::gpu
