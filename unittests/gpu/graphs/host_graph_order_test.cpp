// SPDX-License-Identifier: Apache-2.0
// Graph workers on a GPU while some of them are busy: which requests wait, which pass, and in which order they are
// answered.
#include "unittests/gpu/graphs/host_graph_rig.h"

#include <algorithm>
#include <thread>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;

class GraphOrder : public gpu_test {
protected:
  void TearDown() override {
    if (rig)
      rig.reset();
  }
  void start(const graph_plan &plan) {
    ring = std::make_unique<host_ring>(plan.shape, CUDAQ_MEMORY_MAPPED);
    rig = std::make_unique<graph_rig>(*ring, plan);
    rig->expect_start();
  }
  void send(std::uint32_t slot, std::uint32_t function_id, std::uint64_t key, std::uint32_t request_id) const {
    CUDAQ_EXPECT_OK(
        cudaq_host_ringbuffer_write_rpc_request(&ring->ring, slot, function_id, &key, sizeof(key), request_id, 0));
    cudaq_host_ringbuffer_signal_slot(&ring->ring, slot);
  }
  bool ready(std::uint32_t slot) const {
    return cudaq_host_ringbuffer_poll_tx_flag(&ring->ring, slot, nullptr) == CUDAQ_TX_READY;
  }
  void expect_answer(std::uint32_t slot, std::int32_t status, std::uint32_t request_id) const {
    ASSERT_TRUE(eventually([&] { return ready(slot); })) << rig->dispatcher->dump();
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_read_rpc_response(&ring->ring, slot, &header, &result));
    EXPECT_EQ(header.status, status);
    EXPECT_EQ(header.request_id, request_id);
    cudaq_host_ringbuffer_clear_slot(&ring->ring, slot);
  }

  std::unique_ptr<host_ring> ring;
  std::unique_ptr<graph_rig> rig;
};

graph_worker_plan plain(std::uint32_t function, std::uint64_t delay_ns = 0) {
  graph_worker_plan w;
  w.function = function;
  w.delay_ns = delay_ns;
  return w;
}

TEST_F(GraphOrder, ALaterRequestOfAnotherWorkerIsAnsweredFirst) {
  for (const std::uint32_t completion :
       {CUDAQ_WORKER_LIBRARY_PUBLISHES, CUDAQ_WORKER_GRAPH_PUBLISHES, CUDAQ_WORKER_CALLER_PUBLISHES}) {
    graph_plan plan;
    plan.workers = {plain(0, 300 * kMillisecond),
                    plain(0)}; // the dispatcher takes the idle worker with the lowest index
    for (graph_worker_plan &w : plan.workers)
      w.completion = completion;
    ASSERT_NO_FATAL_FAILURE(start(plan));
    send(0, 1, 0, 10);
    send(1, 1, 0, 11);
    expect_answer(1, 0, 11);
    EXPECT_FALSE(ready(0)) << "the graph still waits its 300 ms";
    expect_answer(0, 0, 10);
    rig.reset();
  }
}

// Known failure 19.
TEST_F(GraphOrder, ASlowFunctionDoesNotHoldUpAQuickOne) {
  graph_plan plan;
  plan.shape = {1024, 128, false}; // large, because the cursor would wait at a slot in flight after one lap
  plan.when_busy = CUDAQ_BUSY_WORKERS_PASS_FUNCTION;
  plan.workers = {plain(0, 1000 * kMillisecond), plain(1)};
  ASSERT_NO_FATAL_FAILURE(start(plan));
  send(0, 1, 0, 1);
  send(1, 1, 0, 2); // waits for the slow worker
  std::vector<double> us;
  for (std::uint32_t slot = 2; slot < 1002; ++slot) {
    const auto begin = std::chrono::steady_clock::now();
    send(slot, 2, 0, slot);
    ASSERT_TRUE(eventually([&] { return ready(slot); }));
    us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    cudaq_host_ringbuffer_clear_slot(&ring->ring, slot);
  }
  EXPECT_FALSE(ready(0)) << "its graph waits for one second";
  std::sort(us.begin(), us.end());
  std::printf("quick function while a slow one runs: p50 %.1f us, p99 %.1f us\n", us[500], us[990]);
  EXPECT_LT(us[990], 100.0);
  expect_answer(0, 0, 1);
  expect_answer(1, 0, 2);
}

TEST_F(GraphOrder, WithTheOptionOffEverythingWaits) {
  graph_plan plan;
  plan.workers = {plain(0, 200 * kMillisecond), plain(1)};
  ASSERT_NO_FATAL_FAILURE(start(plan));
  send(0, 1, 0, 1);
  send(1, 1, 0, 2);
  send(2, 2, 0, 3);
  expect_answer(0, 0, 1);
  EXPECT_FALSE(ready(1));
  expect_answer(2, 0, 3);
  expect_answer(1, 0, 2);
}

