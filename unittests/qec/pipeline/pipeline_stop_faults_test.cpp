// SPDX-License-Identifier: Apache-2.0
// A stop that has much to report, and a destructor, while allocations fail.
#include "unittests/qec/pipeline/fault_rig.h"

#include <dlfcn.h>

namespace {
/// Number of stops of the dispatcher that do nothing, as if there had been no memory.
std::atomic<int> stops_to_refuse{0};
} // namespace

extern "C" cudaq_status_t cudaq_dispatcher_stop_timeout(cudaq_dispatcher_t *dispatcher, uint64_t timeout_ns) {
  static const auto real =
      reinterpret_cast<decltype(&cudaq_dispatcher_stop_timeout)>(dlsym(RTLD_NEXT, "cudaq_dispatcher_stop_timeout"));
  if (stops_to_refuse > 0) {
    --stops_to_refuse;
    return CUDAQ_ERR_INTERNAL;
  }
  return real(dispatcher, timeout_ns);
}

namespace cudaq::qec::realtime::test {
namespace {

constexpr std::uint64_t kShort = kSecond / 100;

class PipelineStopFaults : public testing::TestWithParam<pipeline_kind> {
protected:
  /// A running pipeline with three requests that are deferred and never completed; without a CPU stage, with three
  /// requests that are answered.
  static void run(any_rig &r) {
    if (r.kind.cpu_stage)
      r.defer_all();
    r.pipeline().start();
    for (int k = 0; k < 3; ++k)
      ASSERT_TRUE(r.submit());
    ASSERT_TRUE(eventually([&] { return r.kind.cpu_stage ? r.deferred == 3 : r.rig().seen.all == 3; }));
  }
};

// Known failure 45.
TEST_P(PipelineStopFaults, StopDoesNotFail) {
  fail_every_call(fault::allocation, 0, [](fault kind, long n) {
    any_rig r(GetParam(), kShort);
    run(r);
    bool failed = false;
    {
      const failing_call one(kind, n);
      EXPECT_NO_THROW(r.pipeline().stop());
      EXPECT_NO_THROW(r.pipeline().stop()) << "a second stop";
      failed = one.happened();
      EXPECT_FALSE(failed) << "stop allocates";
    }
    const stop_report report = r.pipeline().last_stop();
    EXPECT_EQ(report.stuck_threads, 0) << report.text;
    r.expect_all_completed(CUDAQ_RPC_ERR_SHUTTING_DOWN);
    EXPECT_EQ(r.given_up, r.kind.cpu_stage ? 3u : 0u);
    EXPECT_EQ(report.given_up, r.given_up);
    r.wire();
    r.expect_usable();
    return failed;
  });
}

TEST_P(PipelineStopFaults, TheDestructorDoesNotThrow) {
  fail_every_call(fault::allocation, 0, [](fault kind, long n) {
    any_rig r(GetParam(), kShort);
    run(r);
    bool failed = false;
    {
      const failing_call one(kind, n);
      r.owner().reset();
      failed = one.happened();
    }
    r.expect_each_once();
    return failed;
  });
}

TEST_P(PipelineStopFaults, AStopThatTheDispatcherRefusesIsRepeated) {
  any_rig r(GetParam(), kShort);
  run(r);
  stops_to_refuse = 2; // the pipeline calls it again if the run has ended
  EXPECT_NO_THROW(r.pipeline().stop());
  EXPECT_LT(stops_to_refuse.exchange(0), 2);
  EXPECT_GE(r.pipeline().last_stop().stuck_threads, 1);
  EXPECT_NE(r.pipeline().last_stop().text.find("dispatcher: "), std::string::npos);
  EXPECT_THROW(r.pipeline().start(), std::logic_error);
  EXPECT_NO_THROW(r.pipeline().stop());
  EXPECT_EQ(r.pipeline().last_stop().stuck_threads, 0) << r.pipeline().last_stop().text;
  r.expect_all_completed(CUDAQ_RPC_ERR_SHUTTING_DOWN);
  r.wire();
  r.expect_usable();
}

INSTANTIATE_TEST_SUITE_P(Kinds, PipelineStopFaults, testing::ValuesIn(kPipelineKinds),
                         [](const auto &i) { return i.param.name; });

/// A CPU stage that does not return until it is released.
class PipelineStuckStopFaults : public testing::TestWithParam<pipeline_kind> {};

// Known failure 45.
TEST_P(PipelineStuckStopFaults, AStopThatReportsStuckThreadsCanBeRepeated) {
  fail_every_call(fault::allocation, 0, [](fault kind, long n) {
    any_rig r(GetParam(), kShort);
    std::atomic<bool> held{true};
    std::atomic<int> inside{0};
    r.pipeline().set_cpu_stage([&](const cpu_stage_context &c) {
      if (inside++ == 0)
        eventually([&] { return !held; });
      return pipeline_rig::echo(c);
    });
    r.pipeline().start();
    EXPECT_TRUE(r.submit());
    EXPECT_TRUE(eventually([&] { return inside == 1; }));
    bool failed = false;
    {
      const failing_call one(kind, n);
      EXPECT_NO_THROW(r.pipeline().stop());
      failed = one.happened();
      EXPECT_FALSE(failed) << "stop allocates";
    }
    const stop_report report = r.pipeline().last_stop();
    EXPECT_GE(report.stuck_threads, 1);
    EXPECT_NE(report.text.find("is stuck in the CPU stage"), std::string::npos) << report.text;
    held = false;
    EXPECT_TRUE(eventually([&] {
      r.pipeline().stop();
      return r.pipeline().last_stop().stuck_threads == 0;
    })) << r.pipeline().last_stop().text;
    r.expect_all_completed(CUDAQ_RPC_ERR_SHUTTING_DOWN);
    r.wire();
    r.expect_usable();
    return failed;
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, PipelineStuckStopFaults,
                         testing::Values(kPipelineKinds[0], kPipelineKinds[2], kPipelineKinds[3]),
                         [](const auto &i) { return i.param.name; });

/// The dispatcher is in a hook when a stop ends the workers' threads, and launches after that.
TEST(PipelineGraphsStop, ALaunchAfterTheEndOfItsWorkersThreadIsGivenBack) {
  any_rig r(kPipelineKinds[3], kShort, 1);
  r.graphs->reads_request = false; // the stop answers it in its slot
  struct gate {
    std::atomic<bool> open{false}, reached{false}, launched{false};
  } hook;
  r.pipeline().set_gpu_stage([&](int id) {
    gpu_worker_resources with = r.resources(id);
    with.pre_launch_data = with.post_launch_data = &hook;
    with.post_launch_fn = [](void *self, void *, cudaStream_t) { static_cast<gate *>(self)->launched = true; };
    with.pre_launch_fn = [](void *self, void *, cudaStream_t) {
      auto &g = *static_cast<gate *>(self);
      g.reached = true;
      EXPECT_TRUE(eventually([&] { return g.open.load(); }));
    };
    return with;
  });
  r.pipeline().start();
  ASSERT_TRUE(r.submit());
  ASSERT_TRUE(eventually([&] { return hook.reached.load(); }));
  stops_to_refuse = 2;
  r.pipeline().stop();
  stops_to_refuse = 0;
  EXPECT_GE(r.pipeline().last_stop().stuck_threads, 1);
  hook.open = true;
  ASSERT_TRUE(eventually([&] { return hook.launched.load(); }));
  r.pipeline().stop();
  EXPECT_EQ(r.pipeline().last_stop().stuck_threads, 0) << r.pipeline().last_stop().text;
  r.expect_all_completed(CUDAQ_RPC_ERR_SHUTTING_DOWN);
  r.graphs->reads_request = true;
  r.wire();
  r.expect_usable();
}

/// A callback of the pipeline destroys it: the destructor then leaves it as it is. The exception by which stop refuses
/// such a call needs memory.
// Known failure 45.
TEST(PipelineDestroyedByItsCallback, IsLeftAsItIsWithoutMemoryToo) {
  auto *const rig = new pipeline_rig(pipeline_rig::small(1, 2), 2); // its threads go on until the process ends
  std::atomic<bool> done{false};
  rig->pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    const failing_call one(fault::allocation, 0);
    rig->pipeline.reset();
    EXPECT_TRUE(one.happened());
    done = true;
    return pipeline_rig::echo(c);
  });
  ring_buffer_injector injector = rig->start();
  rig->submit(injector, 0);
  EXPECT_TRUE(eventually([&] { return done.load(); }));
  EXPECT_TRUE(eventually([&] { return rig->seen.good[0] == 1; }));
}

} // namespace
} // namespace cudaq::qec::realtime::test
