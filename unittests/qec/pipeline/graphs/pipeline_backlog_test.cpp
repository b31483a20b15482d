// SPDX-License-Identifier: Apache-2.0
// The dispatcher launches graphs while it keeps up; with a backlog, workers launch theirs. Hooks stay with the
// dispatcher, unless pre_launch_on_worker is set.
#include "unittests/qec/pipeline/foreign_ring.h"
#include "unittests/qec/pipeline/graph_rig.h"

#include <mutex>
#include <set>
#include <stdexcept>
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
    const int number = ++calls;
    if (number == throws_at)
      throw std::runtime_error("a hook that throws");
    EXPECT_TRUE(eventually([&] { return open.load(); }));
    EXPECT_TRUE(eventually([&] { return held_call != number; }));
  }
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> calls{0};
  std::atomic<bool> open{true};
  std::atomic<int> held_call{0}; ///< the number of a call that waits until this changes
  int throws_at = 0;             ///< the number of a call; set before start
};

class PipelineBacklog : public testing::Test {
protected:
  /// Requests of `g` that come while the hook of the first one holds the dispatcher.
  /// `held`: the number of a hook that does not return after that. `backlog`: requests that wait before it goes on.
  void submit_while_a_hook_is_held(graph_rig &g, int held = 0, std::size_t backlog = 1) {
    hooks.open = false;
    hooks.held_call = held;
    g.rig.submit_all();
    ASSERT_TRUE(eventually([&] { return g.fake.waiting() >= backlog; }));
    hooks.open = true;
  }
  void wire(graph_rig &g) { wire(g, hooks); }
  void wire(graph_rig &g, hook_log &log) {
    g.rig.pipeline->set_gpu_stage([&](int id) {
      gpu_worker_resources r = g.resources(id);
      r.pre_launch_fn = [](void *self, void *, cudaStream_t) { static_cast<hook_log *>(self)->call(); };
      r.pre_launch_data = &log;
      r.pre_launch_on_worker = hooks_on_workers;
      if (with_post_hook)
        r.post_launch_fn = [](void *, void *, cudaStream_t) {};
      return r;
    });
  }

  hook_log hooks;
  bool with_post_hook = false, hooks_on_workers = false;
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

TEST_F(PipelineBacklog, MakesTheWorkersCallTheirHooksIfThatIsAllowed) {
  hooks_on_workers = true;
  graph_rig g(pipeline_rig::small(2, 8), 8);
  wire(g);
  g.rig.pipeline->start();
  ASSERT_NO_FATAL_FAILURE(submit_while_a_hook_is_held(g, 0, 6));
  ASSERT_TRUE(eventually([&] { return g.rig.seen.all == 8; })) << g.rig.pipeline->dump();
  EXPECT_EQ(g.rig.seen.not_good(), 0u);
  EXPECT_GE(g.fake.own_launches, 1u); // at least the last one: nothing waits after it
  EXPECT_GE(g.fake.handed_launches, 1u);
  EXPECT_EQ(g.fake.handed_launches + g.fake.own_launches, 8u);
  EXPECT_EQ(hooks.calls, 8);
  EXPECT_GE(hooks.threads.size(), 2u) << "the hooks of launches that workers made ran on the dispatcher's thread";
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
  constexpr std::size_t kRequests = 400;
  for (const bool on_workers : {false, true}) {
    SCOPED_TRACE(on_workers ? "hooks on the workers" : "hooks on the dispatcher");
    hook_log of_run;
    hooks_on_workers = on_workers;
    graph_rig g(pipeline_rig::small(3, 8), kRequests);
    wire(g, of_run);
    g.rig.run_all();
    CUDAQ_EXPECT_ALL_GOOD(g.rig);
    EXPECT_EQ(g.fake.handed_launches + g.fake.own_launches, kRequests);
    EXPECT_EQ(of_run.calls, static_cast<int>(kRequests));
    EXPECT_TRUE(on_workers ? of_run.threads.size() <= 4 : of_run.threads.size() == 1);
  }
}

// Own and external rings: the worker goes on, and the failure is reported once.
TEST_F(PipelineBacklog, AHookOnAWorkerThatThrowsFailsItsRequestAlone) {
  hooks_on_workers = true;
  hooks.throws_at = 3;
  for (const bool external : {false, true}) {
    SCOPED_TRACE(external ? "external ring" : "own ring");
    hooks.calls = 0;
    foreign_ring foreign(8, false);
    pipeline_stage_config config = pipeline_rig::small(1, 8);
    if (external)
      config.external_ringbuffer = &foreign.ring;
    graph_rig g(config, 8);
    wire(g);
    std::atomic<int> good{0}, failed{0};
    g.rig.pipeline->set_completion_handler([&](const completion &c) {
      EXPECT_TRUE(c.success || c.status == CUDAQ_RPC_ERR_LAUNCH_FAILED) << c.status;
      ++(c.success ? good : failed);
    });
    g.rig.pipeline->start();
    hooks.open = false;
    if (external)
      for (std::uint64_t k = 0; k < 8; ++k)
        ASSERT_TRUE(foreign.send(k));
    else
      g.rig.submit_all();
    ASSERT_TRUE(eventually([&] { return g.fake.waiting() >= 7; }));
    hooks.open = true;
    EXPECT_TRUE(eventually([&] { return good + failed == 8; })) << g.rig.pipeline->dump();
    g.rig.pipeline->stop();
    EXPECT_EQ(failed, 1);
    EXPECT_EQ(good, 7);
    EXPECT_GE(g.fake.handed_launches, 3u);
  }
}

// A stop finds the hook of a worker's thread as it finds one of the dispatcher's.
TEST_F(PipelineBacklog, AHookOnAWorkerThatDoesNotReturnIsNamedByTheStop) {
  hooks_on_workers = true;
  pipeline_stage_config config = pipeline_rig::small(1, 8);
  config.grace_period_ns = 20'000'000;
  graph_rig g(config, 3);
  wire(g);
  g.rig.pipeline->start();
  ASSERT_NO_FATAL_FAILURE(submit_while_a_hook_is_held(g, 2, 2));
  ASSERT_TRUE(eventually([&] { return hooks.calls == 2; }));
  g.rig.pipeline->stop();
  EXPECT_GE(g.rig.pipeline->last_stop().stuck_threads, 1);
  EXPECT_NE(g.rig.pipeline->last_stop().text.find("worker 0 is stuck in the launch of its graph"), std::string::npos)
      << g.rig.pipeline->last_stop().text;
  hooks.held_call = 0;
  EXPECT_TRUE(eventually([&] {
    g.rig.pipeline->stop();
    return g.rig.pipeline->last_stop().stuck_threads == 0;
  })) << g.rig.pipeline->last_stop().text;
  EXPECT_EQ(g.rig.seen.all, 3u) << g.rig.pipeline->dump();
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
