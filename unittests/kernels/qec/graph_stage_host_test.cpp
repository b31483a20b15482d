// SPDX-License-Identifier: Apache-2.0
// Graphs that their worker's own thread launches, without a GPU: functions in place of graphs.
// unittests/gpu/qec/graph_stage_test.cpp tests them on a GPU.
#include "unittests/kernels/qec/graph_adders.h"
#include "unittests/support/fault_points.h"

#include <mutex>
#include <set>

namespace cudaq::qec::realtime::test {
namespace {

namespace faults = cudaq::realtime::test::faults;

class GraphStageOnHost : public testing::Test, public graph_adders {};

gpu::graph_stage_config with_input() {
  gpu::graph_stage_config c;
  c.input_bytes = sizeof(std::uint64_t);
  c.input_memory = CUDAQ_MEMORY_MAPPED;
  return c;
}

TEST_F(GraphStageOnHost, HooksOfDifferentWorkersRunAtTheSameTimeOnTheirThreads) {
  make();
  adder_rig r([this](int id) { return resources(id); });
  std::atomic<int> inside{0}, met{0};
  for (adder &a : adders)
    a.in_hook = [&] {
      ++inside;
      met += eventually([&] { return inside >= 2; }); // with one thread for all hooks this would never be
    };
  ASSERT_EQ(r.refusal(), "");
  r.send(2);
  EXPECT_EQ(met, 2);
  std::mutex lock;
  std::set<std::thread::id> threads;
  for (adder &a : adders)
    a.in_hook = [&] {
      const std::lock_guard one(lock);
      threads.insert(std::this_thread::get_id());
    };
  for (int run = 0; run < 3; ++run) {
    r.send(300);
    r.pipeline.stop();
    EXPECT_TRUE(r.pipeline.last_stop().drained) << r.pipeline.last_stop().text;
    ASSERT_EQ(r.refusal(), "");
  }
  EXPECT_GE(threads.size(), 2u);
  r.pipeline.stop();
}

TEST_F(GraphStageOnHost, TheStageWritesTheInputWithoutAHook) {
  make(with_input());
  EXPECT_EQ(adders.front().stage.input_info().memory_kind, CUDAQ_MEMORY_MAPPED);
  adder_rig r([this](int id) { return resources(id); });
  ASSERT_EQ(r.refusal(), "");
  r.send(1000);
  const std::uint64_t words[2] = {1, 2};
  std::atomic<int> status{0};
  r.pipeline.stop();
  r.pipeline.set_completion_handler([&](const completion &c) { status = c.status; });
  ASSERT_EQ(r.refusal(), "");
  auto injector = r.pipeline.create_injector();
  injector.submit(kFunction, words, sizeof(words), 1); // longer than the input
  EXPECT_TRUE(eventually([&] { return status == CUDAQ_RPC_ERR_LAUNCH_FAILED; }));
  r.pipeline.stop();
}

TEST_F(GraphStageOnHost, TwoBuffersOfAWorkerOnOneStreamAreStagedTogetherAndRunOneAfterTheOther) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  make(with_input(), 2);
  std::atomic<int> running{0}, together{0}, runs{0};
  for (adder &a : adders)
    a.in_graph = [&] {
      together += ++running > 1;
      nap();
      --running;
      ++runs;
    };
  std::atomic<int> launched{0};
  adder_rig r(
      [&](int id) {
        adder &a = adders[static_cast<std::size_t>(id)];
        gpu_worker_resources g = a.resources();
        g.stream = stream;
        g.post_launch_data = &launched;
        g.post_launch_fn = [](void *count, void *, cudaStream_t) { ++*static_cast<std::atomic<int> *>(count); };
        return a.stage.resources(g);
      },
      1, 2);
  ASSERT_EQ(r.refusal(), "");
  hang(true);
  auto injector = r.pipeline.create_injector();
  for (std::uint64_t k = 0; k < 3; ++k)
    injector.submit(kFunction, &k, sizeof(k), k);
  EXPECT_TRUE(eventually([&] { return launched == 2; })) << r.pipeline.dump();
  EXPECT_EQ(r.completed, 0u);
  hang(false);
  EXPECT_TRUE(eventually([&] { return r.completed == 3; }));
  EXPECT_EQ(r.right, 3u);
  r.completed = r.right = 0;
  r.send(300);
  r.pipeline.stop();
  EXPECT_TRUE(r.pipeline.last_stop().drained) << r.pipeline.last_stop().text;
  EXPECT_EQ(runs, 303);
  EXPECT_EQ(together, 0);
  end();
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(GraphStageOnHost, ALaunchThatFailsFailsItsRequestOnly) {
  make();
  adder_rig r([this](int id) { return resources(id); });
  ASSERT_EQ(r.refusal(), "");
  auto injector = r.pipeline.create_injector();
  faults::arm(2); // cudaSetDevice, cudaGraphLaunch
  const std::uint64_t word = 0;
  injector.submit(kFunction, &word, sizeof(word), 0);
  EXPECT_TRUE(eventually([&] { return r.completed == 1; }));
  EXPECT_EQ(faults::disarm(), 1u);
  EXPECT_STREQ(faults::last(), "cudaGraphLaunch");
  EXPECT_EQ(r.right, 0u);
  r.completed = 0;
  r.send(100);
  r.pipeline.stop();
}

TEST_F(GraphStageOnHost, APostLaunchHookThatThrowsDoesNotMixUpTheNextRequest) {
  make();
  std::atomic<bool> throws{true};
  adder_rig r(
      [&](int) {
        gpu_worker_resources g = adders.front().resources();
        g.post_launch_data = &throws;
        g.post_launch_fn = [](void *data, void *, cudaStream_t) {
          if (static_cast<std::atomic<bool> *>(data)->exchange(false))
            throw std::runtime_error("hook");
        };
        return adders.front().stage.resources(g);
      },
      1);
  ASSERT_EQ(r.refusal(), "");
  auto injector = r.pipeline.create_injector();
  const std::uint64_t word = 41;
  injector.submit(kFunction, &word, sizeof(word), 41);
  EXPECT_TRUE(eventually([&] { return r.completed == 1; }));
  EXPECT_EQ(r.right, 0u);
  r.completed = 0;
  r.send(100);
  r.pipeline.stop();
}

/// Work that the pre-launch hook has queued may use the slot, so the request is answered after it, also if the launch
/// fails or the hook throws.
TEST_F(GraphStageOnHost, AnErrorIsAnsweredAfterTheWorkThatTheHookHasQueued) {
  struct slow_hook {
    std::atomic<bool> used{false}, queued{false}, open{false};
    bool throws = false;
    CUgraphExec_st work;
    static void call(void *self, void *, cudaStream_t stream) {
      auto &h = *static_cast<slow_hook *>(self);
      if (h.used.exchange(true))
        return;
      EXPECT_EQ(cudaGraphLaunch(&h.work, stream), cudaSuccess);
      h.queued = true;
      if (h.throws)
        throw std::runtime_error("hook");
    }
  };
  make(with_input(), 1);
  for (const bool throws : {false, true}) {
    slow_hook hook;
    hook.throws = throws;
    hook.work.run = [&hook] { EXPECT_TRUE(eventually([&] { return hook.open.load(); })); };
    adder_rig r(
        [&](int) {
          gpu_worker_resources g = adders.front().resources();
          g.pre_launch_data = &hook;
          g.pre_launch_fn = &slow_hook::call;
          return adders.front().stage.resources(g);
        },
        1);
    ASSERT_EQ(r.refusal(), "");
    if (!throws)
      faults::arm(2, 1, "cudaGraphLaunch"); // the first one is the hook's
    auto injector = r.pipeline.create_injector();
    const std::uint64_t word = 41;
    injector.submit(kFunction, &word, sizeof(word), 41);
    ASSERT_TRUE(eventually([&] { return hook.queued.load(); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(r.completed, 0u) << "the hook's work still runs";
    hook.open = true;
    EXPECT_TRUE(eventually([&] { return r.completed == 1; }));
    if (!throws) {
      EXPECT_EQ(faults::disarm(), 1u);
    }
    EXPECT_EQ(r.right, 0u);
    r.completed = 0;
    r.send(100);
    r.pipeline.stop();
  }
}

TEST_F(GraphStageOnHost, WrongArgumentsAreRefusedWithTheirName) {
  const auto refusal = [](auto &&call) -> std::string {
    try {
      call();
    } catch (const std::exception &e) {
      return e.what();
    }
    return "";
  };
  const auto refused = [&](const char *text, auto &&change) {
    gpu::graph_stage_config c = with_input();
    change(c);
    EXPECT_NE(refusal([&] { gpu::graph_stage made(c); }).find(text), std::string::npos);
  };
  refused("timeout_ns is 0", [](auto &c) { c.timeout_ns = 0; });
  refused("input_memory is 0", [](auto &c) { c.input_memory = CUDAQ_MEMORY_HOST; });
  refused("input_bytes is", [](auto &c) { c.input_bytes = SIZE_MAX; });
  make();
  gpu_worker_resources r = adders.front().resources();
  r.io_ctx = &r;
  EXPECT_NE(refusal([&] { adders.front().stage.resources(r); }).find("io_ctx is set"), std::string::npos);
  EXPECT_NE(refusal([&] { adders.front().stage.resources({}); }).find("graph_exec is NULL"), std::string::npos);
}

} // namespace
} // namespace cudaq::qec::realtime::test