// Known failure 9.
TEST_F(GraphOrder, AllWorkersBusyLosesNothing) {
  for (const std::uint32_t when_busy : {CUDAQ_BUSY_WORKERS_WAIT, CUDAQ_BUSY_WORKERS_PASS_FUNCTION}) {
    constexpr std::uint32_t kMessages = 600;
    checked_device_functions functions(2, kMessages);
    graph_plan plan;
    plan.shape = {8, 128, when_busy != CUDAQ_BUSY_WORKERS_WAIT};
    plan.when_busy = when_busy;
    plan.functions = &functions;
    plan.workers = {plain(0, kMillisecond), plain(1, kMillisecond / 2)};
    ASSERT_NO_FATAL_FAILURE(start(plan));
    traffic_plan load_plan;
    load_plan.functions = {functions.function(0), functions.function(1)};
    load_plan.messages = kMessages;
    traffic load(*ring, load_plan);
    load.run();
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(rig->dispatcher->get));
    functions.collect();
    load.expect_clean();
    EXPECT_EQ(rig->dispatcher->stats().responded, kMessages);
    rig.reset();
  }
}

// Known failure 4.
TEST_F(GraphOrder, ASlotIsNotRefilledWhileItsGraphHasNotReadIt) {
  for (const bool markers : {true, false}) {
    constexpr std::uint32_t kMessages = 1000;
    checked_device_functions functions(1, kMessages);
    graph_plan plan;
    plan.shape = {2, 256, true};
    plan.markers = markers;
    plan.functions = &functions;
    plan.workers = {plain(0, kMillisecond), plain(0, kMillisecond)};
    plan.workers[0].completion = plan.workers[1].completion = CUDAQ_WORKER_GRAPH_PUBLISHES;
    ASSERT_NO_FATAL_FAILURE(start(plan));
    traffic_plan load_plan;
    load_plan.functions = {functions.function(0)};
    load_plan.messages = kMessages;
    traffic load(*ring, load_plan); // refills each slot as soon as the protocol allows it
    load.run();
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(rig->dispatcher->get));
    functions.collect();
    load.expect_clean(false, false);
    rig.reset();
  }
}

// Known failure 15.
TEST_F(GraphOrder, RoutingKeysSelectExactlyAndZeroServesTheRest) {
  const std::uint64_t keys[] = {0, 1, 0x8000000000000000ull, 7};
  for (const bool with_zero : {true, false}) {
    graph_plan plan;
    plan.when_busy = CUDAQ_BUSY_WORKERS_PASS_KEY;
    for (std::uint32_t k = with_zero ? 0 : 1; k < 4; ++k) {
      graph_worker_plan w = plain(0);
      w.key = keys[k];
      w.status = static_cast<std::int32_t>(k + 1);
      w.by_mailbox = k % 2 == 1;
      plan.workers.push_back(w);
    }
    ASSERT_NO_FATAL_FAILURE(start(plan));
    std::mt19937 random(5);
    for (std::uint32_t n = 0; n < 2000; ++n) {
      const std::uint32_t slot = n % plan.shape.num_slots, k = static_cast<std::uint32_t>(random() % 5);
      const std::uint64_t key = k < 4 ? keys[k] : 99; // no worker has key 99
      const bool exact = k < 4 && (k != 0 || with_zero);
      const std::int32_t status = exact       ? static_cast<std::int32_t>(k + 1)
                                  : with_zero ? 1
                                              : CUDAQ_RPC_ERR_NO_SUCH_FUNCTION;
      send(slot, 1, key, n);
      ASSERT_NO_FATAL_FAILURE(expect_answer(slot, status, n));
      ASSERT_TRUE(eventually([&] { return cudaq_host_ringbuffer_slot_available(&ring->ring, slot) == 1; }));
    }
    rig.reset();
  }
}

TEST_F(GraphOrder, TheSameWorkersServeARunAfterAnother) {
  graph_plan plan;
  plan.workers = {plain(0), plain(0)};
  ASSERT_NO_FATAL_FAILURE(start(plan));
  for (std::uint32_t n = 0, run = 0; run < 50; ++run) {
    for (std::uint32_t k = 0; k < 20; ++k, ++n) {
      const std::uint32_t slot = n % plan.shape.num_slots;
      send(slot, 1, 0, n);
      ASSERT_NO_FATAL_FAILURE(expect_answer(slot, 0, n));
      ASSERT_TRUE(eventually([&] { return cudaq_host_ringbuffer_slot_available(&ring->ring, slot) == 1; }));
    }
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(rig->dispatcher->get));
    ASSERT_NO_FATAL_FAILURE(rig->expect_start());
  }
}

// Known failure 12.
TEST_F(GraphOrder, StopWaitsForGraphsAndSaysWhenOneIsLate) {
  graph_plan plan;
  plan.workers = {plain(0, 1500 * kMillisecond)};
  ASSERT_NO_FATAL_FAILURE(start(plan));
  send(0, 1, 0, 1);
  ASSERT_TRUE(eventually([&] { return rig->dispatcher->stats().launches == 1; }));
  send(1, 1, 0, 2); // waits, because no worker is idle
  ASSERT_TRUE(eventually([&] { return rig->dispatcher->stats().dispatched == 2; }));
  const call_result late =
      CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatcher_stop_timeout(rig->dispatcher->get, 100'000'000));
  EXPECT_EQ(late.status, CUDAQ_ERR_TIMEOUT);
  EXPECT_FALSE(ready(0)) << "the graph still has its slot";
  expect_answer(1, CUDAQ_RPC_ERR_SHUTTING_DOWN, 2);
  CUDAQ_EXPECT_OK_WITHIN(kStartLimit, cudaq_dispatcher_stop(rig->dispatcher->get));
  expect_answer(0, 0, 1);
}

