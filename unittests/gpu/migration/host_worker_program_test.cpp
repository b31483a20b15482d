// SPDX-License-Identifier: Apache-2.0
// Programs with graph workers and a mailbox, RX and TX separate: the loop of the newer interface with its context, and
// a dispatcher.
#define CUDAQ_REALTIME_UPSTREAM_INTERFACE
#include "unittests/gpu/migration/pinned_ring.h"

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"

#include <atomic>
#include <functional>
#include <thread>

namespace cudaq::realtime::migration {
namespace {

constexpr std::size_t kWorkers = 3;
constexpr std::uint32_t kRequests = 300;

class WorkerProgram : public gpu_test {
protected:
  void prepare() override {
    ring = std::make_unique<pinned_ring>();
    mailbox = std::make_unique<pinned<void *>>(kWorkers);
    contexts = std::make_unique<pinned<GraphIOContext>>(kWorkers);
    output = std::make_unique<pinned<std::uint32_t>>(kWorkers);
    ready = std::make_unique<pinned<int>>(kWorkers);
    for (auto &stream : streams)
      CUDA_ASSERT_OK(cudaStreamCreate(&stream)); // a blocking stream, as such programs have
  }
  void TearDown() override {
    for (const auto &graph : graphs)
      if (graph != nullptr) {
        CUDA_EXPECT_OK(cudaGraphExecDestroy(graph));
      }
    for (const auto &stream : streams)
      if (stream != nullptr) {
        CUDA_EXPECT_OK(cudaStreamDestroy(stream));
      }
  }
  void make_context_graphs() {
    for (std::size_t w = 0; w < kWorkers; ++w)
      CUDA_ASSERT_OK(make_context_graph(mailbox->dev + w, streams[w], &graphs[w]));
  }
  /// Runs the loop of the newer interface, sends requests and sets the flag.
  void run(cudaq_host_dispatch_loop_ctx_t &ctx) {
    std::vector<cudaq_host_dispatch_worker_t> workers(kWorkers);
    for (std::size_t w = 0; w < kWorkers; ++w) {
      workers[w].graph_exec = graphs[w];
      workers[w].stream = streams[w];
      workers[w].function_id = kFunction;
    }
    std::atomic<int> shutdown{0};
    std::atomic<std::uint64_t> live{0};
    std::uint64_t stats = 0;
    cudaq_function_entry_t entry{};
    entry.handler.graph_exec = graphs[0];
    entry.function_id = kFunction;
    entry.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
    if (ctx.ringbuffer.rx_flags_host == nullptr)
      ctx.ringbuffer = ring->both();
    ctx.config.num_slots = kSlots;
    ctx.config.slot_size = kSlotSize;
    ctx.config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
    ctx.function_table = {&entry, 1};
    ctx.workers = workers.data();
    ctx.num_workers = workers.size();
    ctx.h_mailbox_bank = mailbox->host;
    ctx.shutdown_flag = &shutdown;
    ctx.stats_counter = &stats;
    ctx.live_dispatched = &live;
    std::atomic<bool> returned{false};
    std::string why;
    std::thread loop([&] {
      cudaq_host_dispatcher_loop(&ctx);
      why = cudaq_last_error_message();
      returned.store(true);
    });
    for (std::uint32_t n = 0; n < kRequests && !HasFatalFailure() && !returned.load(); ++n) {
      ring->send(n % kSlots, kFunction, n, n);
      ring->expect(n % kSlots, 0, 2 * n, n);
    }
    shutdown.store(1);
    EXPECT_TRUE(eventually([&] { return returned.load(); })) << "the loop did not return";
    loop.join();
    EXPECT_EQ(stats, kRequests) << why;
    EXPECT_EQ(live.load(), kRequests);
  }
  /// Creates a dispatcher, wires it, sends requests and destroys it.
  void run_dispatcher(const std::function<void(cudaq_dispatcher_t *)> &wire) {
    cudaq_dispatcher_config_t config{};
    config.device_id = device_now();
    config.num_slots = kSlots;
    config.slot_size = kSlotSize;
    config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
    config.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
    cudaq_dispatch_manager_t *manager = nullptr;
    cudaq_dispatcher_t *d = nullptr;
    volatile int shutdown = 0;
    std::uint64_t stats = 0;
    const cudaq_ringbuffer_t r = ring->both();
    CUDAQ_ASSERT_OK(cudaq_dispatch_manager_create(&manager));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_create(manager, &config, &d));
    wire(d);
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(d, &r));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_control(d, &shutdown, &stats));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_mailbox(d, mailbox->host));
    CUDAQ_EXPECT_OK_WITHIN(kStartLimit, cudaq_dispatcher_start(d));
    for (std::uint32_t n = 0; n < kRequests && !HasFatalFailure(); ++n) {
      ring->send(n % kSlots, kFunction, n, n);
      ring->expect(n % kSlots, 0, 2 * n, n);
    }
    CUDAQ_EXPECT_OK_WITHIN(kDeadline, cudaq_dispatcher_destroy(d));
    CUDAQ_EXPECT_OK_WITHIN(kDeadline, cudaq_dispatch_manager_destroy(manager));
  }
  std::unique_ptr<pinned_ring> ring;
  std::unique_ptr<pinned<void *>> mailbox;
  std::unique_ptr<pinned<GraphIOContext>> contexts;
  std::unique_ptr<pinned<std::uint32_t>> output;
  std::unique_ptr<pinned<int>> ready;
  cudaStream_t streams[kWorkers] = {};
  cudaGraphExec_t graphs[kWorkers] = {};
};

