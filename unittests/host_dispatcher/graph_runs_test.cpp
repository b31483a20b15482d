// SPDX-License-Identifier: Apache-2.0
// Graph workers at the beginning and at the end of a run, hooks, and answers that come early or late. On fake graphs.
#include "unittests/host_dispatcher/fake_graphs.h"

namespace cudaq::realtime::test {
namespace {

/// Worker 0 serves function 1, and the caller answers. Worker 1 serves function 2, and the library answers.
class GraphRun : public two_graphs {
protected:
  GraphRun() : two_graphs(CUDAQ_WORKER_CALLER_PUBLISHES) {}
  static std::uint64_t answered_with(const graph_rig &rig, std::int32_t status) {
    return rig.stats().protocol_errors[CUDAQ_RPC_ERROR_INDEX(status)];
  }
  /// Leaves the request in slot 0 in flight: the launch of worker 1 has failed, and work that its hook has queued still
  /// runs.
  static void fail_after_hook_work(graph_rig &rig) {
    rig.device->hook_work = 2;
    rig.device->next_error = 400;
    rig.send(0, 2, 5, 1);
    ASSERT_TRUE(eventually([&] { return rig.tx_status(0) == CUDAQ_TX_IN_FLIGHT; }));
  }
};

TEST_F(GraphRun, HooksStandAroundTheLaunchAndGetTheirDataAndTheSlot) {
  struct seen {
    std::uint32_t launches[2] = {~0u, ~0u};
    void *slot[2] = {};
    fake_device *device = nullptr;
  } what;
  plan.workers[1].pre_launch_fn = [](void *user, void *slot_dev, cudaStream_t) {
    auto &s = *static_cast<seen *>(user);
    s.launches[0] = s.device->launches;
    s.slot[0] = slot_dev;
  };
  plan.workers[1].post_launch_fn = [](void *user, void *slot_dev, cudaStream_t) {
    auto &s = *static_cast<seen *>(user);
    s.launches[1] = s.device->launches;
    s.slot[1] = slot_dev;
  };
  plan.workers[1].pre_launch_data = plan.workers[1].post_launch_data = &what;
  graph_rig rig(plan);
  what.device = rig.device.get();
  rig.send(0, 2, 5, 1);
  expect_answer(rig, 0, 0);
  EXPECT_TRUE(rig.stop());
  EXPECT_EQ(what.launches[0], 0u);
  EXPECT_EQ(what.launches[1], 1u);
  EXPECT_EQ(what.slot[0], rig.ring.rx_slot(0));
  EXPECT_EQ(what.slot[1], rig.ring.rx_slot(0));
}

// Known failure 17.
TEST_F(GraphRun, APostLaunchHookThatThrowsDoesNotUndoTheLaunch) {
  for (cudaq_host_worker_t &w : plan.workers)
    w.post_launch_fn = [](void *, void *, cudaStream_t) { throw 1; };
  for (const bool markers : {true, false}) {
    plan.markers = markers;
    graph_rig rig(plan);
    rig.send(0, 1, 5, 1);
    rig.send(1, 2, 5, 2);
    expect_answer(rig, 0, 0);
    expect_answer(rig, 1, 0);
    EXPECT_TRUE(rig.stop());
    const cudaq_dispatcher_stats_t stats = rig.stats();
    EXPECT_EQ(stats.hook_failures, 2u);
    EXPECT_EQ(stats.launches, 2u);
    EXPECT_EQ(rig.device->recoveries.load(), 0u);
    EXPECT_NE(rig.dispatcher.describe().find("hooks that threw 2"), std::string::npos);
  }
}

TEST_F(GraphRun, AnAnswerThatComesBeforeTheLaunchHasReturnedIsKeptUntilThen) {
  struct early {
    graph_rig *rig = nullptr;
    bool accepted = false, published = true;
    std::atomic<bool> over{false};
  } what;
  plan.workers[0].post_launch_fn = [](void *user, void *, cudaStream_t) {
    auto &e = *static_cast<early *>(user);
    cudaq_host_job_t job{};
    e.accepted = e.rig->dispatcher.worker_job(0, job).ok() && e.rig->dispatcher.complete_deferred(job, 6, 0).ok();
    e.published = e.rig->answered(0);
    e.over = true;
  };
  plan.workers[0].post_launch_data = &what;
  for (const bool markers : {true, false}) {
    plan.markers = markers;
    graph_rig rig(plan);
    what.rig = &rig;
    what.over = false;
    rig.device->silent = true; // the graph must not write the slot after an early answer
    rig.device->ready = [&](std::uint32_t worker) {
      eventually([&] { return what.over.load(); });
      EXPECT_TRUE(rig.dispatcher.release_worker(static_cast<int>(worker)).ok());
    };
    rig.send(0, 1, 5, 1);
    expect_answer(rig, 0, 6);
    EXPECT_TRUE(rig.stop());
    EXPECT_TRUE(what.accepted);
    EXPECT_FALSE(what.published) << "answered before the launch had returned";
    EXPECT_EQ(rig.stats().responded, 1u);
  }
}

TEST_F(GraphRun, AFailedLaunchDoesNotReplaceAnAnswerThatCameBefore) {
  struct early {
    graph_rig *rig = nullptr;
  } what;
  plan.workers[0].pre_launch_fn = [](void *user, void *, cudaStream_t) {
    graph_rig &rig = *static_cast<early *>(user)->rig;
    cudaq_host_job_t job{};
    EXPECT_TRUE(rig.dispatcher.worker_job(0, job).ok());
    EXPECT_TRUE(rig.dispatcher.complete_deferred(job, 6, 0).ok());
  };
  plan.workers[0].pre_launch_data = &what;
  graph_rig rig(plan);
  what.rig = &rig;
  rig.device->next_error = 400;
  rig.send(0, 1, 5, 1);
  expect_answer(rig, 0, 6);
  EXPECT_EQ(answered_with(rig, CUDAQ_RPC_ERR_LAUNCH_FAILED), 0u);
}

TEST_F(GraphRun, AFailedLaunchIsAnsweredAfterTheWorkOfItsHookAndDelaysNoOther) {
  graph_rig rig(plan);
  ASSERT_NO_FATAL_FAILURE(fail_after_hook_work(rig));
  rig.send(1, 1, 5, 2);
  expect_answer(rig, 1, 0);
  EXPECT_EQ(rig.tx_status(0), CUDAQ_TX_IN_FLIGHT);
  EXPECT_EQ(rig.device->recoveries.load(), 0u);
  rig.device->hook_work = 0;
  ASSERT_NO_FATAL_FAILURE(expect_error(rig, 0, 400));
  rig.send(2, 2, 5, 3);
  expect_answer(rig, 2, 0);
}

// One query of the driver takes a large part of the time of a request.
TEST_F(GraphRun, TheDriverIsNotQueriedAboutAFailedLaunchInEveryTurn) {
  graph_rig rig(plan);
  ASSERT_NO_FATAL_FAILURE(fail_after_hook_work(rig));
  const auto begin = std::chrono::steady_clock::now();
  const std::uint32_t before = rig.device->questions.load();
  ASSERT_TRUE(eventually([&] { return rig.device->questions.load() >= before + 20; }));
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took.count(), 18 * 50);
  rig.device->hook_work = 0;
  EXPECT_TRUE(eventually([&] { return rig.tx_status(0) == CUDAQ_TX_ERROR; }));
}

// Known failure 12.
TEST_F(GraphRun, StopWaitsForWhatAHookHasQueuedAndSaysSo) {
  graph_rig rig(plan);
  ASSERT_NO_FATAL_FAILURE(fail_after_hook_work(rig));
  EXPECT_FALSE(rig.stop(std::chrono::milliseconds(50)));
  EXPECT_EQ(rig.tx_status(0), CUDAQ_TX_IN_FLIGHT) << "the hook's work may still read the slot";
  rig.device->hook_work = 0;
  EXPECT_TRUE(rig.stop());
  EXPECT_EQ(rig.tx_status(0), CUDAQ_TX_ERROR);
}

// Known failure 9.
TEST_F(GraphRun, AFaultAnswersAFailedLaunchWhoseHookIsNotOver) {
  graph_rig rig(plan);
  ASSERT_NO_FATAL_FAILURE(fail_after_hook_work(rig));
  rig.device->trap();
  ASSERT_NO_FATAL_FAILURE(expect_error(rig, 0, kFakeError));
}

// Known failure 34.
TEST_F(GraphRun, TheCallerCannotCompleteAJobThatTheLibraryAnswers) {
  graph_rig rig(plan);
  rig.device->hold(true);
  rig.send(0, 2, 5, 1);
  ASSERT_TRUE(eventually([&] { return rig.device->launches.load() == 1; }));
  cudaq_host_job_t job{};
  ASSERT_TRUE(rig.dispatcher.worker_job(1, job).ok());
  const detail::expected<> result = rig.dispatcher.complete_deferred(job, 3, 0);
  EXPECT_EQ(result.status(), CUDAQ_ERR_STATE);
  EXPECT_NE(result.text().find("CALLER_PUBLISHES"), std::string::npos) << result.text();
  EXPECT_EQ(rig.tx_status(0), CUDAQ_TX_IN_FLIGHT);
  rig.device->hold(false);
  expect_answer(rig, 0, 0);
}

TEST_F(GraphRun, ANewRunIsRefusedUntilTheCallerHasReleasedEveryWorker) {
  graph_rig rig(plan);
  std::atomic<int> ready{0};
  const auto answer = rig.device->ready;
  rig.device->ready = [&](std::uint32_t) { ++ready; }; // keeps the worker
  rig.send(0, 1, 5, 1);
  ASSERT_TRUE(eventually([&] { return ready.load() == 1; }));
  cudaq_host_job_t old{};
  ASSERT_TRUE(rig.dispatcher.worker_job(0, old).ok());
  EXPECT_TRUE(eventually([&] { return rig.stop(std::chrono::milliseconds(100)); }));
  expect_answer(rig, 0, CUDAQ_RPC_ERR_SHUTTING_DOWN);
  cudaq_host_ringbuffer_clear_slot(&rig.ring.ring, 0);
  const detail::expected<> result = rig.start();
  EXPECT_EQ(result.status(), CUDAQ_ERR_STATE);
  EXPECT_NE(result.text().find("graph worker 0 is held by the caller"), std::string::npos) << result.text();
  EXPECT_TRUE(rig.dispatcher.release_worker(0).ok());
  cudaq_host_job_t job{};
  EXPECT_EQ(rig.dispatcher.worker_job(0, job).status(), CUDAQ_ERR_STATE) << "idle";
  rig.device->ready = answer;
  ASSERT_TRUE(rig.start().ok());
  EXPECT_EQ(rig.dispatcher.worker_job(0, job).status(), CUDAQ_ERR_STATE) << "the job of the previous run must be gone";
  rig.send(1, 1, 5, 2);
  expect_answer(rig, 1, 0);
  EXPECT_EQ(rig.dispatcher.complete_deferred(old, 0, 0).status(), CUDAQ_ERR_STATE);
}

TEST_F(GraphRun, RunsFollowEachOtherOnTheSameRing) {
  graph_rig rig(plan);
  for (std::uint32_t n = 0, run = 0; run < 20; ++run) {
    for (int k = 0; k < 5; ++k, ++n) {
      const std::uint32_t slot = n % 8;
      ASSERT_TRUE(eventually([&] { return cudaq_host_ringbuffer_slot_available(&rig.ring.ring, slot) == 1; }));
      rig.send(slot, 1 + n % 2, 5, n);
      expect_answer(rig, slot, 0);
      cudaq_host_ringbuffer_clear_slot(&rig.ring.ring, slot);
    }
    ASSERT_TRUE(rig.stop());
    ASSERT_EQ(rig.stats().in_flight, 0u);
    ASSERT_TRUE(rig.start().ok());
  }
  EXPECT_EQ(rig.stats().responded, 100u);
}

TEST_F(GraphRun, StopWaitsForTheCallerWhoHasAWorker) {
  graph_rig rig(plan);
  std::atomic<bool> go_on{false}, waits{false};
  rig.device->ready = [&](std::uint32_t worker) {
    cudaq_host_job_t job{};
    EXPECT_TRUE(rig.dispatcher.worker_job(static_cast<int>(worker), job).ok());
    waits = true;
    eventually([&] { return go_on.load(); });
    EXPECT_TRUE(rig.dispatcher.release_worker(static_cast<int>(worker)).ok());
    EXPECT_TRUE(rig.dispatcher.complete_deferred(job, 8, 0).ok());
  };
  rig.send(0, 1, 5, 1);
  rig.send(1, 1, 5, 2); // waits for the worker, and gets it during the stop
  ASSERT_TRUE(eventually([&] { return waits.load() && rig.stats().dispatched == 2; }));
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    go_on = true;
  });
  EXPECT_TRUE(rig.stop());
  opener.join();
  expect_answer(rig, 0, 8);
  expect_answer(rig, 1, 8);
  EXPECT_TRUE(rig.dispatcher.check_restart().ok());
}

