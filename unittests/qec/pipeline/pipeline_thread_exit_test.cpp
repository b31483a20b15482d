// SPDX-License-Identifier: Apache-2.0
// Callbacks of a pipeline that end their thread (pthread_exit), and signals that are sent to its process.
#include "unittests/qec/pipeline/pipeline_rig.h"
#include "unittests/support/process_signals.h"

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

namespace cudaq::qec::realtime::test {
namespace {

/// Collects the statuses of completions.
struct statuses {
  std::atomic<int> threw{0}, gave_up{0}, good{0};
  int all() const { return threw + gave_up + good; }
  void add(const completion &c) {
    ++(c.status == CUDAQ_RPC_ERR_HANDLER_THREW ? threw : c.status == CUDAQ_RPC_ERR_SHUTTING_DOWN ? gave_up : good);
  }
};

/// Ends the thread at request `kLast`.
constexpr std::uint64_t kLast = 5, kRequests = 30;
bool is_last(const void *payload) {
  std::uint64_t id = 0;
  std::memcpy(&id, payload, sizeof(id));
  return (id & 0xFFFF) == kLast;
}
int copy_or_exit(void *self, host_stage_call *call) {
  if (is_last(call->payload))
    pthread_exit(nullptr);
  return copy_worker::copy(self, call);
}
std::size_t echo_or_exit(const cpu_stage_context &c) {
  if (is_last(c.payload))
    pthread_exit(nullptr);
  return pipeline_rig::echo(c);
}

/// Every request gets one completion, the one that ended its thread HANDLER_THREW, and those after it SHUTTING_DOWN.
void expect_all_answered(pipeline_rig &rig, statuses &seen) {
  rig.pipeline->set_completion_handler([&](const completion &c) { seen.add(c); });
  rig.pipeline->start();
  rig.submit_all();
  EXPECT_TRUE(eventually([&] { return seen.all() == kRequests; })) << "a request has no completion";
  rig.pipeline->stop();
  EXPECT_EQ(seen.threw, 1);
  EXPECT_GE(seen.gave_up, 1);
  EXPECT_EQ(rig.pipeline->last_stop().stuck_threads, 0);
  EXPECT_NE(rig.pipeline->dump().find("has ended its thread"), std::string::npos);
}

// Known failure 55.
TEST(PipelineThreadExit, OfAHostStageAnswersAllRequests) {
  for (const int workers : {1, 3}) {
    pipeline_rig rig(pipeline_rig::small(workers), kRequests);
    rig.pipeline->set_gpu_stage([&](int id) {
      gpu_worker_resources r = rig.resources(id);
      r.host_stage_fn = &copy_or_exit;
      return r;
    });
    statuses seen;
    expect_all_answered(rig, seen);
    rig.pipeline->set_gpu_stage([&](int id) { return rig.resources(id); });
    rig.pipeline->set_completion_handler([&](const completion &c) { rig.record(c); });
    rig.run_all(); // a new run
    CUDAQ_EXPECT_ALL_GOOD(rig);
  }
}

TEST(PipelineThreadExit, OfACpuStageAnswersAllRequests) {
  for (const int workers : {1, 3}) {
    pipeline_rig rig(pipeline_rig::small(workers), kRequests);
    rig.pipeline->set_cpu_stage([](const cpu_stage_context &c) { return echo_or_exit(c); });
    statuses seen;
    expect_all_answered(rig, seen);
  }
}

TEST(PipelineThreadExit, OfTheCompletionHandlerLeavesNoSlotOccupied) {
  pipeline_rig rig(pipeline_rig::small(), kRequests);
  std::atomic<int> calls{0};
  rig.pipeline->set_completion_handler([&](const completion &) {
    if (++calls == 4)
      pthread_exit(nullptr);
  });
  rig.pipeline->start();
  rig.submit_all(); // more requests than slots: the consumer must go on
  EXPECT_TRUE(eventually([&] { return rig.pipeline->stats().completed == kRequests; }));
  rig.pipeline->stop();
  EXPECT_EQ(calls, 4) << "the handler is not called again";
  EXPECT_EQ(rig.pipeline->last_stop().stuck_threads, 0);
  EXPECT_NE(rig.pipeline->dump().find("completion handler has ended its thread"), std::string::npos);
  rig.pipeline->set_completion_handler([&](const completion &c) { rig.record(c); });
  rig.run_all();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

// Known failure 46.
TEST(PipelineSignals, RunNoHandlerOnWorkersAndConsumer) {
  for (const wait_policy wait : {wait_policy::spin_yield, wait_policy::block}) {
    pipeline_stage_config config = pipeline_rig::small();
    config.wait = wait;
    pipeline_rig rig(config, kRequests);
    rig.pipeline->start();
    for (const pid_t tid : cudaq::realtime::test::process_signals::send_fifty())
      EXPECT_EQ(tid, gettid());
    rig.submit_all();
    rig.pipeline->stop();
    CUDAQ_EXPECT_ALL_GOOD(rig);
  }
}

// Known failure 55.
TEST(PipelineCancellation, OfAStopTakesEffectAfterIt) {
  pipeline_rig rig(pipeline_rig::small(), 1);
  std::atomic<bool> inside{false}, go{false};
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    inside = true;
    eventually([&] { return go.load(); });
    return pipeline_rig::echo(c);
  });
  rig.pipeline->start();
  rig.submit_all();
  ASSERT_TRUE(eventually([&] { return inside.load(); }));
  struct shared {
    realtime_pipeline &pipeline;
    std::atomic<int> step{0};
  } s{*rig.pipeline};
  pthread_t thread{};
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void *of) -> void * {
                  auto &in = *static_cast<shared *>(of);
                  in.step = 1;
                  in.pipeline.stop();
                  in.step = 2;
                  pthread_testcancel();
                  in.step = 3;
                  return nullptr;
                },
                &s),
            0);
  ASSERT_TRUE(eventually([&] { return s.step == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(pthread_cancel(thread), 0);
  go = true;
  void *result = nullptr;
  pthread_join(thread, &result);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_EQ(s.step, 2);
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

} // namespace
} // namespace cudaq::qec::realtime::test
