// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/pipeline/foreign_ring.h"

#include <dlfcn.h>
#include <functional>
#include <stdexcept>

namespace {
/// While set, a completion that the pipeline has begun does not continue, as if its thread had lost its core.
std::atomic<bool> held{false};
std::atomic<int> inside{0};
/// Polled in cudaq_dispatcher_start when the dispatcher already serves; start returns after it is true.
std::function<bool()> start_goes_on;
} // namespace

extern "C" cudaq_status_t cudaq_host_complete_deferred(cudaq_dispatcher_t *dispatcher, const cudaq_host_job_t *job,
                                                       int32_t status, uint32_t result_len) {
  static const auto real =
      reinterpret_cast<decltype(&cudaq_host_complete_deferred)>(dlsym(RTLD_NEXT, "cudaq_host_complete_deferred"));
  ++inside;
  cudaq::qec::realtime::test::eventually([] { return !held; });
  --inside;
  return real(dispatcher, job, status, result_len);
}

extern "C" cudaq_status_t cudaq_dispatcher_start(cudaq_dispatcher_t *dispatcher) {
  static const auto real =
      reinterpret_cast<decltype(&cudaq_dispatcher_start)>(dlsym(RTLD_NEXT, "cudaq_dispatcher_start"));
  const cudaq_status_t status = real(dispatcher);
  if (start_goes_on) {
    EXPECT_TRUE(cudaq::qec::realtime::test::eventually(start_goes_on));
  }
  return status;
}

namespace cudaq::qec::realtime::test {
namespace {

class PipelineExternalRing : public testing::TestWithParam<bool> {
protected:
  pipeline_stage_config config(foreign_ring &foreign, int workers) {
    pipeline_stage_config c = pipeline_rig::small(workers, 8);
    c.external_ringbuffer = &foreign.ring;
    return c;
  }
};

// Known failure 20.
TEST_P(PipelineExternalRing, ProducerAndConsumerOutsideGetEveryAnswerOnce) {
  foreign_ring foreign(8, GetParam());
  pipeline_rig rig(config(foreign, 2), 2000);
  std::atomic<std::uint64_t> failed{0};
  rig.pipeline->set_completion_handler([&](const completion &c) {
    EXPECT_EQ(c.response, nullptr) << "the answer belongs to the consumer outside";
    ++rig.seen.times[c.request_id];
    failed += !c.success || c.slot != static_cast<int>(c.request_id % 8);
    ++rig.seen.all;
  });
  rig.pipeline->start();
  std::uint64_t sent = 0, received = 0;
  EXPECT_TRUE(eventually([&] {
    while (sent < 2000 && foreign.send(sent))
      ++sent;
    while (received < sent && foreign.receive(received))
      ++received;
    return received == 2000;
  })) << rig.pipeline->dump();
  rig.pipeline->stop();
  EXPECT_TRUE(rig.pipeline->last_stop().drained) << rig.pipeline->last_stop().text;
  EXPECT_EQ(rig.seen.not_once(), 0u);
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(rig.pipeline->stats().submitted, 2000u);
  EXPECT_EQ(rig.pipeline->stats().completed, 2000u);
}

TEST_P(PipelineExternalRing, InjectorAndGpuOnlyModeAreLogicErrors) {
  foreign_ring foreign(8, GetParam());
  pipeline_rig rig(config(foreign, 1));
  EXPECT_THROW(rig.pipeline->create_injector(), std::logic_error);
  rig.pipeline->set_cpu_stage({});
  EXPECT_THROW(rig.pipeline->start(), std::logic_error);
  EXPECT_EQ(rig.pipeline->ringbuffer_bases().rx_data_host, foreign.ring.rx_data_host);
}

// Known failure 47.
TEST_P(PipelineExternalRing, TheLastAnswersHeaderDoesNotPassForThisOnes) {
  foreign_ring foreign(8, GetParam());
  pipeline_rig rig(config(foreign, 1));
  rig.pipeline->set_cpu_stage([](const cpu_stage_context &c) -> std::size_t {
    std::uint64_t k = 0;
    std::memcpy(&k, c.gpu_output, sizeof(k));
    if (k < 8) { // in the first lap, the stage writes its own headers
      const cudaq_rpc_response_t header{CUDAQ_RPC_MAGIC_RESPONSE, 9, 0, 0, 0};
      std::memcpy(static_cast<std::uint8_t *>(c.response_buffer) - sizeof(header), &header, sizeof(header));
    }
    return FRAMED_RESPONSE;
  });
  rig.pipeline->start();
  for (std::uint64_t k = 0; k < 16; ++k) {
    ASSERT_TRUE(foreign.send(k));
    ASSERT_TRUE(eventually([&] { return foreign.receive(k, k < 8 ? 9 : CUDAQ_RPC_ERR_NO_RESPONSE); })) << k;
  }
}

TEST_P(PipelineExternalRing, ARequestThatIsServedDuringTheStartFindsNothingToConfigure) {
  foreign_ring foreign(8, GetParam());
  pipeline_rig rig(config(foreign, 1));
  std::atomic<int> refused{0};
  const auto configure = [&] {
    for (const auto &set : std::initializer_list<std::function<void()>>{
             [&] { rig.pipeline->set_gpu_stage({}); }, [&] { rig.pipeline->set_cpu_stage({}); },
             [&] { rig.pipeline->set_completion_handler({}); }})
      try {
        set();
      } catch (const std::logic_error &) {
        ++refused;
      }
  };
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    configure();
    return pipeline_rig::echo(c);
  });
  rig.pipeline->set_completion_handler([&](const completion &) { configure(); });
  ASSERT_TRUE(foreign.send(0));
  start_goes_on = [&] { return refused == 6; };
  rig.pipeline->start();
  start_goes_on = nullptr;
  EXPECT_EQ(refused, 6);
  EXPECT_TRUE(eventually([&] { return foreign.receive(0); }));
}

