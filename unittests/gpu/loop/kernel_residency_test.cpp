// SPDX-License-Identifier: Apache-2.0
// Other work while a kernel runs that does not end: lazily loaded modules, and grids that must be resident as a whole.
#include "unittests/gpu/graphs/device_graph_rig.h"
#include "unittests/gpu/support/gpu_dispatcher.h"

namespace cudaq::realtime::test {
namespace {

// Set before the driver reads it. Every test of this program runs with lazy loading.
[[maybe_unused]] const int kLazy = setenv("CUDA_MODULE_LOADING", "LAZY", 1);
// With the default of 8 hardware queues, a stream's work waits for a resident kernel as soon as enough streams exist.
[[maybe_unused]] const int kQueues = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);

class LazyLoading : public gpu_test, public ::testing::WithParamInterface<kernel_kind> {};

// Known failure 6.
TEST_P(LazyLoading, FirstLaunchAndCopyBesideAResidentKernelDoNotWait) {
  manager_handle manager;
  host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  side_stream stream;
  const device_array<int> out(1);
  gpu_dispatcher dispatcher(manager.get, setup_of(GetParam(), ring));
  CUDA_ASSERT_OK(preload_other_kernel());
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  int got = 0;
  EXPECT_TRUE(finishes_within(std::chrono::seconds(2), "a first launch and a copy", [&] {
    CUDA_EXPECT_OK(launch_other_kernel(out.get, stream.get));
    CUDA_EXPECT_OK(cudaMemcpyAsync(&got, out.get, sizeof(got), cudaMemcpyDeviceToHost, stream.get));
    CUDA_EXPECT_OK(stream.wait());
  }));
  EXPECT_EQ(got, 42);
  gpu_client client(ring.ring, 4);
  expect_serves(client, 1);
}

// Further dispatchers of all kinds: start must load no code for them while the first kernel runs.
TEST_P(LazyLoading, EveryOtherKindStartsBesideAResidentKernel) {
  manager_handle manager;
  std::vector<std::unique_ptr<host_ring>> rings;
  std::vector<std::unique_ptr<gpu_dispatcher>> dispatchers;
  for (std::size_t n = 0; n < each_kind().size() + 1; ++n) { // allocates all memory before the first kernel starts
    rings.push_back(std::make_unique<host_ring>(ring_shape{4, 256, false}, CUDAQ_MEMORY_MAPPED));
    const kernel_kind kind = n == 0 ? GetParam() : each_kind()[n - 1];
    dispatchers.push_back(std::make_unique<gpu_dispatcher>(manager.get, setup_of(kind, *rings.back())));
  }
  for (std::size_t n = 0; n < dispatchers.size(); ++n) {
    const call_result started = dispatchers[n]->start(n == 0 ? kStartLimit : std::chrono::seconds(2));
    ASSERT_EQ(started.status, CUDAQ_OK) << started.text;
    gpu_client client(rings[n]->ring, 4);
    ASSERT_NO_FATAL_FAILURE(expect_serves(client, static_cast<std::uint32_t>(n)));
  }
  dispatchers.clear();
}

// A graph scheduler is created and launched while a kernel runs. The parts of the CUDA runtime that it needs are loaded
// already, or load without waiting for the kernel.
TEST_P(LazyLoading, AGraphSchedulerIsMadeAndServesBesideAResidentKernel) {
  int major = 0;
  CUDA_ASSERT_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, test_device()));
  if (major < 9)
    GTEST_SKIP() << "device graphs need compute capability 9.0";
  manager_handle manager;
  const host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED), ring_of_graphs({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs({graph_of(100), call_of(1)}, 256, 1000);
  scheduler_options o;
  o.later = true;
  graph_scheduler scheduler(ring_of_graphs, graphs, o);
  gpu_dispatcher dispatcher(manager.get, setup_of(GetParam(), ring));
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  EXPECT_TRUE(finishes_within(std::chrono::seconds(2), "create and launch", [&] {
    scheduler.create(o);
    scheduler.start();
  }));
  graph_traffic load(ring_of_graphs, graphs);
  load.run(500, 4, [](std::uint32_t m) { return m % 2; });
  scheduler.stop();
  load.expect_clean();
  gpu_client client(ring.ring, 4);
  expect_serves(client, 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, LazyLoading, ::testing::ValuesIn(each_kind()), name_of_kind);

class CoResidency : public gpu_test {
protected:
  void prepare() override {
    CUDA_ASSERT_OK(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, test_device()));
    const ring_shape shape{4, 256, false};
    grid_ring_ = std::make_unique<host_ring>(shape, CUDAQ_MEMORY_MAPPED);
    other_ring_ = std::make_unique<host_ring>(shape, CUDAQ_MEMORY_MAPPED);
  }
  std::uint32_t multiprocessors() const { return static_cast<std::uint32_t>(multiprocessors_); }

  /// Starts a cooperative dispatcher of `blocks` blocks of 128 threads, sends it a request, and ends it. Returns false
  /// if start refused the grid. A refusal must come soon and must name the number of blocks.
  bool runs(std::uint32_t blocks) {
    const kernel_kind kind{"Grid", CUDAQ_KERNEL_COOPERATIVE, blocks, 128};
    gpu_dispatcher dispatcher(manager_.get, setup_of(kind, *grid_ring_));
    const call_result started = dispatcher.start(kOneSecond);
    if (started.status != CUDAQ_OK) {
      EXPECT_NE(started.status, CUDAQ_ERR_TIMEOUT) << "start must refuse immediately, not by a time-out";
      EXPECT_NE(started.text.find(std::to_string(blocks)), std::string::npos) << started.text;
      return false;
    }
    gpu_client client(grid_ring_->ring, 4);
    expect_serves(client, blocks);
    return true;
  }
  /// The largest grid that start accepts.
  std::uint32_t largest() {
    std::uint32_t good = 0, bad = multiprocessors() * 32 + 1;
    while (bad - good > 1) {
      const std::uint32_t middle = good + (bad - good) / 2;
      (runs(middle) ? good : bad) = middle;
    }
    return good;
  }

  manager_handle manager_;
  std::unique_ptr<host_ring> grid_ring_, other_ring_;

private:
  int multiprocessors_ = 0;
};

// Known failure 5.
TEST_F(CoResidency, GridThatCannotBeResidentIsRefusedAndTheLargestSafeOneRuns) {
  const std::uint32_t alone = largest();
  int per_multiprocessor = 0;
  CUDA_EXPECT_OK(cudaq_dispatch_kernel_cooperative_query_occupancy(&per_multiprocessor, 128));
  EXPECT_GE(per_multiprocessor, 1);
  EXPECT_GE(alone, multiprocessors()) << "one block per multiprocessor must fit";
  for (const kernel_kind &kind : {kFifo128, kCooperative4x64}) {
    SCOPED_TRACE(kind.name);
    gpu_dispatcher resident(manager_.get, setup_of(kind, *other_ring_));
    ASSERT_NO_FATAL_FAILURE(resident.expect_start());
    EXPECT_FALSE(runs(alone)) << "the whole device, while a dispatcher is resident";
    const std::uint32_t beside = largest();
    EXPECT_LT(beside, alone);
    EXPECT_GE(beside, alone / multiprocessors() * (multiprocessors() - kind.blocks)) << "a grid was refused that fits";
    gpu_client client(other_ring_->ring, 4);
    ASSERT_NO_FATAL_FAILURE(expect_serves(client, 1)); // the resident dispatcher still serves
  }
  EXPECT_TRUE(runs(alone)) << "the blocks of destroyed dispatchers must be free again";
}

TEST_F(CoResidency, ReservedBlocksAreKeptFree) {
  const std::uint32_t alone = largest();
  CUDAQ_ASSERT_OK(cudaq_dispatch_manager_reserve_blocks(manager_.get, device_now(), 1));
  EXPECT_FALSE(runs(alone));
  EXPECT_TRUE(runs(1));
  CUDAQ_ASSERT_OK(cudaq_dispatch_manager_reserve_blocks(manager_.get, device_now(), alone));
  EXPECT_FALSE(runs(1));
  CUDAQ_ASSERT_OK(cudaq_dispatch_manager_reserve_blocks(manager_.get, device_now(), 0));
  EXPECT_TRUE(runs(alone));
}

TEST_F(CoResidency, ReservingOnNoDeviceIsRefused) {
  EXPECT_EQ(cudaq_dispatch_manager_reserve_blocks(manager_.get, -1, 1), CUDAQ_ERR_INVALID_ARG);
  EXPECT_STRNE(cudaq_last_error_message(), "");
  EXPECT_EQ(cudaq_dispatch_manager_reserve_blocks(nullptr, 0, 1), CUDAQ_ERR_INVALID_ARG);
}

TEST_F(CoResidency, OccupancyIsReportedForEveryBlockSize) {
  for (const std::uint32_t threads : {32u, 128u, 256u}) {
    int regular = 0, cooperative = 0;
    CUDA_EXPECT_OK(cudaq_dispatch_kernel_query_occupancy(&regular, threads));
    CUDA_EXPECT_OK(cudaq_dispatch_kernel_cooperative_query_occupancy(&cooperative, threads));
    EXPECT_GE(regular, 1) << threads;
    EXPECT_GE(cooperative, 1) << threads;
  }
  EXPECT_NE(cudaq_dispatch_kernel_query_occupancy(nullptr, 32), cudaSuccess);
}

} // namespace
} // namespace cudaq::realtime::test