// Known failure 65.
TEST_F(WorkerProgram, AThreadAnswersAndSetsTheBitOfTheIdleMask) {
  for (std::size_t w = 0; w < kWorkers; ++w)
    CUDA_ASSERT_OK(make_mailbox_graph(mailbox->dev + w, output->dev + w, ready->dev + w, streams[w], &graphs[w]));
  std::atomic<std::uint64_t> idle_mask{(1u << kWorkers) - 1};
  int tags[kWorkers] = {};
  std::atomic<bool> ends{false};
  std::thread cpu_stage([&] {
    while (!ends.load())
      for (std::size_t w = 0; w < kWorkers; ++w) {
        if (!detail::claim_word(ready->host[w], 1, 2))
          continue;
        const auto slot = static_cast<std::uint32_t>(tags[w]);
        RPCHeader request;
        std::memcpy(&request, ring->rx_data.host + slot * kSlotSize, sizeof(request));
        std::uint8_t *const answer = ring->tx_data.host + slot * kSlotSize;
        const RPCResponse response{RPC_MAGIC_RESPONSE, 0, sizeof(std::uint32_t), request.request_id,
                                   request.ptp_timestamp};
        std::memcpy(answer, &response, sizeof(response));
        std::memcpy(answer + sizeof(response), &output->host[w], sizeof(std::uint32_t));
        detail::store_release(ready->host[w], 0);
        detail::store_release(ring->tx_flags.host[slot], reinterpret_cast<std::uint64_t>(answer));
        idle_mask.fetch_or(std::uint64_t{1} << w);
      }
  });
  cudaq_host_dispatch_loop_ctx_t ctx{};
  ctx.idle_mask = &idle_mask;
  ctx.inflight_slot_tags = tags;
  ctx.skip_stream_sweep = true;
  run(ctx);
  ends.store(true);
  cpu_stage.join();
  EXPECT_EQ(idle_mask.load(), (1u << kWorkers) - 1);
}

