// SPDX-License-Identifier: Apache-2.0
// A dispatcher on the host path whose workers run real graphs, on a ring in mapped memory. A thread plays the CPU stage
// of CALLER_PUBLISHES workers.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/graph_capture.h"
#include "unittests/gpu/graphs/host_graphs.h"
#include "unittests/gpu/support/checked_device_functions.h"

namespace cudaq::realtime::test {

struct graph_worker_plan {
  std::uint32_t function = 0; ///< checked function k; its id is k + 1
  std::uint32_t completion = CUDAQ_WORKER_LIBRARY_PUBLISHES;
  std::uint64_t key = 0;
  bool by_mailbox = false; ///< the graph finds its slot by the mailbox, not by a GraphIOContext
  bool staged = false;     ///< the graph reads a copy that its pre-launch hook makes by DMA
  bool traps = false;
  std::int32_t status = 0;
  std::uint64_t delay_ns = 0;
};

struct graph_plan {
  ring_shape shape{16, 256, false};
  std::vector<graph_worker_plan> workers;
  bool markers = true;
  std::uint32_t when_busy = CUDAQ_BUSY_WORKERS_WAIT;
  std::uint64_t grace_period_ns = 5'000'000'000;
  const checked_device_functions *functions = nullptr; ///< null: requests are not checked
};

/// Zeroed mapped memory. Never freed: freeing it would wait for every kernel.
template <class T>
class mapped_array {
public:
  explicit mapped_array(std::size_t n) {
    void *block = nullptr, *device = nullptr;
    CUDA_EXPECT_OK(cudaHostAlloc(&block, n * sizeof(T), cudaHostAllocMapped | cudaHostAllocPortable));
    if (block == nullptr)
      return;
    std::memset(block, 0, n * sizeof(T));
    CUDA_EXPECT_OK(cudaHostGetDevicePointer(&device, block, 0));
    host = static_cast<T *>(block);
    dev = static_cast<T *>(device);
  }
  T *host = nullptr, *dev = nullptr;
};

/// Wired, not started. The destructor stops and destroys the dispatcher.
class graph_rig {
public:
  graph_rig(const host_ring &ring, const graph_plan &plan)
      : plan_(plan), ring_(ring), contexts_(64), mailbox_(64), ready_(64 * 16), ring_copy_(1), staging_(64) {
    *ring_copy_.host = ring.ring;
    if (ring.ring.tx_data == nullptr) { // in place
      ring_copy_.host->tx_data = ring.ring.rx_data;
      ring_copy_.host->tx_stride_sz = ring.ring.rx_stride_sz;
    }
    cudaq_dispatcher_config_t config = host_config(plan.shape);
    config.device_id = device_now();
    config.skip_tx_markers = !plan.markers;
    CUDAQ_EXPECT_OK(cudaq_dispatch_manager_create(&manager_));
    dispatcher =
        std::make_unique<host_dispatcher_handle>(manager_, ring, std::vector<cudaq_function_entry_t>{}, config);
    options = default_options();
    options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
    options.busy_workers = plan.when_busy;
    options.grace_period_ns = plan.grace_period_ns;
    for (std::uint32_t w = 0; w < plan.workers.size(); ++w)
      workers.push_back(make_worker(w));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_mailbox(dispatcher->get, mailbox_.host));
  }
  ~graph_rig() {
    if (!fault_expected) {
      CUDAQ_EXPECT_OK_WITHIN(kStartLimit, cudaq_dispatcher_stop(dispatcher->get));
    }
    end_stage();
    if (fault_expected) { // after a fault CUDA memory cannot be freed, and destroying reports an error
      (void)dispatcher.release();
      return;
    }
    dispatcher.reset();
    CUDAQ_EXPECT_OK_WITHIN(kStartLimit, cudaq_dispatch_manager_destroy(manager_));
  }
  graph_rig(const graph_rig &) = delete;
  graph_rig &operator=(const graph_rig &) = delete;

  call_result start() {
    const call_result started = call_within(kStartLimit, "start", [&] {
      cudaq_status_t status = cudaq_dispatcher_set_options(dispatcher->get, &options);
      if (status == CUDAQ_OK)
        status = cudaq_dispatcher_set_host_workers(dispatcher->get, workers.data(), workers.size());
      return status == CUDAQ_OK ? cudaq_dispatcher_start(dispatcher->get) : status;
    });
    if (started.status == CUDAQ_OK && !stage_.joinable())
      stage_ = std::thread([this] { play_stage(); });
    return started;
  }
  void expect_start() {
    const call_result started = start();
    ASSERT_EQ(started.status, CUDAQ_OK) << started.text;
  }
  void end_stage() {
    stage_ends_ = true;
    if (stage_.joinable())
      stage_.join();
  }
  /// How often the pre-launch hook of this worker was called.
  std::uint64_t staged_copies(std::uint32_t worker) const { return staging_[worker].copies.load(); }

