// SPDX-License-Identifier: Apache-2.0
// Blocks of resident workers run first. Then a pipeline with graphs and a dispatcher on the device path start beside
// them, all three serve, and they stop in either order.
#include "unittests/gpu/qec/pipeline_gpu_graphs.h"
#include "unittests/gpu/qec/resident_rig.h"
#include "unittests/gpu/support/gpu_dispatcher.h"

namespace cudaq::realtime::test {
namespace {

// Set before the driver reads it. With the default of 8 hardware queues, a graph waits for the resident blocks as soon
// as enough streams exist.
[[maybe_unused]] const int kQueues = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);

constexpr std::uint64_t kRequests = 3000; ///< of each pipeline, in three parts

/// The three engines. All memory is allocated, and all kernels are loaded, before the blocks run: docs/pipeline.md.
class three_engines {
public:
  three_engines() {
    int blocks = 0;
    CUDA_EXPECT_OK(cudaq_dispatch_kernel_query_occupancy(&blocks, 32)); // loads the kernels of the archive
    wire_resident(resident_, workers_, seen_);
    graphs_.wire(with_graphs_);
  }
  /// Nothing runs when the members free memory.
  ~three_engines() {
    stop_resident();
    stop_others();
    dispatcher_.reset();
  }
  three_engines(const three_engines &) = delete;
  three_engines &operator=(const three_engines &) = delete;

  void start_resident() { expect_start(resident_); }
  void start_others() {
    ASSERT_NO_FATAL_FAILURE(expect_start(with_graphs_));
    ASSERT_NO_FATAL_FAILURE(dispatcher_->expect_start());
  }
  void stop_resident() { expect_stop(resident_); }
  void stop_others() {
    expect_stop(with_graphs_);
    const call_result stopped = CUDAQ_RESULT_WITHIN(kDeadline, cudaq_dispatcher_stop(dispatcher_->get));
    EXPECT_EQ(stopped.status, CUDAQ_OK) << stopped.text;
  }

  /// A third of the requests of the resident workers.
  void serve_by_resident() {
    auto to = resident_.create_injector();
    for (const std::uint64_t end = sent_ + kRequests / 3; sent_ != end; ++sent_)
      ASSERT_TRUE(submit(to, &sent_, sizeof(sent_), sent_)) << resident_.dump();
    EXPECT_TRUE(eventually([&] { return seen_.all == sent_; })) << resident_.dump();
  }
  /// A third of the requests of the graphs, and some calls of the dispatcher between them.
  void serve_by_others() {
    auto to = with_graphs_.create_injector();
    for (const std::uint64_t end = sent_to_graphs_ + kRequests / 3; sent_to_graphs_ != end; ++sent_to_graphs_) {
      const auto bytes = graphs_.bytes(sent_to_graphs_);
      ASSERT_TRUE(submit(to, bytes.data(), bytes.size(), sent_to_graphs_)) << with_graphs_.dump();
      if (sent_to_graphs_ % 10 == 0) {
        ASSERT_NO_FATAL_FAILURE(expect_serves(client_, static_cast<std::uint32_t>(sent_to_graphs_)));
      }
    }
    EXPECT_TRUE(eventually([&] { return graphs_.seen.all == sent_to_graphs_; })) << with_graphs_.dump();
  }
  void expect_all_answered() const {
    seen_.expect_each_once();
    graphs_.seen.expect_each_once();
  }

private:
  gpu::mapped_block release_{sizeof(int)};
  gpu::resident_workers workers_{resident_config_of(4), launch_add_one(release_.device<int>(), 128)};
  seen_by_request seen_{kRequests};
  pipe::realtime_pipeline resident_{gpu_pipeline(4, 16, 256)};
  copying graphs_{4, kRequests, gpu::staging::mapped};
  pipe::realtime_pipeline with_graphs_{gpu_pipeline(4, 8, kSlot)};
  manager_handle manager_;
  const host_ring ring_{{4, 256, false}, CUDAQ_MEMORY_MAPPED};
  std::unique_ptr<gpu_dispatcher> dispatcher_ =
      std::make_unique<gpu_dispatcher>(manager_.get, setup_of(kFifo32, ring_));
  gpu_client client_{ring_.ring, 4};
  std::uint64_t sent_ = 0, sent_to_graphs_ = 0;
};

class ResidentBesideGraphs : public gpu_test {};

// Known failures 5, 6.
TEST_F(ResidentBesideGraphs, AllServeAndTheResidentBlocksStopFirst) {
  three_engines all;
  ASSERT_NO_FATAL_FAILURE(all.start_resident());
  ASSERT_NO_FATAL_FAILURE(all.serve_by_resident());
  ASSERT_NO_FATAL_FAILURE(all.start_others());
  ASSERT_NO_FATAL_FAILURE(all.serve_by_others());
  ASSERT_NO_FATAL_FAILURE(all.serve_by_resident());
  ASSERT_NO_FATAL_FAILURE(all.serve_by_others());
  ASSERT_NO_FATAL_FAILURE(all.serve_by_resident());
  all.stop_resident();
  ASSERT_NO_FATAL_FAILURE(all.serve_by_others());
  all.stop_others();
  all.expect_all_answered();
}

TEST_F(ResidentBesideGraphs, AllServeAndTheResidentBlocksStopLast) {
  three_engines all;
  ASSERT_NO_FATAL_FAILURE(all.start_resident());
  ASSERT_NO_FATAL_FAILURE(all.start_others());
  for (int third = 0; third < 2; ++third) {
    ASSERT_NO_FATAL_FAILURE(all.serve_by_others());
    ASSERT_NO_FATAL_FAILURE(all.serve_by_resident());
  }
  ASSERT_NO_FATAL_FAILURE(all.serve_by_others());
  all.stop_others();
  ASSERT_NO_FATAL_FAILURE(all.serve_by_resident());
  all.stop_resident();
  all.expect_all_answered();
}

} // namespace
} // namespace cudaq::realtime::test
