// SPDX-License-Identifier: Apache-2.0
// What the interface of a pipeline promises: its configuration, callbacks, signals and limits.
#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "unittests/qec/pipeline/foreign_ring.h"
#include "unittests/qec/pipeline/pipeline_rig.h"
#include "unittests/support/processes/process_signals.h"

#include <climits>
#include <ctime>
#include <fstream>
#include <stdexcept>

namespace cudaq::qec::realtime::test {
namespace {

TEST(PipelineContract, DefaultsAreAsDocumented) {
  const pipeline_stage_config c;
  EXPECT_EQ(c.num_workers, 8);
  EXPECT_EQ(c.buffers, 1);
  EXPECT_EQ(c.num_slots, 32);
  EXPECT_EQ(c.slot_size, 16384u);
  EXPECT_EQ(c.cores.dispatcher, -1);
  EXPECT_EQ(c.cores.consumer, -1);
  EXPECT_EQ(c.cores.worker_base, -1);
  EXPECT_EQ(c.external_ringbuffer, nullptr);
  EXPECT_EQ(c.grace_period_ns, 5 * kSecond);
  const gpu_worker_resources r;
  EXPECT_EQ(r.graph_exec, nullptr);
  EXPECT_EQ(r.stream, nullptr);
  EXPECT_EQ(r.pre_launch_fn, nullptr);
  EXPECT_EQ(r.post_launch_fn, nullptr);
  EXPECT_EQ(r.function_id, 0u);
  EXPECT_EQ(r.user_context, nullptr);
  EXPECT_EQ(r.gpu_output, nullptr);
  EXPECT_EQ(r.ready_flag, nullptr);
  EXPECT_EQ(DEFERRED_COMPLETION, SIZE_MAX);
}

TEST(PipelineContract, StartWithoutAGpuStageIsALogicError) {
  realtime_pipeline p(pipeline_rig::small());
  p.set_cpu_stage([](const cpu_stage_context &) { return std::size_t{1}; });
  EXPECT_THROW(p.start(), std::logic_error);
}

TEST(PipelineContract, WhatTheFactoryThrowsReachesTheCallerOfStart) {
  pipeline_rig rig(pipeline_rig::small(2), 20);
  rig.pipeline->set_gpu_stage([&](int id) -> gpu_worker_resources {
    if (id == 1)
      throw std::domain_error("no second engine");
    return rig.resources(id);
  });
  EXPECT_THROW(rig.pipeline->start(), std::domain_error);
  rig.pipeline->set_gpu_stage([&](int id) { return rig.resources(id); }); // allowed: the pipeline does not run
  rig.run_all();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineContract, TheFactoryCannotChangeWhatIsBeingStarted) {
  pipeline_rig rig(pipeline_rig::small(1), 5);
  int refused = 0;
  rig.pipeline->set_gpu_stage([&](int id) {
    const auto try_to = [&](auto &&change) {
      try {
        change(*rig.pipeline);
      } catch (const std::logic_error &) {
        ++refused;
      }
    };
    try_to([](realtime_pipeline &p) { p.start(); });
    try_to([](realtime_pipeline &p) { p.stop(); });
    try_to([](realtime_pipeline &p) { p.set_gpu_stage({}); });
    try_to([](realtime_pipeline &p) { p.set_cpu_stage({}); });
    try_to([](realtime_pipeline &p) { p.set_completion_handler({}); });
    return rig.resources(id);
  });
  rig.pipeline->start();
  EXPECT_EQ(refused, 5);
  rig.submit_all();
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineContract, FactoryIsCalledOncePerWorkerAndStart) {
  pipeline_rig rig(pipeline_rig::small(3));
  std::vector<int> ids;
  rig.pipeline->set_gpu_stage([&](int id) {
    ids.push_back(id);
    return rig.resources(id);
  });
  rig.pipeline->start();
  rig.pipeline->stop();
  EXPECT_EQ(ids, (std::vector<int>{0, 1, 2}));
  rig.pipeline->start();
  rig.pipeline->stop();
  EXPECT_EQ(ids, (std::vector<int>{0, 1, 2, 0, 1, 2}));
}

TEST(PipelineContract, NothingIsConfiguredWhileItRuns) {
  pipeline_rig rig(pipeline_rig::small());
  rig.pipeline->start();
  EXPECT_THROW(rig.pipeline->start(), std::logic_error);
  EXPECT_THROW(rig.pipeline->set_gpu_stage({}), std::logic_error);
  EXPECT_THROW(rig.pipeline->set_cpu_stage({}), std::logic_error);
  EXPECT_THROW(rig.pipeline->set_completion_handler({}), std::logic_error);
  rig.pipeline->stop();
  rig.pipeline->stop();
  rig.pipeline->set_completion_handler({});
  rig.pipeline->start();
  rig.pipeline->stop();
}

TEST(PipelineContract, PayloadsThatDoNotFitAreRefusedAndTakeNoSlot) {
  pipeline_rig rig(pipeline_rig::small(1, 2, 64), 1);
  ring_buffer_injector injector = rig.pipeline->create_injector();
  const std::vector<std::uint8_t> big(41);
  EXPECT_THROW(injector.try_submit(kFunction, big.data(), 41, 7), std::invalid_argument);
  EXPECT_THROW(injector.submit(kFunction, nullptr, 1, 7), std::invalid_argument);
  EXPECT_TRUE(injector.try_submit(kFunction, big.data(), 40, 7));
  EXPECT_EQ(rig.pipeline->stats().submitted, 1u);
}

TEST(PipelineContract, InjectorsMove) {
  pipeline_rig rig(pipeline_rig::small(), 2);
  ring_buffer_injector first = rig.pipeline->create_injector();
  rig.submit(first, 0);
  ring_buffer_injector second(std::move(first));
  ring_buffer_injector third = rig.pipeline->create_injector();
  third = std::move(second);
  rig.submit(third, 1);
  rig.pipeline->start();
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineContract, BasesAreKnownBeforeStart) {
  pipeline_rig rig(pipeline_rig::small());
  EXPECT_NE(rig.pipeline->ringbuffer_bases().rx_data_host, nullptr);
  EXPECT_EQ(rig.pipeline->ringbuffer_bases().rx_data_dev, nullptr) << "plain memory";
}

// The largest and the smallest values of the configuration: durations, counts and sizes.

/// The grace period is the only duration in the configuration. Clock and period together overflow from some 290 years
/// on.
class PipelineGracePeriod : public testing::TestWithParam<std::uint64_t> {
protected:
  static pipeline_stage_config config() {
    pipeline_stage_config c = pipeline_rig::small(1, 8);
    c.grace_period_ns = GetParam();
    return c;
  }
};

// Known failure 44.
TEST_P(PipelineGracePeriod, WaitsForAllSubmittedRequests) {
  pipeline_rig rig(config(), 8);
  rig.pipeline->set_cpu_stage([](const cpu_stage_context &c) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return pipeline_rig::echo(c);
  });
  rig.run_all(); // most requests are still in the ring when stop begins
  CUDAQ_EXPECT_ALL_GOOD(rig);
  EXPECT_TRUE(rig.pipeline->last_stop().drained) << rig.pipeline->last_stop().text;
}

TEST_P(PipelineGracePeriod, WaitsForDeferredRequestsOfAnExternalRing) {
  foreign_ring foreign(8, true);
  pipeline_stage_config with_ring = config();
  with_ring.external_ringbuffer = &foreign.ring;
  pipeline_rig rig(with_ring);
  std::atomic<int> deferred{0};
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    pipeline_rig::echo(c);
    ++deferred;
    return DEFERRED_COMPLETION;
  });
  std::atomic<int> good{0};
  rig.pipeline->set_completion_handler([&](const completion &c) { good += c.success; });
  rig.pipeline->start();
  for (std::uint64_t k = 0; k < 3; ++k)
    ASSERT_TRUE(foreign.send(k));
  ASSERT_TRUE(eventually([&] { return deferred == 3; }));
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200)); // stop has begun
    for (int slot = 0; slot < 3; ++slot)
      rig.pipeline->complete_deferred(slot, 8 + static_cast<std::size_t>(slot));
  });
  rig.pipeline->stop();
  late.join();
  EXPECT_EQ(good, 3);
  EXPECT_TRUE(rig.pipeline->last_stop().drained) << rig.pipeline->last_stop().text;
  for (std::uint64_t k = 0; k < 3; ++k)
    EXPECT_TRUE(foreign.receive(k));
}

