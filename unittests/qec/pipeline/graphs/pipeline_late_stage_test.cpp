// SPDX-License-Identifier: Apache-2.0
// A GPU stage that returns after stop has answered its request.
#include "unittests/qec/pipeline/any_rig.h"

namespace cudaq::qec::realtime::test {
namespace {

/// One worker, whose host stage copies the request and waits at the gate before it returns.
class PipelineLateStage : public testing::TestWithParam<pipeline_kind> {
protected:
  PipelineLateStage() {
    r.pipeline().set_gpu_stage([this](int id) {
      gpu_worker_resources with = r.resources(id);
      with.host_stage_data = this;
      with.host_stage_fn = [](void *self, host_stage_call *call) {
        auto &test = *static_cast<PipelineLateStage *>(self);
        const int error = copy_worker::copy(&test.r.host->workers.front(), call);
        ++test.inside;
        EXPECT_TRUE(eventually([&] { return test.open.load(); }));
        return error;
      };
      return with;
    });
    r.pipeline().set_cpu_stage([this](const cpu_stage_context &c) {
      ++calls;
      return pipeline_rig::echo(c);
    });
  }
  /// A stop during which the peer gets the answer to request 0, uses the slot again if the ring is its own, and then
  /// lets the stage return.
  void stop_and_refill() {
    std::thread stopping([&] { r.pipeline().stop(); });
    if (r.kind.external) {
      EXPECT_TRUE(eventually([&] { return r.foreign->receive(0, CUDAQ_RPC_ERR_SHUTTING_DOWN); }));
      EXPECT_TRUE(eventually([&] { return r.foreign->send(4); }));
    } else {
      EXPECT_TRUE(eventually([&] { return r.given_up == 1; }));
    }
    open = true;
    stopping.join();
    EXPECT_TRUE(eventually([&] {
      r.pipeline().stop();
      return r.pipeline().last_stop().stuck_threads == 0;
    })) << r.pipeline().last_stop().text;
  }

  std::atomic<bool> open{false};
  std::atomic<int> inside{0}, calls{0};
  any_rig r{GetParam(), kSecond / 20, 1, 4, 8};
};

TEST_P(PipelineLateStage, LeadsToNoCpuStageAndLeavesTheSlotToTheNextRequest) {
  r.pipeline().start();
  ASSERT_TRUE(r.submit());
  ASSERT_TRUE(eventually([&] { return inside == 1; }));
  stop_and_refill();
  EXPECT_EQ(calls, 0) << "called for a request that stop has answered";
  EXPECT_EQ(r.given_up, 1u);
  EXPECT_EQ(r.rig().seen.times[0], 1);
  r.pipeline().start();
  if (r.kind.external) {
    EXPECT_TRUE(eventually([&] { return r.foreign->receive(4); })) << r.pipeline().dump();
  } else {
    r.serve(1);
  }
  r.pipeline().stop();
  EXPECT_EQ(r.rig().seen.times[r.kind.external ? 4 : 1], 1);
  EXPECT_EQ(calls, 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, PipelineLateStage,
                         testing::Values(kPipelineKinds[0], kPipelineKinds[2],
                                         pipeline_kind{"HostStagesTwoSides", false, true, true, true}),
                         [](const auto &i) { return i.param.name; });

} // namespace
} // namespace cudaq::qec::realtime::test
