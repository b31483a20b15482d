// SPDX-License-Identifier: Apache-2.0
// Workers that have several buffers: a request is staged while the one before it still runs.
#include "unittests/qec/pipeline/pipeline_rig.h"

#include <set>

namespace cudaq::qec::realtime::test {
namespace {

pipeline_stage_config buffered(int workers, int buffers) {
  pipeline_stage_config c = pipeline_rig::small(workers);
  c.buffers = buffers;
  return c;
}

/// A worker answers before it is idle.
bool all_are_idle(const pipeline_rig &rig, std::size_t buffers) {
  return eventually([&] {
    const std::string text = rig.pipeline->dump();
    std::size_t idle = 0;
    for (std::size_t at = text.find(": idle"); at != std::string::npos; at = text.find(": idle", at + 1))
      ++idle;
    return idle == buffers;
  });
}

/// Stages that run on a device until the test lets them end.
class endless_stages {
public:
  explicit endless_stages(pipeline_rig &rig) : of_(rig) {
    rig.change_stage([this](gpu_worker_resources &r, int id) {
      copy_worker &w = of_.workers[static_cast<std::size_t>(id)];
      r.ready_flag = &w.ready; // copy() does not set it
      r.host_stage_data = &stages.emplace_back(stage{this, &w});
      r.host_stage_fn = [](void *self, host_stage_call *call) {
        auto &s = *static_cast<stage *>(self);
        EXPECT_EQ(std::atomic_ref<int>(s.copy->ready).load(), 0) << "a launch while the last output is in use";
        s.thread = std::this_thread::get_id();
        copy_worker::copy(s.copy, call);
        ++s.all->launched;
        return 0;
      };
    });
  }
  void end(std::size_t buffer) { std::atomic_ref<int>(of_.workers[buffer].ready).store(1, std::memory_order_release); }
  [[nodiscard]] std::uint64_t launches(std::size_t buffer) const { return of_.workers[buffer].launches.load(); }
  /// Requests that the buffers of a worker have got, if it has two.
  [[nodiscard]] std::uint64_t of_worker(std::size_t w) const { return launches(w) + launches(w + 2); }

