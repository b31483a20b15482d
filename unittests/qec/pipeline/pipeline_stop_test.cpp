// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/pipeline/pipeline_rig.h"

#include <csignal>
#include <stdexcept>
#include <sys/syscall.h>
#include <unistd.h>

namespace cudaq::qec::realtime::test {
namespace {

pipeline_stage_config quick(int workers, int slots) {
  pipeline_stage_config c = pipeline_rig::small(workers, slots);
  c.grace_period_ns = kSecond / 10;
  return c;
}

/// Stops again until each thread has ended: one that had no core for the time of a stop is stuck in its report.
void stop_until_none_is_stuck(pipeline_rig &rig) {
  EXPECT_TRUE(eventually([&] {
    rig.pipeline->stop();
    return rig.pipeline->last_stop().stuck_threads == 0;
  })) << rig.pipeline->last_stop().text;
}

/// Like pipeline_rig::run_all(), but stops only when `done` holds: a thread without a core for the short grace period
/// would have its requests given up.
template <class Done>
void run_all_until(pipeline_rig &rig, Done &&done) {
  rig.pipeline->start();
  rig.submit_all();
  EXPECT_TRUE(eventually(done)) << rig.pipeline->dump();
  rig.pipeline->stop();
}

/// Holds the dispatcher's thread in a signal handler until release(), as if a debugger had stopped it or
/// it had lost its core.
class paused_dispatcher {
public:
  paused_dispatcher() {
    struct sigaction ours {};
    ours.sa_handler = hold;
    sigaction(kSignal, &ours, &before_);
    held_ = 0;
    released_ = 0;
    const pid_t thread = thread_named("cudaq-dispatch");
    EXPECT_NE(thread, 0);
    EXPECT_EQ(syscall(SYS_tgkill, getpid(), thread, kSignal), 0);
    EXPECT_TRUE(eventually([] { return held_ != 0; }));
  }
  ~paused_dispatcher() {
    release();
    sigaction(kSignal, &before_, nullptr);
  }
  paused_dispatcher(const paused_dispatcher &) = delete;
  paused_dispatcher &operator=(const paused_dispatcher &) = delete;
  static void release() {
    released_ = 1;
    EXPECT_TRUE(eventually([] { return held_ == 0; }));
  }

private:
  static constexpr int kSignal = SIGSYS; // one that the library's threads do not block
  static void hold(int) {
    held_ = 1;
    for (int tenth_ms = 0; released_ == 0 && tenth_ms < 300000; ++tenth_ms)
      usleep(100);
    held_ = 0;
  }
  static inline std::atomic<int> held_{0}, released_{0};
  struct sigaction before_ {};
};

TEST(PipelineStop, DrainsWhatWasSubmitted) {
  pipeline_rig rig(pipeline_rig::small(1, 16), 16);
  rig.pipeline->set_cpu_stage([](const cpu_stage_context &c) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return pipeline_rig::echo(c);
  });
  rig.pipeline->start();
  rig.submit_all();
  rig.pipeline->stop(); // most are still in the ring
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineStop, InMidStreamNothingIsLostOrDoubled) {
  for (int run = 0; run < 10; ++run) {
    pipeline_rig rig(pipeline_rig::small(2, 8), 100000);
    rig.pipeline->start();
    std::atomic<std::uint64_t> accepted{0};
    std::thread injecting([&] {
      ring_buffer_injector injector = rig.pipeline->create_injector();
      try {
        for (std::uint64_t k = 0; k < rig.seen.times.size(); ++k, ++accepted)
          rig.submit(injector, k);
      } catch (const std::runtime_error &) { // stopped
        const std::vector<std::uint8_t> payload(8);
        EXPECT_FALSE(injector.try_submit(kFunction, payload.data(), payload.size(), 1));
      }
    });
    EXPECT_TRUE(eventually([&] { return accepted > static_cast<std::uint64_t>(run) * 17; }));
    rig.pipeline->stop();
    injecting.join();
    EXPECT_EQ(rig.seen.all, accepted);
    EXPECT_EQ(rig.pipeline->stats().submitted, accepted);
    for (std::uint64_t k = 0; k < accepted; ++k)
      ASSERT_TRUE(rig.seen.times[k] == 1 && rig.seen.good[k] == 1) << k << " of " << accepted;
    EXPECT_TRUE(rig.pipeline->last_stop().drained);
  }
}

TEST(PipelineStop, RestartGoesOnWhereItStopped) {
  pipeline_rig rig(pipeline_rig::small(2, 5), 500);
  std::uint64_t k = 0;
  for (const std::uint64_t burst : {1u, 7u, 492u}) { // no burst ends at the end of the ring
    ring_buffer_injector injector = rig.start();
    for (std::uint64_t i = 0; i < burst; ++i)
      rig.submit(injector, k++);
    rig.pipeline->stop();
    EXPECT_EQ(rig.seen.all, k);
  }
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineStop, AStageThatIsNeverReadyIsGivenUpAfterTheGracePeriod) {
  pipeline_rig rig(quick(2, 8), 8);
  std::atomic<int> shutting_down{0}, good{0};
  rig.pipeline->set_completion_handler([&](const completion &c) {
    shutting_down += !c.success && c.status == CUDAQ_RPC_ERR_SHUTTING_DOWN;
    good += c.success;
    rig.record(c);
  });
  rig.change_stage([&](gpu_worker_resources &r, int id) {
    if (id == 0) { // copies, and never sets its ready flag
      r.ready_flag = &rig.workers[0].ready;
      return;
    }
    r.host_stage_data = &rig;
    r.host_stage_fn = [](void *all, host_stage_call *call) { // worker 1 lets worker 0 take a request first
      auto &both = static_cast<pipeline_rig *>(all)->workers;
      EXPECT_TRUE(eventually([&] { return both[0].launches == 1; }));
      return copy_worker::copy(&both[1], call);
    };
  });
  rig.pipeline->start();
  rig.submit_all();
  EXPECT_TRUE(eventually([&] { return rig.workers[0].launches == 1 && good == 7; })) << rig.pipeline->dump();
  EXPECT_NE(rig.pipeline->dump().find("worker 0: waiting for the GPU stage"), std::string::npos);
  rig.pipeline->stop();
  EXPECT_EQ(rig.seen.not_once(), 0u);
  EXPECT_EQ(shutting_down, 1);
  const stop_report report = rig.pipeline->last_stop();
  EXPECT_FALSE(report.drained);
  EXPECT_EQ(report.given_up, 1u);
  EXPECT_NE(report.text.find("SHUTTING_DOWN"), std::string::npos) << report.text;
  stop_until_none_is_stuck(rig);
  rig.pipeline->set_gpu_stage([&](int id) { return rig.resources(id); });
  run_all_until(rig, [&] { return good == 15; });
  EXPECT_EQ(good, 15);
}

TEST(PipelineStop, AllWorkersStuckLeavesNoRequestWithoutACompletion) {
  pipeline_rig rig(quick(2, 8), 8); // two at the workers, six in the queue
  rig.change_stage(
      [&](gpu_worker_resources &r, int id) { r.ready_flag = &rig.workers[static_cast<std::size_t>(id)].ready; });
  rig.pipeline->start();
  rig.submit_all();
  EXPECT_TRUE(eventually([&] { return rig.pipeline->stats().dispatched == 8; }));
  rig.pipeline->stop();
  EXPECT_EQ(rig.seen.not_once(), 0u);
  EXPECT_EQ(rig.pipeline->last_stop().given_up, 8u);
}

TEST(PipelineStop, ACallbackThatDoesNotComeBackIsReported) {
  pipeline_rig rig(quick(2, 4), 4);
  std::atomic<bool> held{true};
  std::atomic<int> inside{0};
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    if (inside++ == 0) {
      EXPECT_TRUE(eventually([&] { return !held; }));
    }
    return pipeline_rig::echo(c);
  });
  rig.pipeline->start();
  rig.submit_all();
  EXPECT_TRUE(eventually([&] { return rig.seen.all == 3; }));
  rig.pipeline->stop();
  EXPECT_EQ(rig.seen.not_once(), 0u) << "its request is answered too";
  stop_report report = rig.pipeline->last_stop();
  EXPECT_GE(report.stuck_threads, 1) << "more than one on a slow machine";
  EXPECT_NE(report.text.find("in the CPU stage"), std::string::npos) << report.text;
  EXPECT_THROW(rig.pipeline->start(), std::logic_error);
  held = false;
  stop_until_none_is_stuck(rig);
  EXPECT_EQ(rig.seen.all, 4u) << "the late answer is discarded";
  run_all_until(rig, [&] { return rig.seen.all == 8; });
  EXPECT_EQ(rig.seen.all, 8u);
  EXPECT_TRUE(rig.pipeline->last_stop().drained);
}

