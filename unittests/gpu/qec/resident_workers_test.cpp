// SPDX-License-Identifier: Apache-2.0
// Resident workers with a stage of the program: traffic, restarts, what start refuses. pipeline_gpu_engines_test.cpp
// has what they have in common with graphs.
#include "unittests/gpu/qec/resident_rig.h"

#include <optional>

namespace cudaq::realtime::test {
namespace {

constexpr std::size_t kSlot = 256;

struct ResidentWorkers : gpu_test {
  void prepare() override { release.emplace(sizeof(int)); }
  gpu::resident_launcher add_one(unsigned threads, std::size_t shared_bytes = 0) const {
    return launch_add_one(release->device<int>(), threads, shared_bytes);
  }
  std::optional<gpu::mapped_block> release; ///< the word that stages wait for
};

TEST_F(ResidentWorkers, AnswerEachRequestOnceOverRestartsAndWithoutABlockLeft) {
  constexpr std::uint64_t kRequests = 20000;
  gpu::resident_workers workers(resident_config_of(8), add_one(128));
  for (int run = 0; run < 3; ++run) {
    seen_by_request seen(kRequests);
    pipe::realtime_pipeline p(gpu_pipeline(8, 32, kSlot)); // destroyed before the workers: frees memory of the device
    wire_resident(p, workers, seen);
    ASSERT_NO_FATAL_FAILURE(expect_run(p, seen, [](const std::uint64_t &k) { return bytes_of(k); }));
    CUDA_EXPECT_OK(cudaDeviceSynchronize()); // returns: no block runs
  }
}

TEST_F(ResidentWorkers, APayloadLongerThanAMailboxFailsItsRequestOnly) {
  gpu::resident_workers workers(resident_config_of(1), add_one(32));
  seen_by_request seen(3);
  pipe::realtime_pipeline p(gpu_pipeline(1, 4, kSlot));
  wire_resident(p, workers, seen);
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  auto injector = p.create_injector();
  for (std::uint64_t k = 0; k < 3; ++k) {
    const std::uint64_t payload[2] = {k}; // its slot in the mailbox has room for both
    ASSERT_TRUE(submit(injector, payload, k == 1 ? sizeof(payload) : 8, k));
  }
  expect_stop(p);
  seen.expect_each_once(1);
  EXPECT_EQ(seen.last_error, cudaErrorInvalidValue);
}

TEST_F(ResidentWorkers, BlocksForWhichTheDeviceHasNoRoomAreRefusedByStart) {
  int processors = 0, memory = 0;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, test_device());
  cudaDeviceGetAttribute(&memory, cudaDevAttrMaxSharedMemoryPerBlockOptin, test_device());
  struct one {
    one(const gpu::resident_config &c, const gpu::resident_launcher &launch)
        : workers(c, launch), pipeline(gpu_pipeline(1, 4, kSlot)) {
      wire_resident(pipeline, workers, seen);
    }
    gpu::resident_workers workers;
    seen_by_request seen{1};
    pipe::realtime_pipeline pipeline;
  };
  gpu::resident_config largest = resident_config_of(64);
  largest.timeout_ns = 2'000'000'000;
  // A block of each fills a multiprocessor.
  const auto launch = add_one(32, static_cast<std::size_t>(memory) - 1024);
  std::deque<one> held;
  for (int blocks = 64; blocks <= processors; blocks += 64)
    ASSERT_NO_FATAL_FAILURE(expect_start(held.emplace_back(largest, launch).pipeline));
  one refused(largest, launch);
  for (int start = 0; start < 2; ++start) // blocks of the first wait for room when the second begins
    try {
      refused.pipeline.start();
      ADD_FAILURE() << held.size() << " kernels of 64 blocks and one more on " << processors << " multiprocessors";
    } catch (const std::runtime_error &e) {
      EXPECT_NE(std::string(e.what()).find("resident workers"), std::string::npos) << e.what();
    }
  for (one &h : held)
    expect_stop(h.pipeline);
  ASSERT_NO_FATAL_FAILURE(expect_start(refused.pipeline)) << "there is room now";
  expect_stop(refused.pipeline);
}

TEST_F(ResidentWorkers, BlocksThatNoDeviceHoldsAreRefusedWhenTheyAreMade) {
  EXPECT_THROW(gpu::resident_workers(resident_config_of(1), add_one(32, std::size_t{1} << 20)), std::runtime_error);
  for (const unsigned threads : {0u, 31u, 2048u})
    EXPECT_THROW(gpu::resident_workers(resident_config_of(1), add_one(threads)), std::runtime_error) << threads;
}

TEST_F(ResidentWorkers, AnErrorBeforeTheLaunchIsNotTheLaunchs) {
  gpu::resident_workers workers(resident_config_of(1), add_one(32));
  seen_by_request seen(1);
  pipe::realtime_pipeline p(gpu_pipeline(1, 4, kSlot));
  wire_resident(p, workers, seen);
  void *none = nullptr;
  EXPECT_NE(cudaMalloc(&none, SIZE_MAX / 2), cudaSuccess); // stays as the thread's last error
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  expect_stop(p);
  cudaGetLastError();
}

TEST_F(ResidentWorkers, WrongConfigurationsAreRefusedWithTheField) {
  const auto refused = [&](const char *text, auto &&change) {
    gpu::resident_config c = resident_config_of(1);
    change(c);
    try {
      const gpu::resident_workers workers(c, add_one(32));
      ADD_FAILURE() << text;
    } catch (const std::invalid_argument &e) {
      EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
    }
  };
  refused("num_workers is 0", [](auto &c) { c.num_workers = 0; });
  refused("num_workers is 65", [](auto &c) { c.num_workers = 65; });
  refused("output_bytes is 0", [](auto &c) { c.output_bytes = 0; });
  refused("payload_bytes is", [](auto &c) { c.payload_bytes = SIZE_MAX; });
  refused("memory_kind is 0", [](auto &c) { c.memory_kind = CUDAQ_MEMORY_HOST; });
  gpu::resident_config nowhere = resident_config_of(1);
  nowhere.device_id = 99;
  EXPECT_THROW(gpu::resident_workers(nowhere, add_one(32)), std::runtime_error);
  const gpu::resident_workers two(resident_config_of(2), add_one(32));
  EXPECT_THROW(two.resources(2, kDecode, nullptr), std::out_of_range);
  EXPECT_THROW(two.resources(-1, kDecode, nullptr), std::out_of_range);
}

} // namespace
} // namespace cudaq::realtime::test
