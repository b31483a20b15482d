// SPDX-License-Identifier: Apache-2.0
// Resident workers with a stage of the program: traffic, restarts, and every way in which a block can let a pipeline
// down.
#include "unittests/gpu/qec/pipeline_gpu_rig.h"
#include "unittests/gpu/qec/resident_stages.h"

#include <optional>

namespace cudaq::realtime::test {
namespace {

constexpr std::size_t kSlot = 256;

struct ResidentWorkers : gpu_test {
  void SetUp() override {
    gpu_test::SetUp();
    if (!IsSkipped() && !HasFatalFailure())
      release.emplace(sizeof(int));
  }
  gpu::resident_launcher add_one(unsigned threads, std::size_t shared_bytes = 0) const {
    return launch_add_one(release->device<int>(), threads, shared_bytes);
  }
  gpu::resident_config config(int workers) const {
    gpu::resident_config c;
    c.num_workers = workers;
    c.payload_bytes = 8;
    c.output_bytes = 8;
    c.device_id = test_device();
    return c;
  }
  /// The CPU stage answers with the block's output.
  static void wire(pipe::realtime_pipeline &p, const gpu::resident_workers &workers, seen_by_request &seen) {
    p.set_gpu_stage([&](int id) { return workers.resources(id, kDecode, nullptr); });
    p.set_cpu_stage([](const pipe::cpu_stage_context &c) {
      std::memcpy(c.response_buffer, c.gpu_output, c.gpu_output_size);
      return c.gpu_output_size;
    });
    p.set_completion_handler([&](const pipe::completion &c) {
      std::uint64_t answer = 0;
      if (c.response_size == sizeof(answer))
        std::memcpy(&answer, c.response, sizeof(answer));
      seen.record(c, (answer & UINT32_MAX) == c.request_id + 1);
    });
  }