TEST(PipelineStop, AWorkerThatIsTooLateCallsNoStageForTheRequestsThatStopHasAnswered) {
  pipeline_rig rig(quick(1, 4), 2); // one with the worker, one in the queue
  std::atomic<bool> held{true};
  std::atomic<int> launches{0}, calls{0};
  struct gate {
    std::atomic<bool> &held;
    std::atomic<int> &launches;
  } stage{held, launches};
  rig.change_stage([&](gpu_worker_resources &r, int) {
    r.host_stage_data = &stage;
    r.host_stage_fn = [](void *self, host_stage_call *) {
      auto &g = *static_cast<gate *>(self);
      ++g.launches;
      EXPECT_TRUE(eventually([&] { return !g.held; }));
      return 0;
    };
  });
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    ++calls;
    return pipeline_rig::echo(c);
  });
  rig.pipeline->start();
  rig.submit_all();
  EXPECT_TRUE(eventually([&] { return launches == 1 && rig.pipeline->stats().dispatched == 2; }));
  rig.pipeline->stop();
  EXPECT_GE(rig.pipeline->last_stop().stuck_threads, 1);
  EXPECT_EQ(rig.seen.not_once(), 0u);
  held = false;
  EXPECT_TRUE(eventually([&] {
    rig.pipeline->stop();
    return rig.pipeline->last_stop().stuck_threads == 0;
  })) << rig.pipeline->last_stop().text;
  EXPECT_EQ(launches, 1);
  EXPECT_EQ(calls, 0);
  EXPECT_NE(rig.pipeline->dump().find(" 0 second answers"), std::string::npos) << rig.pipeline->dump();
}