TEST_P(PipelineExternalRing, StopLeavesRequestsThatWereNotAcceptedToTheNextStart) {
  foreign_ring foreign(8, GetParam());
  pipeline_rig rig(config(foreign, 1));
  rig.pipeline->set_completion_handler([](const completion &) {});
  rig.pipeline->start();
  ASSERT_TRUE(foreign.send(0));
  ASSERT_TRUE(eventually([&] { return foreign.receive(0); }));
  rig.pipeline->stop();
  for (std::uint64_t k = 1; k < 6; ++k)
    ASSERT_TRUE(foreign.send(k));
  rig.pipeline->start();
  for (std::uint64_t k = 1; k < 6; ++k)
    ASSERT_TRUE(eventually([&] { return foreign.receive(k); })) << k;
}

/// One worker on an external ring, with a short grace period. Counts all completions, and separately those that stop
/// gave up.
struct short_stop {
  short_stop(bool in_place, std::size_t requests, std::uint64_t grace_period_ns)
      : foreign(8, in_place), rig(config(grace_period_ns), requests) {
    rig.pipeline->set_completion_handler([this](const completion &done) {
      ++rig.seen.times[done.request_id];
      given_up += !done.success && done.status == CUDAQ_RPC_ERR_SHUTTING_DOWN;
    });
  }
  pipeline_stage_config config(std::uint64_t grace_period_ns) {
    pipeline_stage_config c = pipeline_rig::small(1, 8);
    c.external_ringbuffer = &foreign.ring;
    c.grace_period_ns = grace_period_ns;
    return c;
  }
  /// Stops the pipeline until no thread is stuck. Returns false if a thread stays stuck.
  bool stops() {
    return eventually([&] {
      rig.pipeline->stop();
      return rig.pipeline->last_stop().stuck_threads == 0;
    });
  }

  foreign_ring foreign;
  std::atomic<int> given_up{0};
  pipeline_rig rig;
};

TEST_P(PipelineExternalRing, ACompletionThatIsUnderWayAtTheStopIsWaitedFor) {
  short_stop s(GetParam(), 1, kSecond / 20);
  std::atomic<int> slot{-1};
  s.rig.pipeline->set_cpu_stage([&](const cpu_stage_context &call) {
    slot = call.origin_slot;
    return DEFERRED_COMPLETION;
  });
  s.rig.pipeline->start();
  ASSERT_TRUE(s.foreign.send(0));
  ASSERT_TRUE(eventually([&] { return slot == 0; }));
  held = true;
  std::thread late([&] { EXPECT_NO_THROW(s.rig.pipeline->complete_deferred(0, 8)); });
  ASSERT_TRUE(eventually([&] { return inside == 1; }));
  std::thread release([&] {
    EXPECT_TRUE(eventually([&] { return s.foreign.receive(0, CUDAQ_RPC_ERR_SHUTTING_DOWN); })); // stop answers first
    std::this_thread::sleep_for(std::chrono::milliseconds(150)); // a stop that does not wait returns during this time
    held = false;
  });
  EXPECT_TRUE(s.stops()); // one stop is enough, unless the lines above take more than half a second
  EXPECT_EQ(s.rig.seen.not_once(), 0u) << "delivered before the consumer ended";
  EXPECT_EQ(s.given_up, 1);
  late.join();
  release.join();
}