INSTANTIATE_TEST_SUITE_P(Boundaries, PipelineGracePeriod,
                         testing::Values(std::uint64_t{1} << 62, INT64_MAX - 1, INT64_MAX, std::uint64_t{1} << 63,
                                         UINT64_MAX));

/// Peak of the process's resident memory, in KiB.
std::uint64_t peak_memory_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      std::uint64_t kib = 0;
      status >> kib;
      return kib;
    }
  return 0;
}

// Known failure 50.
TEST(PipelineLimits, CountsBeyondTheirLimitAreRefusedByTheirNameAtOnceAndTakeNoMemory) {
  constexpr int kMaxSlots = 1 << 24; // as of the C API
  foreign_ring foreign(8, true);
  const std::uint64_t before = peak_memory_kib();
  ASSERT_NE(before, 0u);
  const std::clock_t begin = std::clock(); // processor time
  const auto expect_refused = [&](const char *text, auto change) {
    for (const bool external : {false, true}) {
      pipeline_stage_config c = pipeline_rig::small();
      c.external_ringbuffer = external ? &foreign.ring : nullptr;
      change(c);
      try {
        const realtime_pipeline p(c);
        ADD_FAILURE() << "accepted: " << text;
      } catch (const std::invalid_argument &e) {
        EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
      } catch (const std::exception &e) {
        ADD_FAILURE() << text << ": not std::invalid_argument: " << e.what();
      }
    }
  };
  expect_refused("num_slots is 100000000, it must be 1 to 16777216", [](auto &c) { c.num_slots = 100'000'000; });
  expect_refused("num_slots is 16777217", [](auto &c) { c.num_slots = kMaxSlots + 1; });
  expect_refused("num_slots is 2147483647", [](auto &c) { c.num_slots = INT_MAX; });
  expect_refused("num_slots is -2147483648", [](auto &c) { c.num_slots = INT_MIN; });
  expect_refused("num_workers is 2147483647", [](auto &c) { c.num_workers = INT_MAX; });
  expect_refused("num_workers is -2147483648", [](auto &c) { c.num_workers = INT_MIN; });
  expect_refused("slot_size is 18446744073709551615", [](auto &c) { c.slot_size = SIZE_MAX; });
  expect_refused("slot_size is 2147483648", [](auto &c) { c.slot_size = std::size_t{1} << 31; });
  expect_refused("slot_size is 23", [](auto &c) { c.slot_size = 23; });
  expect_refused("num_slots is 0", [](auto &c) { c.num_slots = 0; });
  expect_refused("num_workers is 0", [](auto &c) { c.num_workers = 0; });
  expect_refused("num_workers is 65", [](auto &c) { c.num_workers = 65; });
  expect_refused("buffers is 0, it must be 1 to 4", [](auto &c) { c.buffers = 0; });
  expect_refused("buffers is 2147483647", [](auto &c) { c.buffers = INT_MAX; });
  EXPECT_NO_THROW(realtime_pipeline{pipeline_rig::small(64)});
  EXPECT_LT(std::clock() - begin, 2 * CLOCKS_PER_SEC) << "10^8 slots took 13 s";
  EXPECT_LT(peak_memory_kib() - before, 64u * 1024) << "10^8 slots took 6 GB";
}