TEST(PipelineStop, ADispatcherThatDoesNotStopKeepsWhatItUsesUntilANextStop) {
  pipeline_stage_config config = quick(1, 4);
  config.wait = wait_policy::block; // it sleeps, so that a signal reaches it under sanitizers too
  pipeline_rig rig(config, 4);
  std::atomic<std::uint64_t> deferred{0};
  std::atomic<std::uint64_t> generation{0};
  std::atomic<int> slot{-1};
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    pipeline_rig::echo(c);
    generation = c.generation;
    slot = c.origin_slot;
    ++deferred;
    return DEFERRED_COMPLETION;
  });
  ring_buffer_injector injector = rig.start();
  rig.submit(injector, 0);
  ASSERT_TRUE(eventually([&] { return deferred == 1; }));
  {
    paused_dispatcher paused;
    rig.submit(injector, 1); // stays in its slot
    rig.pipeline->stop();
    EXPECT_GE(rig.pipeline->last_stop().stuck_threads, 1) << rig.pipeline->last_stop().text;
    EXPECT_NE(rig.pipeline->last_stop().text.find("dispatcher"), std::string::npos);
    EXPECT_THROW(rig.pipeline->start(), std::logic_error);
    EXPECT_FALSE(rig.pipeline->complete_deferred(slot, generation, 8, 0)) << "stop has answered it";
    EXPECT_TRUE(eventually([&] { return rig.seen.all == 1; })) << "the consumer still runs";
  }
  rig.pipeline->stop();
  const stop_report report = rig.pipeline->last_stop();
  EXPECT_EQ(report.stuck_threads, 0) << report.text;
  EXPECT_EQ(report.left_over + report.given_up, 1u) << report.text;
  EXPECT_EQ(rig.seen.times[0], 1);
  rig.pipeline->set_cpu_stage([](const cpu_stage_context &c) { return pipeline_rig::echo(c); });
  rig.pipeline->start();
  rig.submit(injector, 2);
  rig.submit(injector, 3);
  EXPECT_TRUE(eventually([&] { return rig.seen.not_once() == 0; }));
  rig.pipeline->stop();
  EXPECT_EQ(rig.seen.not_once(), 0u);
  EXPECT_TRUE(rig.pipeline->last_stop().drained) << rig.pipeline->last_stop().text;
}

TEST(PipelineStop, WakesASubmitOfAPipelineThatNeverRan) {
  pipeline_rig rig(pipeline_rig::small(1, 1), 1);
  ring_buffer_injector injector = rig.pipeline->create_injector();
  rig.submit(injector, 0);
  std::thread waiting([&] { EXPECT_THROW(rig.submit(injector, 1), std::runtime_error); });
  EXPECT_TRUE(eventually([&] { return injector.backpressure_stalls() == 1; }));
  rig.pipeline->stop();
  waiting.join();
  rig.pipeline->start();
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineStop, FromACallbackIsRefused) {
  pipeline_rig rig(pipeline_rig::small(1, 2), 2);
  std::atomic<int> refused{0};
  const auto try_stop = [&] {
    try {
      rig.pipeline->stop();
    } catch (const std::logic_error &) {
      ++refused;
    }
  };
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    try_stop();
    return pipeline_rig::echo(c);
  });
  rig.pipeline->set_completion_handler([&](const completion &c) {
    try_stop();
    rig.record(c);
  });
  rig.run_all();
  EXPECT_EQ(refused, 4);
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineStop, FromTheFactoryOfAnotherPipelineThatACallbackStartsIsRefused) {
  pipeline_rig outer(pipeline_rig::small(1, 2), 1), inner(pipeline_rig::small(1, 2));
  inner.pipeline->set_gpu_stage([&](int id) {
    EXPECT_THROW(outer.pipeline->stop(), std::logic_error);
    EXPECT_THROW(inner.pipeline->stop(), std::logic_error);
    return inner.resources(id);
  });
  outer.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    inner.pipeline->start();
    inner.pipeline->stop();
    return pipeline_rig::echo(c);
  });
  outer.run_all();
  EXPECT_TRUE(outer.pipeline->last_stop().drained) << outer.pipeline->last_stop().text;
  CUDAQ_EXPECT_ALL_GOOD(outer);
}

TEST(PipelineStop, DestructorStops) {
  pipeline_rig rig(pipeline_rig::small(2, 4), 100);
  rig.pipeline->start();
  rig.submit_all();
  rig.pipeline.reset();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

} // namespace
} // namespace cudaq::qec::realtime::test