  std::optional<gpu::mapped_block> release; ///< the word that stages wait for
};

TEST_F(ResidentWorkers, AnswerEachRequestOnceOverRestartsAndWithoutABlockLeft) {
  constexpr std::uint64_t kRequests = 20000;
  gpu::resident_workers workers(config(8), add_one(128));
  for (int run = 0; run < 3; ++run) {
    seen_by_request seen(kRequests);
    pipe::realtime_pipeline p(gpu_pipeline(8, 32, kSlot)); // destroyed before the workers: frees memory of the device
    wire(p, workers, seen);
    ASSERT_NO_FATAL_FAILURE(expect_start(p));
    auto injector = p.create_injector();
    for (std::uint64_t k = 0; k < kRequests; ++k)
      ASSERT_TRUE(submit(injector, &k, sizeof(k), k)) << p.dump();
    expect_stop(p);
    EXPECT_TRUE(p.last_stop().drained) << p.last_stop().text;
    seen.expect_each_once();
    CUDA_EXPECT_OK(cudaDeviceSynchronize()); // returns: no block runs
  }
}

TEST_F(ResidentWorkers, APayloadLongerThanAMailboxFailsItsRequestOnly) {
  gpu::resident_workers workers(config(1), add_one(32));
  seen_by_request seen(3);
  pipe::realtime_pipeline p(gpu_pipeline(1, 4, kSlot));
  wire(p, workers, seen);
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

TEST_F(ResidentWorkers, AStageThatDoesNotReturnIsReportedAndAwaitedByTheNextStop) {
  gpu::resident_config slow = config(2);
  slow.timeout_ns = 100'000'000;
  gpu::resident_workers workers(slow, add_one(32));
  seen_by_request seen(2);
  pipe::pipeline_stage_config c = gpu_pipeline(2, 4, kSlot);
  c.grace_period_ns = 100'000'000;
  pipe::realtime_pipeline p(c);
  wire(p, workers, seen);
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  auto injector = p.create_injector();
  const std::uint64_t waits = std::uint64_t{1} << 32, good = 1;
  ASSERT_TRUE(submit(injector, &waits, sizeof(waits), 0));
  ASSERT_TRUE(submit(injector, &good, sizeof(good), 1));
  ASSERT_TRUE(eventually([&] { return seen.all == 1; })) << "the other worker goes on";
  expect_stop(p);
  EXPECT_FALSE(p.last_stop().drained);
  EXPECT_NE(p.last_stop().text.find("have not ended"), std::string::npos) << p.last_stop().text;
  EXPECT_THROW(p.start(), std::logic_error);
  *release->host<volatile int>() = 1;
  expect_stop(p);
  EXPECT_TRUE(p.last_stop().drained) << p.last_stop().text;
  EXPECT_EQ(seen.all, 2u);
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  expect_stop(p);
}

TEST_F(ResidentWorkers, BlocksForWhichTheDeviceHasNoRoomAreRefusedByStart) {
  int processors = 0, memory = 0;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, test_device());
  cudaDeviceGetAttribute(&memory, cudaDevAttrMaxSharedMemoryPerBlockOptin, test_device());
  struct one {
    one(const gpu::resident_config &c, const gpu::resident_launcher &launch)
        : workers(c, launch), pipeline(gpu_pipeline(1, 4, kSlot)) {
      wire(pipeline, workers, seen);
    }
    gpu::resident_workers workers;
    seen_by_request seen{1};
    pipe::realtime_pipeline pipeline;
  };
  gpu::resident_config most = config(64);
  most.timeout_ns = 2'000'000'000;
  // A block of each fills a multiprocessor.
  const auto launch = add_one(32, static_cast<std::size_t>(memory) - 1024);
  std::deque<one> held;
  for (int blocks = 64; blocks <= processors; blocks += 64)
    ASSERT_NO_FATAL_FAILURE(expect_start(held.emplace_back(most, launch).pipeline));
  one refused(most, launch);
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
  EXPECT_THROW(gpu::resident_workers(config(1), add_one(32, std::size_t{1} << 20)), std::runtime_error);
  for (const unsigned threads : {0u, 31u, 2048u})
    EXPECT_THROW(gpu::resident_workers(config(1), add_one(threads)), std::runtime_error) << threads;
}

TEST_F(ResidentWorkers, AnErrorBeforeTheLaunchIsNotTheLaunchs) {
  gpu::resident_workers workers(config(1), add_one(32));
  seen_by_request seen(1);
  pipe::realtime_pipeline p(gpu_pipeline(1, 4, kSlot));
  wire(p, workers, seen);
  void *none = nullptr;
  EXPECT_NE(cudaMalloc(&none, SIZE_MAX / 2), cudaSuccess); // stays as the thread's last error
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  expect_stop(p);
  cudaGetLastError();
}

TEST_F(ResidentWorkers, WrongConfigurationsAreRefusedWithTheField) {
  const auto refused = [&](const char *text, auto &&change) {
    gpu::resident_config c = config(1);
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
  gpu::resident_config nowhere = config(1);
  nowhere.device_id = 99;
  EXPECT_THROW(gpu::resident_workers(nowhere, add_one(32)), std::runtime_error);
  const gpu::resident_workers two(config(2), add_one(32));
  EXPECT_THROW(two.resources(2, kDecode, nullptr), std::out_of_range);
  EXPECT_THROW(two.resources(-1, kDecode, nullptr), std::out_of_range);
}

TEST_F(ResidentWorkers, Row59_AFaultOfABlockIsAnsweredAndNothingHangs) {
  // After a fault CUDA memory cannot be freed, so nothing is destroyed.
  auto &workers = *new gpu::resident_workers(config(2), add_one(32));
  auto &seen = *new seen_by_request(4);
  auto &p = *new pipe::realtime_pipeline(gpu_pipeline(2, 8, kSlot));
  wire(p, workers, seen);
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  auto injector = p.create_injector();
  const std::uint64_t good = 0;
  ASSERT_TRUE(submit(injector, &good, sizeof(good), 0));
  ASSERT_TRUE(eventually([&] { return seen.all == 1; }));
  for (std::uint64_t k = 1; k < 4; ++k)
    ASSERT_TRUE(submit(injector, &kTrap, sizeof(kTrap), k));
  EXPECT_TRUE(eventually([&] { return seen.all == 4; })) << p.dump();
  expect_stop(p);
  seen.expect_each_once(3);
  EXPECT_NE(seen.last_error, 0);
}

} // namespace
} // namespace cudaq::realtime::test