TEST_P(PipelineExternalRing, AWorkerThatAnswersAfterTheStopsDeadlineIsWaitedFor) {
  short_stop s(GetParam(), 1, kSecond / 20);
  s.rig.pipeline->start();
  held = true;
  ASSERT_TRUE(s.foreign.send(0));
  ASSERT_TRUE(eventually([&] { return inside == 1; }));
  s.rig.pipeline->stop();
  EXPECT_GE(s.rig.pipeline->last_stop().stuck_threads, 1);
  EXPECT_NE(s.rig.pipeline->last_stop().text.find("worker 0 is stuck"), std::string::npos)
      << s.rig.pipeline->last_stop().text;
  EXPECT_TRUE(s.foreign.receive(0, CUDAQ_RPC_ERR_SHUTTING_DOWN));
  held = false;
  EXPECT_TRUE(eventually([&] { return s.rig.seen.not_once() == 0; })) << "the consumer still runs";
  EXPECT_TRUE(s.stops());
  EXPECT_EQ(s.rig.seen.not_once(), 0u);
  EXPECT_EQ(s.given_up, 1);
}

TEST_P(PipelineExternalRing, StagesThatFailAreAnswersAndCompletions) {
  foreign_ring foreign(8, GetParam());
  pipeline_rig rig(config(foreign, 2));
  std::vector<std::atomic<int>> times(301);
  std::atomic<std::uint64_t> wrong{0};
  rig.change_stage([&](gpu_worker_resources &r, int) { r.host_stage_fn = &copy_worker::copy_or_fail; });
  rig.pipeline->set_completion_handler([&](const completion &c) {
    static constexpr int kErrors[] = {0, copy_worker::kStageError, cudaErrorUnknown};
    const bool good = c.request_id % 3 == 0;
    ++times[c.request_id];
    wrong += c.success != good || c.cuda_error != kErrors[c.request_id % 3] ||
             c.status != (good ? 0 : CUDAQ_RPC_ERR_LAUNCH_FAILED);
  });
  rig.pipeline->start();
  for (std::uint64_t k = 0; k < 300; ++k) {
    ASSERT_TRUE(foreign.send(k));
    ASSERT_TRUE(eventually([&] { return foreign.receive(k, k % 3 == 0 ? 0 : CUDAQ_RPC_ERR_LAUNCH_FAILED); })) << k;
    ASSERT_TRUE(eventually([&] { return foreign.is_free(k); }));
  }
  ASSERT_TRUE(foreign.send(300, kFunction + 1)); // an unknown function: the dispatcher drops the request
  ASSERT_TRUE(eventually([&] { return foreign.is_free(300); }));
  rig.pipeline->stop();
  EXPECT_EQ(wrong, 0u);
  for (std::size_t k = 0; k < 300; ++k)
    ASSERT_EQ(times[k], 1) << k;
  EXPECT_EQ(times[300], 0);
  EXPECT_EQ(rig.pipeline->stats().submitted, 301u);
  EXPECT_EQ(rig.pipeline->stats().completed, 300u);
}

TEST_P(PipelineExternalRing, AHandlerThatIsLateCompletesADeferredRequestItself) {
  constexpr std::uint64_t kRoom = 1024, kDeferred = kRoom - 4, kLast = kDeferred + 7;
  foreign_ring foreign(8, GetParam());
  pipeline_rig rig(config(foreign, 1), kLast + 1);
  std::atomic<bool> go{false};
  std::atomic<std::uint64_t> generation{0};
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    std::uint64_t k = 0;
    std::memcpy(&k, c.gpu_output, sizeof(k));
    const std::size_t size = pipeline_rig::echo(c);
    if (k != kDeferred)
      return size;
    generation = c.generation;
    return DEFERRED_COMPLETION;
  });
  rig.pipeline->set_completion_handler([&](const completion &c) {
    ++rig.seen.times[c.request_id];
    if (c.request_id != 0)
      return;
    EXPECT_TRUE(eventually([&] { return go.load(); }));
    EXPECT_TRUE(rig.pipeline->complete_deferred(kDeferred % 8, generation, 8 + kDeferred % 64, 0));
  });
  rig.pipeline->start();
  std::uint64_t sent = 0, received = 0;
  ASSERT_TRUE(eventually([&] {
    while (sent <= kLast && foreign.send(sent))
      ++sent;
    while (received < std::min(sent, kDeferred) && foreign.receive(received))
      ++received;
    return sent > kLast;
  }));
  // The worker takes only as many requests as fit.
  for (std::uint64_t k = kDeferred + 1; k < kRoom; ++k)
    ASSERT_TRUE(eventually([&] { return foreign.receive(k); })) << k;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (std::uint64_t k = kRoom; k <= kLast; ++k)
    EXPECT_FALSE(foreign.receive(k)) << k;
  go = true;
  EXPECT_TRUE(eventually([&] { return rig.seen.not_once() == 0; })) << rig.pipeline->dump();
  rig.pipeline->stop();
  EXPECT_EQ(rig.pipeline->last_stop().stuck_threads, 0) << rig.pipeline->last_stop().text;
}

INSTANTIATE_TEST_SUITE_P(Rings, PipelineExternalRing, testing::Bool(),
                         [](const auto &i) { return i.param ? "InPlace" : "TwoSides"; });

} // namespace
} // namespace cudaq::qec::realtime::test
