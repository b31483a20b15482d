// SPDX-License-Identifier: Apache-2.0
// Programs of the newer interface whose DEVICE_CALL handler starts a graph of the scheduler by its status.
#define CUDAQ_REALTIME_UPSTREAM_INTERFACE
#include "unittests/gpu/migration/pinned_ring.h"

namespace cudaq::realtime::migration {
namespace {

struct trigger_debug {
  int rc = -1;
  unsigned long long fires = ~0ull, relaunches = ~0ull;
};

class TriggeredGraphProgram : public gpu_test {
protected:
  void prepare() override {
    need_device_graphs();
    if (IsSkipped() || HasFatalFailure())
      return;
    ring = std::make_unique<pinned_ring>();
    shutdown = std::make_unique<pinned<int>>();
    gate = std::make_unique<pinned<int>>();
    stats = std::make_unique<pinned<std::uint64_t>>();
    runs = std::make_unique<pinned<std::uint64_t>>();
    *gate->host = 1;
    CUDA_ASSERT_OK(cudaMalloc(reinterpret_cast<void **>(&table_), sizeof(*table_)));
    CUDA_ASSERT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_ASSERT_OK(init_device_table(table_, kFunction, stream, true));
  }
  void TearDown() override {
    if (graph_ != nullptr) {
      EXPECT_TRUE(finishes_within(kDeadline, "the clean-up", [&] {
        CUDA_EXPECT_OK(cudaGraphExecDestroy(graph_));
        CUDA_EXPECT_OK(cudaFree(table_));
        CUDA_EXPECT_OK(cudaStreamDestroy(stream));
      }));
    }
  }
  cudaError_t create(std::uint32_t num_blocks) {
    const cudaq_ringbuffer_t r = ring->device_only();
    return cudaq_create_dispatch_graph_regular(r.rx_flags, r.tx_flags, r.rx_data, r.tx_data, r.rx_stride_sz,
                                               r.tx_stride_sz, table_, 1, nullptr, shutdown->dev, stats->dev, kSlots,
                                               num_blocks, 32, graph_, stream, &scheduler);
  }
  void start(bool upload = true) {
    CUDA_ASSERT_OK(make_triggered_graph(gate->dev, runs->dev, upload, stream, &graph_));
    CUDA_ASSERT_OK(create(1));
    CUDA_ASSERT_OK(cudaq_launch_dispatch_graph(scheduler, stream));
  }
  void send(std::uint32_t n) const { ring->send(n % kSlots, kFunction, n, n); }
  void expect(std::uint32_t n) const { ring->expect(n % kSlots, 0, n + 1, n); }
  void stop() {
    detail::store_release(*shutdown->host, 1);
    EXPECT_TRUE(
        finishes_within(kDeadline, "cudaStreamSynchronize", [&] { CUDA_EXPECT_OK(cudaStreamSynchronize(stream)); }));
    EXPECT_TRUE(finishes_within(kDeadline, "cudaq_destroy_dispatch_graph",
                                [&] { CUDA_EXPECT_OK(cudaq_destroy_dispatch_graph(scheduler)); }));
  }
  static trigger_debug debug() {
    trigger_debug found;
    CUDA_EXPECT_OK(cudaq_dispatch_get_trigger_debug(&found.rc, &found.fires, &found.relaunches));
    return found;
  }
  bool have_run(std::uint64_t times) const {
    return eventually([&] { return detail::load_acquire(*runs->host) == times; });
  }

  std::unique_ptr<pinned_ring> ring;
  std::unique_ptr<pinned<int>> shutdown, gate;
  std::unique_ptr<pinned<std::uint64_t>> stats, runs;
  cudaStream_t stream = nullptr;
  cudaq_dispatch_graph_context *scheduler = nullptr;

private:
  cudaq_function_entry_t *table_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
};

TEST_F(TriggeredGraphProgram, EachRequestIsAnsweredAndThenStartsItsGraph) {
  constexpr std::uint32_t kRequests = 400; // more than one execution of a scheduler may launch
  start();
  for (std::uint32_t n = 0; n < kRequests && !HasFatalFailure(); ++n) {
    send(n);
    expect(n);
  }
  EXPECT_TRUE(have_run(kRequests)) << *runs->host << " runs";
  const trigger_debug while_it_runs = debug();
  EXPECT_EQ(while_it_runs.rc, 0);
  EXPECT_EQ(while_it_runs.fires, kRequests);
  EXPECT_GE(while_it_runs.relaunches, 3u);
  stop();
  EXPECT_EQ(debug().fires, kRequests) << "the counts of a destroyed scheduler stay";
  EXPECT_EQ(*runs->host, kRequests);
}

TEST_F(TriggeredGraphProgram, RequestsThatAreThereTogetherStartOneGraphEach) {
  start();
  constexpr std::uint32_t kRounds = 40;
  for (std::uint32_t round = 0; round < kRounds && !HasFatalFailure(); ++round) {
    for (std::uint32_t n = 0; n < kSlots; ++n)
      send(round * kSlots + n);
    for (std::uint32_t n = 0; n < kSlots; ++n)
      expect(round * kSlots + n);
  }
  EXPECT_TRUE(have_run(kRounds * kSlots)) << *runs->host << " runs";
  stop();
}

TEST_F(TriggeredGraphProgram, ALaunchWaitsForTheRunBefore) {
  *gate->host = 0;
  start();
  for (std::uint32_t n = 0; n < 3; ++n)
    send(n);
  expect(0);
  expect(1); // its launch waits now, and request 2 with it
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const cudaq_ringbuffer_t r = ring->host_only();
  EXPECT_EQ(cudaq_host_ringbuffer_poll_tx_flag(&r, 2, nullptr), CUDAQ_TX_EMPTY);
  detail::store_release(*gate->host, 1);
  expect(2);
  EXPECT_TRUE(have_run(3)) << *runs->host << " runs";
  stop();
}

TEST_F(TriggeredGraphProgram, AGraphThatCannotBeLaunchedCostsNoAnswer) {
  start(false);
  for (std::uint32_t n = 0; n < 5 && !HasFatalFailure(); ++n) {
    send(n);
    expect(n);
  }
  stop();
  EXPECT_NE(debug().rc, 0);
  EXPECT_EQ(debug().fires, 0u);
  EXPECT_EQ(*runs->host, 0u);
}

TEST_F(TriggeredGraphProgram, MoreThanOneBlockIsRefused) {
  start();
  cudaq_dispatch_graph_context *const first = scheduler;
  EXPECT_EQ(create(2), cudaErrorInvalidValue);
  EXPECT_EQ(scheduler, nullptr);
  scheduler = first;
  stop();
}

} // namespace
} // namespace cudaq::realtime::migration