TEST_F(GraphOrder, ALoopOnTheCallersThreadServesGraphs) {
  graph_plan plan;
  plan.workers = {plain(0), plain(1)};
  plan.workers[1].completion = CUDAQ_WORKER_GRAPH_PUBLISHES;
  ring = std::make_unique<host_ring>(plan.shape, CUDAQ_MEMORY_MAPPED);
  rig = std::make_unique<graph_rig>(*ring, plan); // not started: the test uses only its graphs
  volatile int shutdown = 0;
  std::uint64_t stats = 0;
  HostDispatcherConfig config;
  config.rx_flags = ring->ring.rx_flags_host;
  config.tx_flags = ring->ring.tx_flags_host;
  config.tx_flags_dev = ring->ring.tx_flags;
  config.rx_data_host = ring->ring.rx_data_host;
  config.rx_data_dev = ring->ring.rx_data;
  config.tx_data_host = ring->ring.tx_data_host;
  config.tx_data_dev = ring->ring.tx_data;
  config.rx_stride_sz = ring->ring.rx_stride_sz;
  config.tx_stride_sz = ring->ring.tx_stride_sz;
  config.num_slots = plan.shape.num_slots;
  config.slot_size = plan.shape.slot_size;
  config.shutdown_flag = &shutdown;
  config.stats_counter = &stats;
  config.options = &rig->options;
  for (const cudaq_host_worker_t &w : rig->workers) {
    HostDispatchWorker worker;
    worker.graph_exec = w.graph_exec;
    worker.function_id = w.function_id;
    worker.completion = w.completion;
    worker.io_ctx = w.io_ctx;
    config.workers.push_back(worker);
  }
  cudaq_status_t status = CUDAQ_ERR_INTERNAL;
  std::string text;
  std::thread caller([&] {
    status = host_dispatcher_loop(config);
    text = status == CUDAQ_OK ? "" : cudaq_last_error_message();
  });
  for (std::uint32_t n = 0; n < 1000 && !HasFatalFailure(); ++n) {
    const std::uint32_t slot = n % plan.shape.num_slots;
    send(slot, 1 + n % 2, 0, n);
    expect_answer(slot, 0, n);
    eventually([&] { return cudaq_host_ringbuffer_slot_available(&ring->ring, slot) == 1; });
  }
  store_release<int>(shutdown, 1);
  EXPECT_TRUE(finishes_within(kStartLimit, "the loop", [&] { caller.join(); }));
  EXPECT_EQ(status, CUDAQ_OK) << text;
  EXPECT_EQ(stats, 1000u);
}

// Another thread works on the legacy stream meanwhile: its copies and the graphs wait for each other, and all end.
// Known failure 60.
TEST_F(GraphOrder, WorkersMayHaveBlockingStreams) {
  for (const std::uint32_t completion : {CUDAQ_WORKER_LIBRARY_PUBLISHES, CUDAQ_WORKER_GRAPH_PUBLISHES}) {
    graph_plan plan;
    plan.workers = {plain(0), plain(1)};
    for (graph_worker_plan &w : plan.workers)
      w.completion = completion;
    ring = std::make_unique<host_ring>(plan.shape, CUDAQ_MEMORY_MAPPED);
    rig = std::make_unique<graph_rig>(*ring, plan);
    cudaStream_t streams[2] = {};
    for (std::uint32_t w = 0; w < 2; ++w) {
      CUDA_ASSERT_OK(cudaStreamCreate(&streams[w]));
      rig->workers[w].stream = streams[w];
    }
    ASSERT_NO_FATAL_FAILURE(rig->expect_start());
    const device_array<std::uint64_t> target(1);
    std::atomic<bool> enough{false};
    std::uint64_t copies = 0;
    std::thread legacy([&] {
      const current_device here(test_device());
      for (; !enough.load(); ++copies)
        CUDA_EXPECT_OK(cudaMemcpy(target.get, &copies, sizeof(copies), cudaMemcpyHostToDevice));
    });
    for (std::uint32_t n = 0; n < 500 && !HasFailure(); ++n) {
      send(n % plan.shape.num_slots, 1 + n % 2, 0, n);
      expect_answer(n % plan.shape.num_slots, 0, n);
    }
    const std::string dump = rig->dispatcher->dump();
    EXPECT_NE(dump.find("routing key 0, blocking stream (waits for the legacy stream), "), std::string::npos) << dump;
    enough.store(true);
    legacy.join();
    EXPECT_GT(copies, 0u);
    rig.reset();
    for (const cudaStream_t stream : streams)
      CUDA_EXPECT_OK(cudaStreamDestroy(stream));
  }
}

} // namespace
} // namespace cudaq::realtime::test