  std::unique_ptr<host_dispatcher_handle> dispatcher;
  cudaq_dispatcher_options_t options{};
  std::vector<cudaq_host_worker_t> workers; ///< start() sets them
  bool fault_expected = false;
  std::atomic<std::uint32_t> completed_by_stage{0};

private:
  struct staging {
    void *at = nullptr;
    std::size_t bytes = 0;
    std::atomic<std::uint64_t> copies{0};
  };
  static void copy_request(void *user, void *slot_dev, cudaStream_t stream) {
    auto &s = *static_cast<staging *>(user);
    if (cudaMemcpyAsync(s.at, slot_dev, s.bytes, cudaMemcpyDefault, stream) == cudaSuccess)
      ++s.copies;
  }
  cudaq_host_worker_t make_worker(std::uint32_t w) {
    const graph_worker_plan &what = plan_.workers[w];
    graph_task task;
    task.function = what.function;
    task.status = what.status;
    task.slot_size = plan_.shape.slot_size;
    task.delay_ns = what.delay_ns;
    task.traps = what.traps;
    task.raises = what.completion == CUDAQ_WORKER_GRAPH_PUBLISHES;
    task.record = plan_.functions == nullptr ? nullptr : plan_.functions->record(what.function);
    if (what.by_mailbox) {
      task.mailbox = mailbox_.dev + w;
      task.ring = ring_copy_.dev;
    } else {
      task.io = contexts_.dev + w;
    }
    cudaq_host_worker_t worker{};
    worker.struct_size = sizeof(worker);
    worker.function_id = what.function + 1;
    worker.routing_key = what.key;
    worker.completion = what.completion;
    worker.io_ctx = what.by_mailbox ? nullptr : contexts_.host + w;
    if (what.completion == CUDAQ_WORKER_CALLER_PUBLISHES)
      task.ready = ready_.dev + 16 * w;
    if (what.staged) {
      staging_[w].bytes = plan_.shape.slot_size;
      CUDA_EXPECT_OK(cudaMalloc(&staging_[w].at, staging_[w].bytes));
      task.staged = static_cast<const std::uint8_t *>(staging_[w].at);
      worker.pre_launch_fn = copy_request;
      worker.pre_launch_data = &staging_[w];
    }
    captured_graph graph;
    const graph_capture_result captured =
        capture_graph(graph, [&](cudaStream_t stream) { return launch_graph_task(task, stream); });
    EXPECT_EQ(captured.status, CUDAQ_OK) << captured.text;
    worker.graph_exec = graph.exec();
    graphs_.push_back(std::move(graph));
    return worker;
  }

  /// The CPU stage: takes the frame that the graph has written, answers, and releases the worker before or after the
  /// answer.
  void play_stage() {
    while (!stage_ends_.load()) {
      bool found = false;
      for (std::uint32_t w = 0; w < workers.size(); ++w)
        if (workers[w].completion == CUDAQ_WORKER_CALLER_PUBLISHES && load_acquire(ready_.host[16 * w]) != 0) {
          store_release<std::uint64_t>(ready_.host[16 * w], 0);
          answer(static_cast<int>(w));
          found = true;
        }
      if (!found)
        std::this_thread::yield();
    }
  }
  void answer(int worker) {
    cudaq_host_job_t job{};
    CUDAQ_EXPECT_OK(cudaq_host_worker_job(dispatcher->get, worker, &job));
    cudaq_rpc_response_t frame{};
    std::memcpy(&frame, ring_.tx_slot(job.slot), sizeof(frame));
    EXPECT_EQ(frame.request_id, job.request_id);
    const bool release_first = job.request_id % 2 == 0;
    const auto release = [&] { CUDAQ_EXPECT_OK(cudaq_host_release_worker(dispatcher->get, worker)); };
    if (release_first)
      release();
    CUDAQ_EXPECT_OK(cudaq_host_complete_deferred(dispatcher->get, &job, frame.status, frame.result_len));
    if (!release_first)
      release();
    ++completed_by_stage;
  }
  const graph_plan plan_;
  const host_ring &ring_;
  cudaq_dispatch_manager_t *manager_ = nullptr;
  mapped_array<GraphIOContext> contexts_;
  mapped_array<void *> mailbox_;
  mapped_array<volatile std::uint64_t> ready_; ///< one word per worker, 128 bytes apart
  mapped_array<cudaq_ringbuffer_t> ring_copy_;
  std::vector<staging> staging_;
  std::vector<captured_graph> graphs_;
  std::atomic<bool> stage_ends_{false};
  std::thread stage_;
};

} // namespace cudaq::realtime::test
