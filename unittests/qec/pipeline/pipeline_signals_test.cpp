// SPDX-License-Identifier: Apache-2.0
// Signals that are sent to the process of a pipeline, and threads that are cancelled in its calls.
#include "unittests/qec/pipeline/pipeline_rig.h"
#include "unittests/support/process_signals.h"

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

namespace cudaq::qec::realtime::test {
namespace {

constexpr std::uint64_t kRequests = 30;

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