TEST(PipelineLimits, ARingThatDoesNotFitIntoMemoryIsRefusedBeforeAnythingElseIsAllocated) {
  pipeline_stage_config c = pipeline_rig::small();
  c.num_slots = 1 << 24;
  c.slot_size = std::size_t{1} << 30; // 2^54 bytes: more than an address space
  const std::uint64_t before = peak_memory_kib();
  EXPECT_THROW(realtime_pipeline{c}, std::runtime_error);
  EXPECT_LT(peak_memory_kib() - before, 64u * 1024) << "the records of the slots take 1 GB";
}

// A callback of a pipeline that ends its thread instead of returning ends the process with its name.

using cudaq::realtime::test::expect_end_of_process;

/// In the child: `prepare` sets the callback, and a request reaches it.
template <class Prepare>
auto serving(const Prepare &prepare) {
  return [&prepare] {
    pipeline_rig rig(pipeline_rig::small(1), 1);
    prepare(rig);
    rig.pipeline->start();
    rig.submit_all();
    (void)eventually([&] { return rig.pipeline->stats().completed == 1; });
  };
}

// Known failure 55.
TEST(PipelineCallbackReturnsDeathTest, OrItIsNamedAtTheEndOfTheProcess) {
  const auto stage = [](pipeline_rig &rig) {
    rig.change_stage([](gpu_worker_resources &r, int) {
      r.host_stage_fn = [](void *, host_stage_call *) -> int { pthread_exit(nullptr); };
    });
  };
  expect_end_of_process(serving(stage), "the stage of function 0x[0-9a-f]+ has ended its thread");
  const auto cpu_stage = [](pipeline_rig &rig) {
    rig.pipeline->set_cpu_stage([](const cpu_stage_context &) -> std::size_t { pthread_exit(nullptr); });
  };
  expect_end_of_process(serving(cpu_stage), "the CPU stage of function 0x[0-9a-f]+ has ended its thread");
  const auto handler = [](pipeline_rig &rig) {
    rig.pipeline->set_completion_handler([](const completion &) { pthread_exit(nullptr); });
  };
  expect_end_of_process(serving(handler), "the completion handler has ended its thread");
}

// Signals that are sent to the process of a pipeline, and threads that are cancelled in its calls.

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