  struct stage {
    endless_stages *all;
    copy_worker *copy;
    std::thread::id thread{};
  };
  std::deque<stage> stages;
  std::atomic<std::uint64_t> launched{0};

private:
  pipeline_rig &of_;
};

TEST(PipelineBuffers, AWorkerStagesTheNextRequestWhileTheLastOneStillRuns) {
  pipeline_rig rig(buffered(1, 2), 4);
  endless_stages stages(rig);
  ring_buffer_injector injector = rig.start();
  for (std::uint64_t k = 0; k < 3; ++k)
    rig.submit(injector, k);
  ASSERT_TRUE(eventually([&] { return stages.launched == 2; })) << rig.pipeline->dump();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(stages.launched, 2u) << "the third has no buffer";
  EXPECT_EQ(rig.seen.all, 0u);
  EXPECT_EQ(stages.stages[0].thread, stages.stages[1].thread) << "buffers have no threads of their own";
  stages.end(1); // in any order
  EXPECT_TRUE(eventually([&] { return rig.seen.all == 1 && stages.launched == 3; }));
  EXPECT_EQ(stages.launches(1), 2u);
  stages.end(0);
  stages.end(1);
  EXPECT_TRUE(eventually([&] { return rig.seen.all == 3; }));
  ASSERT_TRUE(all_are_idle(rig, 2)) << rig.pipeline->dump();
  rig.submit(injector, 3);
  ASSERT_TRUE(eventually([&] { return stages.launched == 4; }));
  stages.end(stages.launches(0) == 2 ? 0 : 1); // the one that its worker looked at next
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineBuffers, ASecondRequestGoesToAnIdleWorkerFirst) {
  pipeline_rig rig(buffered(2, 2), 40);
  endless_stages stages(rig);
  ring_buffer_injector injector = rig.start();
  for (std::uint64_t k = 0; k < 40; k += 4) {
    const auto launched = [&](std::uint64_t n) { return eventually([&] { return stages.launched == k + n; }); };
    rig.submit(injector, k);
    rig.submit(injector, k + 1);
    ASSERT_TRUE(launched(2)) << rig.pipeline->dump();
    EXPECT_EQ(stages.of_worker(0), k / 2 + 1);
    EXPECT_EQ(stages.of_worker(1), k / 2 + 1);
    rig.submit(injector, k + 2);
    rig.submit(injector, k + 3);
    ASSERT_TRUE(launched(4)) << rig.pipeline->dump();
    for (std::size_t buffer = 0; buffer < 4; ++buffer)
      stages.end(buffer);
    ASSERT_TRUE(eventually([&] { return rig.seen.all == k + 4; }));
    ASSERT_TRUE(all_are_idle(rig, 4)) << rig.pipeline->dump();
  }
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineBuffers, AStopGivesUpEachRequestOfAWorkerAndTheNextRunIsWhole) {
  pipeline_stage_config config = buffered(2, 2);
  config.grace_period_ns = 1'000'000;
  pipeline_rig rig(config, 6);
  endless_stages stages(rig);
  std::atomic<int> given_up{0};
  rig.pipeline->set_completion_handler([&](const completion &c) {
    given_up += c.status == CUDAQ_RPC_ERR_SHUTTING_DOWN;
    rig.record(c);
  });
  ring_buffer_injector injector = rig.start();
  for (std::uint64_t k = 0; k < 5; ++k)
    rig.submit(injector, k);
  ASSERT_TRUE(eventually([&] { return stages.launched == 4; })) << rig.pipeline->dump();
  rig.pipeline->stop();
  EXPECT_EQ(given_up, 5);
  EXPECT_EQ(rig.pipeline->last_stop().given_up, 5u) << rig.pipeline->last_stop().text;
  EXPECT_EQ(rig.pipeline->last_stop().stuck_threads, 0) << rig.pipeline->last_stop().text;
  rig.pipeline->start();
  rig.submit(injector, 5);
  ASSERT_TRUE(eventually([&] { return stages.launched == 5; }));
  for (std::size_t buffer = 0; buffer < 4; ++buffer)
    stages.end(buffer);
  EXPECT_TRUE(eventually([&] { return rig.seen.all == 6; }));
  EXPECT_EQ(rig.seen.good[5], 1);
  EXPECT_EQ(rig.seen.not_once(), 0u);
}

TEST(PipelineBuffers, AStuckCallbackIsNamedBesideARequestThatWaits) {
  pipeline_stage_config config = buffered(1, 2);
  config.grace_period_ns = 1'000'000;
  pipeline_rig rig(config, 2);
  endless_stages stages(rig);
  std::atomic<bool> inside{false}, go{false};
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    inside = true;
    (void)eventually([&] { return go.load(); });
    return pipeline_rig::echo(c);
  });
  ring_buffer_injector injector = rig.start();
  rig.submit(injector, 0);
  rig.submit(injector, 1);
  ASSERT_TRUE(eventually([&] { return stages.launched == 2; }));
  stages.end(1);
  ASSERT_TRUE(eventually([&] { return inside.load(); }));
  rig.pipeline->stop();
  const std::string text = rig.pipeline->last_stop().text;
  EXPECT_NE(text.find("worker 1 is stuck in the CPU stage, slot 1"), std::string::npos) << text;
  EXPECT_NE(rig.pipeline->dump().find("worker 0: waiting for the GPU stage"), std::string::npos);
  go = true;
  EXPECT_TRUE(eventually([&] {
    rig.pipeline->stop();
    return rig.pipeline->last_stop().stuck_threads == 0;
  })) << rig.pipeline->last_stop().text;
  EXPECT_EQ(rig.seen.not_once(), 0u);
}

TEST(PipelineBuffers, GraphsThatThePipelineLaunchesAndMixedFunctionsAreRefused) {
  pipeline_rig rig(buffered(2, 2));
  const auto refusal = [&](const std::function<void(gpu_worker_resources &, int)> &change) -> std::string {
    rig.change_stage(change);
    try {
      rig.pipeline->start();
    } catch (const std::invalid_argument &e) {
      return e.what();
    }
    rig.pipeline->stop();
    return "";
  };
  EXPECT_EQ(refusal([](gpu_worker_resources &r, int) {
              r.host_stage_fn = nullptr;
              r.graph_exec = reinterpret_cast<cudaGraphExec_t>(1);
            }),
            "pipeline: worker 0: buffers is 2, but its stage is a graph that the pipeline launches: make it a "
            "graph_stage");
  EXPECT_EQ(refusal([](gpu_worker_resources &r, int id) { r.function_id += id == 3 ? 1u : 0u; }),
            "pipeline: worker 3: its function_id is not that of worker 1, which is a buffer of the same worker");
  std::set<int> ids;
  EXPECT_EQ(refusal([&](gpu_worker_resources &r, int id) {
              r.function_id += static_cast<std::uint32_t>(id % 2);
              ids.insert(id);
            }),
            "");
  EXPECT_EQ(ids, (std::set<int>{0, 1, 2, 3}));
}

} // namespace
} // namespace cudaq::qec::realtime::test
