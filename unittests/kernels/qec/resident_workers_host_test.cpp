// SPDX-License-Identifier: Apache-2.0
// Start and stop of resident workers without a GPU: a CUDA runtime of the tests, and blocks on CPU threads.
// unittests/gpu/qec/resident_workers_test.cpp tests them on a GPU.
#include "cudaq/qec/realtime/resident_mailbox.cuh"
#include "cudaq/qec/realtime/resident_workers.h"
#include "unittests/kernels/qec/adder_rig.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace cudaq::qec::realtime::test {
namespace {

struct cpu_block {
  std::uint32_t thread() const { return 0; }
  void sync() const {}
  bool any(bool mine) const {
    std::this_thread::yield();
    return mine;
  }
};

/// What the blocks of a launch share with the test.
struct blocks_of_a_test {
  std::atomic<int> alive{0}, launches{0}, loads{0};
  std::atomic<bool> hang{false}; ///< stages do not return
  std::atomic<bool> room{true};  ///< the device has room for the blocks
  std::atomic<bool> quit{false}; ///< blocks end when they see a request
  std::atomic<int> served{0};
  cudaError_t said = cudaSuccess;

  gpu::resident_launcher launcher() {
    return [this](const gpu::resident_mailboxes &boxes, unsigned blocks, cudaStream_t stream) {
      if (blocks == 0) {
        ++loads;
        return cudaSuccess;
      }
      ++launches;
      fake_cuda::launch(stream, [this, boxes, blocks] {
        while (!room && boxes.flags[boxes.workers] == 0)
          std::this_thread::yield();
        std::vector<std::thread> threads;
        for (unsigned w = 0; w < blocks && room; ++w)
          threads.emplace_back([this, boxes, w] {
            ++alive;
            if (quit) {
              cudaq::realtime::detail::store_release<std::uint32_t>(boxes.states[w].began, 1);
              while (boxes.flags[w] == 0 && boxes.flags[boxes.workers] == 0)
                std::this_thread::yield();
              --alive;
              return;
            }
            gpu::serve_mailbox(cpu_block{}, boxes, w, [this](const gpu::resident_request &r) {
              std::uint64_t word = 0;
              std::memcpy(&word, r.frame + CUDAQ_RPC_HEADER_SIZE, sizeof(word));
              while (hang && word == UINT64_MAX)
                std::this_thread::yield();
              ++word;
              ++served;
              std::memcpy(r.output, &word, sizeof(word));
            });
            --alive;
          });
        for (std::thread &t : threads)
          t.join();
      });
      return said;
    };
  }
};

gpu::resident_config config_of(int workers) {
  gpu::resident_config c;
  c.num_workers = workers;
  c.payload_bytes = c.output_bytes = sizeof(std::uint64_t);
  c.memory_kind = CUDAQ_MEMORY_MAPPED;
  return c;
}

class ResidentWorkersOnHost : public testing::Test {
protected:
  void make(gpu::resident_config config = config_of(kWorkers)) {
    workers = std::make_unique<gpu::resident_workers>(config, blocks.launcher());
  }
  adder_rig pipeline_of_all() {
    return adder_rig([this](int id) { return workers->resources(id, kFunction, nullptr); });
  }
  void TearDown() override {
    blocks.hang = false;
    workers.reset();
    EXPECT_TRUE(eventually([&] { return blocks.alive == 0; }));
    EXPECT_EQ(fake_cuda::violations(), "");
    EXPECT_EQ(fake_cuda::clean_up(), kept);
  }

  blocks_of_a_test blocks;
  std::unique_ptr<gpu::resident_workers> workers;
  int kept = 0; ///< blocks of memory and streams that are kept on purpose
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
  blocks.said = cudaErrorMemoryAllocation;
  EXPECT_NE(r.refusal().find("launching the blocks"), std::string::npos);
  EXPECT_EQ(blocks.alive, 0);
  blocks.said = cudaSuccess;
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

TEST_F(ResidentWorkersOnHost, AStopWithAStageThatHangsTakesItsTimeLimitOnce) {
  gpu::resident_config c = config_of(kWorkers);
  c.timeout_ns = 2'000'000'000;
  make(c);
  adder_rig r = pipeline_of_all();
  ASSERT_EQ(r.refusal(), "");
  blocks.hang = true;
  auto injector = r.pipeline.create_injector();
  const std::uint64_t hangs = UINT64_MAX;
  injector.submit(kFunction, &hangs, sizeof(hangs), 1);
  const double took = seconds([&] { r.pipeline.stop(); });
  EXPECT_LT(took, 14) << "the grace period, then the limit: 2.1 s on a free machine, 8 times 16 s";
  EXPECT_NE(r.pipeline.last_stop().text.find("GPU stages of 1 workers have not ended"), std::string::npos)
      << r.pipeline.last_stop().text;
  blocks.hang = false;
  r.pipeline.stop();
  EXPECT_TRUE(r.pipeline.last_stop().drained) << r.pipeline.last_stop().text;
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

TEST_F(ResidentWorkersOnHost, AWorkerInUseIsRefusedASecondTime) {
  make();
  adder_rig first = pipeline_of_all(), second = pipeline_of_all();
  ASSERT_EQ(first.refusal(), "");
  const std::string text = second.refusal();
  EXPECT_NE(text.find("worker 0 serves a pipeline already"), std::string::npos) << text;
  EXPECT_EQ(blocks.alive, kWorkers) << "the first pipeline's blocks";
  first.send(100);
  first.pipeline.stop();
  ASSERT_EQ(second.refusal(), "");
  second.send(100);
  second.pipeline.stop();

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