TEST_F(GraphRun, ALoopOnTheCallersThreadDoesNotWaitWithoutLimitForAGraph) {
  plan.own_thread = false;
  plan.grace_period_ns = 100'000'000;
  graph_rig rig(plan);
  rig.device->hold(true);
  std::thread caller([&] { rig.dispatcher.loop(); });
  rig.send(0, 2, 5, 1);
  ASSERT_TRUE(eventually([&] { return rig.device->launches.load() == 1; }));
  rig.send(1, 2, 5, 2); // waits, because no worker is idle
  ASSERT_TRUE(eventually([&] { return rig.stats().dispatched == 2; }));
  const auto begin = std::chrono::steady_clock::now();
  detail::store_release<int>(rig.shutdown, 1);
  caller.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kDeadline / 2);
  EXPECT_TRUE(rig.dispatcher.graph_runs());
  expect_answer(rig, 1, CUDAQ_RPC_ERR_SHUTTING_DOWN);
  EXPECT_EQ(rig.tx_status(0), CUDAQ_TX_IN_FLIGHT) << "the graph still uses the slot";
  EXPECT_FALSE(rig.stop(std::chrono::milliseconds(10)));
  rig.device->hold(false);
  EXPECT_TRUE(rig.stop());
  expect_answer(rig, 0, 0);
}

