// SPDX-License-Identifier: Apache-2.0
// The dispatcher launches graphs while it keeps up; with a backlog, workers launch theirs. Hooks stay with the
// dispatcher.
#include "unittests/qec/pipeline/foreign_ring.h"
#include "unittests/qec/pipeline/graph_rig.h"

#include <mutex>
#include <set>
#include <thread>

namespace cudaq::qec::realtime::test {

namespace {

/// Pre-launch hooks: their number, their threads, and a gate that holds the first of them.
struct hook_log {
  void call() {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    ++calls;
    EXPECT_TRUE(eventually([&] { return open.load(); }));
  }
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> calls{0};
  std::atomic<bool> open{true};
};

class PipelineBacklog : public testing::Test {
protected:
  /// Requests of `g` that come while the hook of the first one holds the dispatcher.
  void submit_while_a_hook_is_held(graph_rig &g) {
    hooks.open = false;
    g.rig.submit_all();
    ASSERT_TRUE(eventually([&] { return g.fake.waiting() != 0; }));
    hooks.open = true;
  }
  void wire(graph_rig &g) {
    g.rig.pipeline->set_gpu_stage([&](int id) {
      gpu_worker_resources r = g.resources(id);
      r.pre_launch_fn = [](void *self, void *, cudaStream_t) { static_cast<hook_log *>(self)->call(); };
      r.pre_launch_data = &hooks;
      if (with_post_hook)
        r.post_launch_fn = [](void *, void *, cudaStream_t) {};
      return r;
    });
  }

  hook_log hooks;
  bool with_post_hook = false;
};

TEST_F(PipelineBacklog, MakesTheWorkersLaunchUntilItEnds) {
  graph_rig g(pipeline_rig::small(2, 8), 8);
  wire(g);
  g.rig.pipeline->start();
  ASSERT_NO_FATAL_FAILURE(submit_while_a_hook_is_held(g));
  ASSERT_TRUE(eventually([&] { return g.rig.seen.all == 8; })) << g.rig.pipeline->dump();
  EXPECT_GE(g.fake.handed_launches, 1u);
  EXPECT_GE(g.fake.own_launches, 1u); // at least the last one: nothing waits after it
  EXPECT_EQ(g.fake.handed_launches + g.fake.own_launches, 8u);
  EXPECT_EQ(g.rig.seen.not_good(), 0u);
  EXPECT_EQ(hooks.calls, 8);
  EXPECT_EQ(hooks.threads.size(), 1u) << "a hook ran on a worker's thread";
  g.rig.pipeline->stop();
}

TEST_F(PipelineBacklog, IsNeededForAWorkerToLaunch) {
  graph_rig g(pipeline_rig::small(2, 8), 20);
  wire(g);
  g.rig.pipeline->start();
  ring_buffer_injector injector = g.rig.pipeline->create_injector();
  for (std::uint64_t k = 0; k < 20; ++k) {
    g.rig.submit(injector, k);
    ASSERT_TRUE(eventually([&] { return g.rig.seen.all == k + 1; })) << g.rig.pipeline->dump();
  }
  EXPECT_EQ(g.fake.handed_launches, 0u);
  EXPECT_EQ(g.fake.own_launches, 20u);
  g.rig.pipeline->stop();
}

TEST_F(PipelineBacklog, KeepsTheOrderOfTheRequests) {
  graph_rig g(pipeline_rig::small(1, 8), 8);
  wire(g);
  std::vector<std::uint64_t> order;                               // read after stop
  g.rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) { // of completions no order is promised
    std::uint64_t id = 0;
    std::memcpy(&id, c.gpu_output, sizeof(id));
    order.push_back(id - g.rig.first_id);
    return pipeline_rig::echo(c);
  });
  g.rig.pipeline->start();
  ASSERT_NO_FATAL_FAILURE(submit_while_a_hook_is_held(g));
  ASSERT_TRUE(eventually([&] { return g.rig.seen.all == 8; })) << g.rig.pipeline->dump();
  g.rig.pipeline->stop();
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_GE(g.fake.handed_launches, 6u); // the dispatcher may have looked at the first one before the others came
  EXPECT_EQ(g.fake.handed_launches + g.fake.own_launches, 8u);
}

TEST_F(PipelineBacklog, LosesNothingInALongRunWithAStop) {
  constexpr std::size_t kRequests = 2000;
  graph_rig g(pipeline_rig::small(3, 8), kRequests);
  wire(g);
  g.rig.run_all();
  CUDAQ_EXPECT_ALL_GOOD(g.rig);
  EXPECT_EQ(g.fake.handed_launches + g.fake.own_launches, kRequests);
  EXPECT_EQ(hooks.threads.size(), 1u);
}

TEST_F(PipelineBacklog, LeavesLaunchesWithAPostLaunchHookToTheDispatcher) {
  with_post_hook = true;
  graph_rig g(pipeline_rig::small(2, 8), 8);
  wire(g);
  g.rig.pipeline->start();
  ASSERT_NO_FATAL_FAILURE(submit_while_a_hook_is_held(g));
  ASSERT_TRUE(eventually([&] { return g.rig.seen.all == 8; })) << g.rig.pipeline->dump();
  EXPECT_EQ(g.fake.handed_launches, 0u);
  g.rig.pipeline->stop();
}

TEST_F(PipelineBacklog, LeavesLaunchesToTheDispatcherIfWorkersSleep) {
  pipeline_stage_config config = pipeline_rig::small(2, 8);
  config.wait = wait_policy::block;
  graph_rig g(config, 8);
  wire(g);
  g.rig.pipeline->start();
  ASSERT_NO_FATAL_FAILURE(submit_while_a_hook_is_held(g));
  ASSERT_TRUE(eventually([&] { return g.rig.seen.all == 8; })) << g.rig.pipeline->dump();
  EXPECT_EQ(g.fake.handed_launches, 0u);
  g.rig.pipeline->stop();
}

TEST_F(PipelineBacklog, AWorkersLaunchThatFailsIsReportedOnce) {
  foreign_ring foreign(4, false);
  pipeline_stage_config config = pipeline_rig::small(2, 4);
  config.external_ringbuffer = &foreign.ring;
  graph_rig g(config);
  wire(g);
  g.fake.launch_fails = [](int) { return true; };
  std::atomic<int> reported{0};
  g.rig.pipeline->set_completion_handler([&](const completion &c) {
    EXPECT_EQ(c.status, CUDAQ_RPC_ERR_LAUNCH_FAILED);
    ++reported;
  });
  g.rig.pipeline->start();
  hooks.open = false;
  ASSERT_TRUE(foreign.send(0));
  ASSERT_TRUE(foreign.send(1));
  ASSERT_TRUE(eventually([&] { return g.fake.waiting() != 0; }));
  hooks.open = true;
  for (const std::uint64_t k : {0u, 1u})
    ASSERT_TRUE(eventually([&] { return foreign.receive(k, CUDAQ_RPC_ERR_LAUNCH_FAILED); }));
  EXPECT_TRUE(eventually([&] { return reported == 2; })) << g.rig.pipeline->dump();
  EXPECT_EQ(g.fake.handed_launches, 1u);
  g.rig.pipeline->stop();
  EXPECT_EQ(reported, 2);
}

} // namespace

} // namespace cudaq::qec::realtime::test