// The form of the specification: the loop sweeps no streams, and the CPU stage answers, then frees the worker.
TEST_F(WorkerProgram, WithAllWorkersBusyTheNextSlotStaysUntouchedUntilABitIsSet) {
  constexpr std::uint32_t kBusy = 2;
  cudaq_host_dispatch_worker_t workers[kBusy]{};
  for (std::size_t w = 0; w < kBusy; ++w) {
    CUDA_ASSERT_OK(make_mailbox_graph(mailbox->dev + w, output->dev + w, ready->dev + w, streams[w], &graphs[w]));
    workers[w] = {graphs[w], streams[w], kFunction, nullptr, nullptr, nullptr, nullptr, 0};
  }
  cudaq_function_entry_t entry{};
  entry.handler.graph_exec = graphs[0];
  entry.function_id = kFunction;
  entry.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
  std::atomic<std::uint64_t> idle_mask{(1u << kBusy) - 1};
  int tags[kBusy] = {-1, -1};
  std::atomic<int> shutdown{0};
  std::atomic<bool> returned{false};
  std::uint64_t stats = 0;
  const cudaq_ringbuffer_t r = ring->both();
  cudaq_host_dispatch_loop_ctx_t ctx{};
  ctx.ringbuffer = r;
  ctx.config.num_slots = kSlots;
  ctx.config.slot_size = kSlotSize;
  ctx.function_table = {&entry, 1};
  ctx.workers = workers;
  ctx.num_workers = kBusy;
  ctx.h_mailbox_bank = mailbox->host;
  ctx.shutdown_flag = &shutdown;
  ctx.stats_counter = &stats;
  ctx.idle_mask = &idle_mask;
  ctx.inflight_slot_tags = tags;
  ctx.skip_stream_sweep = true;
  std::thread loop([&] {
    cudaq_host_dispatcher_loop(&ctx);
    returned.store(true);
  });
  const auto answer = [&](std::uint32_t w) { // the CPU stage
    const auto slot = static_cast<std::uint32_t>(tags[w]);
    std::uint8_t *const frame = ring->tx_data.host + slot * kSlotSize;
    const RPCResponse response{RPC_MAGIC_RESPONSE, 0, sizeof(std::uint32_t), slot, slot};
    std::memcpy(frame, &response, sizeof(response));
    std::memcpy(frame + sizeof(response), &output->host[w], sizeof(std::uint32_t));
    detail::store_release(ready->host[w], 0);
    detail::store_release(ring->tx_flags.host[slot], reinterpret_cast<std::uint64_t>(frame));
    idle_mask.fetch_or(std::uint64_t{1} << w);
    return slot;
  };
  const auto is_ready = [&](std::uint32_t w) { return detail::load_acquire(ready->host[w]) == 1; };
  for (std::uint32_t n = 0; n <= kBusy; ++n)
    ring->send(n, kFunction, 10 + n, n);
  EXPECT_TRUE(eventually([&] { return (is_ready(0) && is_ready(1)) || returned.load(); }));
  for (int looks = 0; looks < 50 && !HasFailure(); ++looks, std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    EXPECT_NE(detail::load_acquire(r.rx_flags_host[kBusy]), 0u) << "taken while no worker was free";
    EXPECT_EQ(cudaq_host_ringbuffer_poll_tx_flag(&r, kBusy, nullptr), CUDAQ_TX_EMPTY);
  }
  EXPECT_EQ(idle_mask.load(), 0u);
  if (!HasFailure()) {
    const std::uint32_t first = answer(0);
    ring->expect(first, 0, 2 * (10 + first), first);
    EXPECT_TRUE(eventually([&] { return is_ready(0); })) << "the next slot has the free worker";
    EXPECT_EQ(tags[0], static_cast<int>(kBusy));
    for (std::uint32_t w = 0; w < kBusy && !HasFailure(); ++w) {
      const std::uint32_t slot = answer(w);
      ring->expect(slot, 0, 2 * (10 + slot), slot);
    }
  }
  shutdown.store(1);
  EXPECT_TRUE(eventually([&] { return returned.load(); })) << "the loop did not return";
  loop.join();
}

TEST_F(WorkerProgram, AGraphFindsItsContextInTheMailboxAndPublishes) {
  make_context_graphs();
  cudaq_host_dispatch_loop_ctx_t ctx{};
  ctx.io_ctxs_host = contexts->host;
  ctx.io_ctxs_dev = contexts->dev;
  run(ctx);
}

// What the existing loop does not read is left out.
TEST_F(WorkerProgram, AContextWithoutViewsOfTheDeviceAndStrideOfRequests) {
  make_context_graphs();
  cudaq_host_dispatch_loop_ctx_t ctx{};
  ctx.ringbuffer = ring->host_only();
  ctx.ringbuffer.rx_stride_sz = 0;
  ctx.io_ctxs_host = contexts->host;
  ctx.io_ctxs_dev = contexts->dev;
  run(ctx);
}

// Known failure 64.
TEST_F(WorkerProgram, ADispatcherWithAMailboxOfContexts) {
  make_context_graphs();
  std::vector<cudaq_host_worker_t> workers(kWorkers);
  for (std::size_t w = 0; w < kWorkers; ++w) {
    workers[w].struct_size = sizeof(workers[w]);
    workers[w].graph_exec = graphs[w];
    workers[w].stream = streams[w];
    workers[w].function_id = kFunction;
    workers[w].completion = CUDAQ_WORKER_GRAPH_PUBLISHES;
    workers[w].io_ctx = contexts->host + w;
  }
  cudaq_dispatcher_options_t options = default_options();
  options.mailbox_content = CUDAQ_MAILBOX_IO_CONTEXT;
  run_dispatcher([&](cudaq_dispatcher_t *d) {
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(d, &options));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_host_workers(d, workers.data(), workers.size()));
  });
}

// The program makes no contexts: the library has them.
TEST_F(WorkerProgram, ADispatcherWithAMailboxWhoseTableHasAGraph) {
  make_context_graphs();
  cudaq_function_entry_t entry{};
  entry.handler.graph_exec = graphs[0];
  entry.function_id = kFunction;
  entry.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
  const cudaq_function_table_t table{&entry, 1};
  run_dispatcher([&](cudaq_dispatcher_t *d) { CUDAQ_ASSERT_OK(cudaq_dispatcher_set_function_table(d, &table)); });
}

} // namespace
} // namespace cudaq::realtime::migration
