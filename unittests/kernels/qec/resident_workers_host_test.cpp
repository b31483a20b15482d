// SPDX-License-Identifier: Apache-2.0
// Start and stop of resident workers without a GPU: a CUDA runtime of the tests, and blocks on CPU threads.
// unittests/gpu/qec/resident_workers_test.cpp tests them on a GPU.
#include "unittests/kernels/qec/resident_adders.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace cudaq::qec::realtime::test {
namespace {

class ResidentWorkersOnHost : public testing::Test, public resident_adders {
protected:
  adder_rig pipeline_of_all() {
    return adder_rig([this](int id) { return resources(id); });
  }
};

TEST_F(ResidentWorkersOnHost, BeginAndEndWithEachRun) {
  make();
  EXPECT_EQ(blocks.loads, 1) << "the kernel is loaded before anything runs";
  EXPECT_EQ(blocks.launches, 0);
  adder_rig r = pipeline_of_all();
  for (int run = 1; run <= 3; ++run) {
    ASSERT_EQ(r.refusal(), "");
    EXPECT_EQ(blocks.launches, run) << "one launch for all workers";
    EXPECT_EQ(blocks.alive, kWorkers);
    r.send(200);
    r.pipeline.stop();
    EXPECT_TRUE(r.pipeline.last_stop().drained) << r.pipeline.last_stop().text;
    EXPECT_EQ(blocks.alive, 0);
  }
}

TEST_F(ResidentWorkersOnHost, ALauncherThatFailsAfterItsLaunchLeavesNoBlock) {
  make();
  adder_rig r = pipeline_of_all();
  blocks.launch_error = cudaErrorMemoryAllocation;
  EXPECT_NE(r.refusal().find("launching the blocks"), std::string::npos);
  EXPECT_EQ(blocks.alive, 0);
  blocks.launch_error = cudaSuccess;
  ASSERT_EQ(r.refusal(), "");
  r.send(50);
  r.pipeline.stop();
}

TEST_F(ResidentWorkersOnHost, AStartWithoutRoomTakesItsTimeLimitOnce) {
  gpu::resident_config c = config_of(kWorkers);
  c.timeout_ns = 2'000'000'000;
  make(c);
  adder_rig r = pipeline_of_all();
  blocks.room = false;
  std::string text;
  const double took = seconds([&] { text = r.refusal(); });
  EXPECT_NE(text.find("0 of 8 blocks run"), std::string::npos) << text;
  EXPECT_LT(took, 14) << "the limit to begin, then to end: 4 s on a free machine, 8 times 16 s or more";
  blocks.room = true;
  ASSERT_EQ(r.refusal(), "");
  r.send(50);
  r.pipeline.stop();
}

TEST_F(ResidentWorkersOnHost, EndAfterABeginThatHasThrownSaysWhetherBlocksAreLeft) {
  gpu::resident_config c = config_of(1);
  c.timeout_ns = 200'000'000;
  make(c);
  const gpu_worker_resources r = resources(0);
  blocks.stuck = true;
  EXPECT_THROW(r.stage_begin_fn(r.host_stage_data), std::runtime_error);
  EXPECT_FALSE(r.stage_end_fn(r.host_stage_data)) << "the launch still waits for room";
  blocks.stuck = false;
  EXPECT_TRUE(eventually([&] { return r.stage_end_fn(r.host_stage_data); }));
  blocks.launch_error = cudaErrorMemoryAllocation;
  EXPECT_THROW(r.stage_begin_fn(r.host_stage_data), std::runtime_error);
  EXPECT_TRUE(r.stage_end_fn(r.host_stage_data));
  blocks.launch_error = cudaSuccess;
  r.stage_begin_fn(r.host_stage_data);
  EXPECT_EQ(blocks.alive, 1);
  EXPECT_TRUE(r.stage_end_fn(r.host_stage_data));
  EXPECT_EQ(blocks.alive, 0);
}

TEST_F(ResidentWorkersOnHost, ARequestThatItsBlockLeftIsNotServedByTheNextRun) {
  make(config_of(1));
  adder_rig r([this](int id) { return workers->resources(id, kFunction, nullptr); }, 1);
  blocks.quit = true;
  ASSERT_EQ(r.refusal(), "");
  auto injector = r.pipeline.create_injector();
  const std::uint64_t lost = 7;
  injector.submit(kFunction, &lost, sizeof(lost), 1);
  EXPECT_TRUE(eventually([&] { return r.completed == 1; })) << r.pipeline.dump();
  EXPECT_EQ(r.right, 0u);
  r.pipeline.stop();
  blocks.quit = false;
  r.completed = 0;
  ASSERT_EQ(r.refusal(), "");
  r.send(50);
  r.pipeline.stop();
  EXPECT_EQ(blocks.served, 50);
}

TEST_F(ResidentWorkersOnHost, OneWorkerForAllThreadsIsRefused) {
  make();
  adder_rig one_for_all([this](int) { return workers->resources(3, kFunction, nullptr); });
  EXPECT_NE(one_for_all.refusal().find("its ready_flag is that of worker 0"), std::string::npos);
  EXPECT_EQ(blocks.alive, 0);
}

TEST_F(ResidentWorkersOnHost, DestroyedBeforeTheStopTheyEndAndTheMemoryStays) {
#ifdef __SANITIZE_ADDRESS__
  const __lsan::ScopedDisabler stays_on_purpose;
#endif
  make();
  adder_rig r = pipeline_of_all();
  ASSERT_EQ(r.refusal(), "");
  r.send(50);
  workers.reset();
  EXPECT_EQ(blocks.alive, 0);
  auto injector = r.pipeline.create_injector();
  const std::uint64_t late = 1;
  injector.submit(kFunction, &late, sizeof(late), 1);
  EXPECT_TRUE(eventually([&] { return r.completed == 1; })) << "a request is answered, here with an error";
  EXPECT_EQ(r.right, 0u);
  r.pipeline.stop();
  EXPECT_TRUE(r.pipeline.last_stop().drained) << r.pipeline.last_stop().text;
  kept = 4; // mailboxes, outputs, states, stream
}

TEST_F(ResidentWorkersOnHost, ALauncherMayKeepWhatItHasLoaded) {
  workers = std::make_unique<gpu::resident_workers>(
      config_of(1),
      [launch = blocks.launcher(), loaded = false](const auto &boxes, unsigned number, cudaStream_t stream) mutable {
        loaded = loaded || number == 0;
        return loaded ? launch(boxes, number, stream) : cudaErrorInvalidResourceHandle;
      });
  const gpu_worker_resources r = resources(0);
  r.stage_begin_fn(r.host_stage_data);
  EXPECT_TRUE(r.stage_end_fn(r.host_stage_data));
}

// Freeing memory waits for all kernels of the device.
TEST_F(ResidentWorkersOnHost, ALauncherThatRefusesLeavesNothingToFreeBesideOthers) {
  make(config_of(1));
  const gpu_worker_resources r = resources(0);
  r.stage_begin_fn(r.host_stage_data);
  for (const cudaError_t error : {cudaErrorInvalidValue, cudaErrorCooperativeLaunchTooLarge})
    EXPECT_THROW(gpu::resident_workers(config_of(1), [=](const auto &, unsigned, cudaStream_t) { return error; }),
                 std::runtime_error);
  EXPECT_EQ(fake_cuda::violations(), "");
  EXPECT_TRUE(r.stage_end_fn(r.host_stage_data));
}

TEST_F(ResidentWorkersOnHost, WithoutRoomBesideOthersTheyKeepTheirMemory) {
#ifdef __SANITIZE_ADDRESS__
  const __lsan::ScopedDisabler stays_on_purpose;
#endif
  make(config_of(1));
  const gpu_worker_resources others = resources(0);
  others.stage_begin_fn(others.host_stage_data);
  blocks_of_a_test no_room;
  no_room.room = false;
  {
    gpu::resident_config c = config_of(1);
    c.timeout_ns = 200'000'000;
    gpu::resident_workers refused(c, no_room.launcher());
    const gpu_worker_resources r = refused.resources(0, kFunction, nullptr);
    EXPECT_THROW(r.stage_begin_fn(r.host_stage_data), std::runtime_error);
  }
  EXPECT_EQ(fake_cuda::violations(), "") << "freeing it would wait for the others";
  EXPECT_TRUE(others.stage_end_fn(others.host_stage_data));
  kept = 3; // mailboxes, outputs, states
}

TEST_F(ResidentWorkersOnHost, WrongArgumentsAreRefusedWithTheirName) {
  const auto refusal = [&](auto &&make_them) -> std::string {
    try {
      make_them();
    } catch (const std::exception &e) {
      return e.what();
    }
    return "";
  };
  gpu::resident_config no_time = config_of(1);
  no_time.timeout_ns = 0;
  EXPECT_NE(refusal([&] { make(no_time); }).find("timeout_ns is 0"), std::string::npos);
  EXPECT_NE(refusal([] { gpu::resident_workers(config_of(1), nullptr); }).find("launch is empty"), std::string::npos);
  make();
  const std::string text = refusal([&] { workers->resources(kWorkers, kFunction, nullptr); });
  EXPECT_NE(text.find("worker 8 does not exist; there are 8"), std::string::npos) << text;
}

} // namespace
} // namespace cudaq::qec::realtime::test