TEST_F(GraphRun, AFaultAfterTheEndOfTheLoopIsSeenByStop) {
  plan.own_thread = false;
  plan.grace_period_ns = 50'000'000;
  graph_rig rig(plan);
  rig.device->hold(true);
  std::thread caller([&] { rig.dispatcher.loop(); });
  rig.send(0, 2, 5, 1);
  ASSERT_TRUE(eventually([&] { return rig.device->launches.load() == 1; }));
  detail::store_release<int>(rig.shutdown, 1);
  caller.join();
  rig.device->trap();
  EXPECT_TRUE(rig.stop());
  EXPECT_EQ(rig.dispatcher.fault(), kFakeError);
  expect_error(rig, 0, kFakeError);
}

TEST_F(GraphRun, AFaultDoesNotAnswerASlotThatWasAnsweredAndRefilled) {
  plan.workers[1].completion = CUDAQ_WORKER_GRAPH_PUBLISHES;
  graph_rig rig(plan);
  spin_gate gate;
  rig.device->published = [&](std::uint32_t) { gate.pass(); }; // the graph has raised its flag, but does not end
  rig.send(0, 2, 5, 1);
  expect_answer(rig, 0, 0);
  cudaq_host_ringbuffer_clear_slot(&rig.ring.ring, 0);
  ASSERT_TRUE(eventually([&] { return cudaq_host_ringbuffer_slot_available(&rig.ring.ring, 0) == 1; }));
  rig.send(0, 2, 5, 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(rig.tx_status(0), CUDAQ_TX_EMPTY) << "the slot's first job is not over";
  rig.device->trap();
  ASSERT_NO_FATAL_FAILURE(expect_error(rig, 0, kFakeError));
  EXPECT_EQ(rig.stats().responded, 2u);
  EXPECT_EQ(answered_with(rig, CUDAQ_RPC_ERR_DEVICE_FAULT), 1u) << "only the second request is answered with the fault";
  gate.open = true;
}

// The graph has answered, the device is lost, and then the launch reports this loss.
TEST_F(GraphRun, ALaunchThatFailsAfterItsGraphHasAnsweredLeavesTheAnswerAlone) {
  struct lost_after_the_answer {
    graph_rig *rig = nullptr;
    bool collected = false;
  } what;
  plan.workers[1].completion = CUDAQ_WORKER_GRAPH_PUBLISHES;
  plan.workers[1].post_launch_data = &what;
  plan.workers[1].post_launch_fn = [](void *user, void *, cudaStream_t) {
    const auto &lost = *static_cast<lost_after_the_answer *>(user);
    EXPECT_TRUE(eventually([&] { return lost.rig->answered(0); }));
    if (lost.collected)
      cudaq_host_ringbuffer_clear_slot(&lost.rig->ring.ring, 0);
    lost.rig->device->trap();
    lost.rig->device->error_after_launch = kFakeError;
  };
  for (const bool collected : {false, true}) {
    graph_rig rig(plan);
    what.rig = &rig;
    what.collected = collected;
    rig.send(0, 2, 5, 1);
    EXPECT_TRUE(eventually([&] { return rig.dispatcher.fault() != 0; })) << rig.dispatcher.describe();
    EXPECT_TRUE(rig.stop());
    EXPECT_EQ(rig.tx_status(0), collected ? CUDAQ_TX_EMPTY : CUDAQ_TX_READY);
    EXPECT_EQ(cudaq_host_ringbuffer_slot_available(&rig.ring.ring, 0), collected ? 1 : 0);
    const cudaq_dispatcher_stats_t stats = rig.stats();
    EXPECT_EQ(stats.responded, 1u);
    EXPECT_EQ(stats.in_flight, 0u);
    EXPECT_EQ(answered_with(rig, CUDAQ_RPC_ERR_DEVICE_FAULT), 0u);
  }
}

} // namespace
} // namespace cudaq::realtime::test
