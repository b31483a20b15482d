// SPDX-License-Identifier: Apache-2.0
// The pipeline over graph workers whose graphs are functions: launches, ends of graphs, errors and stop.
// unittests/gpu/qec tests the same on a GPU.
#include "unittests/qec/pipeline/any_rig.h"
#include "unittests/qec/pipeline/foreign_ring.h"
#include "unittests/qec/pipeline/graph_rig.h"

namespace cudaq::qec::realtime::test {
namespace {

/// An external ring, with a client that sends a request, waits for its answer and clears the slot.
class PipelineGraphsOnAnExternalRing : public testing::Test {
protected:
  static constexpr std::uint32_t kSlots = 4;
  PipelineGraphsOnAnExternalRing() { config_.external_ringbuffer = &foreign_.ring; }

  void send_and_receive(std::uint64_t k, bool launch_fails) {
    ASSERT_TRUE(foreign_.send(k));
    ASSERT_TRUE(eventually([&] { return foreign_.receive(k, launch_fails ? CUDAQ_RPC_ERR_LAUNCH_FAILED : 0); }));
    ASSERT_TRUE(eventually([&] { return foreign_.is_free(k); }));
  }

  foreign_ring foreign_{kSlots, false};
  pipeline_stage_config config_ = pipeline_rig::small(2, kSlots);
};

// Known failure 19.
TEST_F(PipelineGraphsOnAnExternalRing, AHandlerThatIsLateDoesNotHoldUpLaunchesThatFail) {
  constexpr std::uint32_t kRequests = 1500; // more than fit into the queue of completions
  graph_rig g(config_);
  g.fake.launch_fails = [](int) { return true; };
  std::atomic<bool> go{false};
  std::atomic<std::uint32_t> delivered{0};
  std::vector<std::atomic<int>> times(kRequests);
  g.rig.pipeline->set_completion_handler([&](const completion &c) {
    EXPECT_TRUE(eventually([&] { return go.load(); }));
    EXPECT_EQ(c.status, CUDAQ_RPC_ERR_LAUNCH_FAILED);
    ++times[c.request_id];
    ++delivered;
  });
  g.rig.pipeline->start();
  for (std::uint32_t k = 0; k < kRequests; ++k)
    ASSERT_NO_FATAL_FAILURE(send_and_receive(k, true));
  go = true;
  ASSERT_TRUE(eventually([&] { return delivered >= 1024; }));
  g.rig.pipeline->stop();
  const stop_report report = g.rig.pipeline->last_stop();
  EXPECT_EQ(report.stuck_threads, 0) << report.text;
  ASSERT_LT(delivered, kRequests);
  EXPECT_EQ(report.text, std::to_string(kRequests - delivered) + " completions not delivered");
  for (const auto &n : times)
    ASSERT_LE(n, 1);
}

// Known failure 18.
TEST(PipelineGraphs, ADeviceThatFailsLeavesNoWorkerWaiting) {
  graph_rig g(pipeline_rig::small(2, 8), 2);
  std::atomic<bool> go{false};
  g.before_work = [&](int) { eventually([&] { return go.load(); }); };
  g.rig.pipeline->start();
  g.rig.submit_all();
  ASSERT_TRUE(eventually([&] { return g.fake.busy() == 2; }));
  g.fake.fail_device();
  EXPECT_TRUE(eventually([&] { return g.rig.seen.all == 2; }));
  EXPECT_TRUE(eventually([&] { return g.rig.pipeline->dump().find("waiting") == std::string::npos; }))
      << g.rig.pipeline->dump();
  go = true;
  g.rig.pipeline->stop();
  EXPECT_EQ(g.rig.seen.not_once(), 0u);
  EXPECT_EQ(g.rig.seen.not_good(), 2u);
}

TEST(PipelineGraphs, AGraphThatRunsAtTheStopKeepsItsWorkerUntilItHasEnded) {
  pipeline_stage_config config = pipeline_rig::small(1, 4);
  config.grace_period_ns = kSecond / 10;
  graph_rig g(config, 3);
  g.reads_request = false; // stop answers it in its slot while the graph runs
  std::atomic<bool> go{false};
  std::atomic<int> inside{0};
  g.before_work = [&](int) {
    EXPECT_EQ(inside++, 0);
    eventually([&] { return go.load(); });
    --inside;
  };
  g.rig.pipeline->start();
  g.rig.submit_all();
  ASSERT_TRUE(eventually([&] { return inside == 1; }));
  std::thread late([&] {
    eventually([&] { return g.rig.seen.all != 0; });
    EXPECT_EQ(g.fake.busy(), 1) << "answered, not released";
    go = true;
  });
  g.rig.pipeline->stop();
  late.join();
  EXPECT_EQ(g.fake.busy(), 0);
  EXPECT_FALSE(g.rig.pipeline->last_stop().drained);
  EXPECT_EQ(g.rig.seen.not_once(), 0u);
}

// The launch hook reads the header again, after the dispatcher has judged it: a C hook gets the slot and nothing else.
// So the size that a hostile peer writes in between may reach the stage, but never one that the slot does not hold.
// Known failure 58.
TEST(PipelineGraphs, StagesGetNoSizeThatTheSlotDoesNotHold) {
  foreign_ring foreign(4, false);
  pipeline_stage_config c = pipeline_rig::small(1, 4);
  c.external_ringbuffer = &foreign.ring;
  graph_rig g(c, 2);
  g.reads_request = false;
  std::atomic<bool> go{false};
  g.before_work = [&](int) { eventually([&] { return go.load(); }); };
  std::vector<std::size_t> sizes;
  g.rig.pipeline->set_cpu_stage([&](const cpu_stage_context &at) {
    sizes.push_back(at.payload_size);
    return std::size_t{8};
  });
  g.rig.pipeline->start();
  EXPECT_TRUE(foreign.send(0)); // occupies the worker
  EXPECT_TRUE(eventually([&] { return g.fake.busy() == 1; }));
  EXPECT_TRUE(foreign.send(1)); // judged; waits for the worker
  EXPECT_TRUE(eventually([&] { return g.fake.waiting() == 1; }));
  const std::uint32_t hostile = 0xFFFFFFF0u;
  std::memcpy(foreign.ring.rx_data_host + foreign.ring.rx_stride_sz + offsetof(cudaq_rpc_header_t, arg_len), &hostile,
              sizeof(hostile));
  go = true;
  EXPECT_TRUE(eventually([&] { return g.rig.seen.all == 2; }));
  g.rig.pipeline->stop();
  ASSERT_EQ(sizes.size(), 2u);
  EXPECT_EQ(sizes[0], 8u);
  EXPECT_EQ(sizes[1], 256u - CUDAQ_RPC_HEADER_SIZE);
}

// A hook that holds the dispatcher longer than a stop waits: the workers' threads end before the launch.

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

// A GPU stage that returns after stop has answered its request.

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
