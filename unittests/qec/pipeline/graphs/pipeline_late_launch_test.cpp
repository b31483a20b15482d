// SPDX-License-Identifier: Apache-2.0
// A hook that holds the dispatcher longer than a stop waits: the workers' threads end before the launch.
#include "unittests/qec/pipeline/any_rig.h"

namespace cudaq::qec::realtime::test {
namespace {

/// One worker, whose pre-launch hook waits at the gate.
class PipelineLateLaunch : public testing::Test {
protected:
  PipelineLateLaunch() {
    r.graphs->fake.launch_in_handler = true;
    r.pipeline().set_gpu_stage([this](int id) {
      gpu_worker_resources with = r.resources(id);
      with.pre_launch_data = this;
      with.pre_launch_fn = [](void *self, void *, cudaStream_t) {
        auto &test = *static_cast<PipelineLateLaunch *>(self);
        ++test.inside;
        EXPECT_TRUE(eventually([&] { return test.open.load(); }));
      };
      return with;
    });
    r.pipeline().set_completion_handler([this](const completion &c) {
      status = c.status;
      r.rig().record(c);
    });
  }
  /// A stop while the hook of request 0 does not return, then the launch, then the stop that finds every thread ended.
  void launch_between_stops() {
    r.pipeline().start();
    ASSERT_TRUE(r.submit());
    ASSERT_TRUE(eventually([&] { return inside == 1; }));
    r.pipeline().stop();
    EXPECT_GE(r.pipeline().last_stop().stuck_threads, 1);
    open = true;
    EXPECT_TRUE(eventually([&] {
      r.pipeline().stop();
      return r.pipeline().last_stop().stuck_threads == 0;
    })) << r.pipeline().last_stop().text;
  }

  std::atomic<bool> open{false};
  std::atomic<int> inside{0};
  std::atomic<std::int32_t> status{0};
  any_rig r{{"GraphsOnTwoSides", true, true, true, true}, kSecond / 20, 1, 4, 8};
};

TEST_F(PipelineLateLaunch, IsReportedOnceByTheStopThatEndsTheRun) {
  ASSERT_NO_FATAL_FAILURE(launch_between_stops());
  r.expect_all_completed(CUDAQ_RPC_ERR_SHUTTING_DOWN);
  EXPECT_EQ(status, CUDAQ_RPC_ERR_SHUTTING_DOWN);
  r.pipeline().start(); // the worker is free again
  r.serve(1);
  r.pipeline().stop();
  r.expect_each_once();
}

TEST_F(PipelineLateLaunch, ThatFailsIsReportedOnceByTheStopThatEndsTheRun) {
  r.graphs->fake.launch_fails = [](int) { return true; };
  ASSERT_NO_FATAL_FAILURE(launch_between_stops());
  r.expect_all_completed(CUDAQ_RPC_ERR_LAUNCH_FAILED);
  EXPECT_EQ(status, CUDAQ_RPC_ERR_LAUNCH_FAILED);
}

} // namespace
} // namespace cudaq::qec::realtime::test
