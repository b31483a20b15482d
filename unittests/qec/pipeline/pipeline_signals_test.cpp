// SPDX-License-Identifier: Apache-2.0
// Signals that are sent to the process of a pipeline, and threads that are cancelled in its calls.
#include "unittests/qec/pipeline/pipeline_rig.h"
#include "unittests/support/processes/process_signals.h"

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
  cudaq::realtime::test::cancelled_call call([&] { rig.pipeline->stop(); });
  go = true;
  call.expect_end_after_the_call();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

} // namespace
} // namespace cudaq::qec::realtime::test
