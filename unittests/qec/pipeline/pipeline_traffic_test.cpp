// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/pipeline/pipeline_rig.h"

namespace cudaq::qec::realtime::test {
namespace {

struct shape {
  int workers, slots;
};
class PipelineShapes : public testing::TestWithParam<shape> {};

TEST_P(PipelineShapes, EveryRequestCompletesOnceWithItsOwnAnswer) {
  pipeline_rig rig(pipeline_rig::small(GetParam().workers, GetParam().slots), 2000);
  rig.run_all();
  CUDAQ_EXPECT_ALL_GOOD(rig);
  EXPECT_TRUE(rig.pipeline->last_stop().drained) << rig.pipeline->last_stop().text;
  const realtime_pipeline::Stats stats = rig.pipeline->stats();
  EXPECT_EQ(stats.submitted, 2000u);
  EXPECT_EQ(stats.completed, 2000u);
  EXPECT_EQ(stats.dispatched, 2000u);
}

INSTANTIATE_TEST_SUITE_P(WorkersAndSlots, PipelineShapes,
                         testing::Values(shape{1, 1}, shape{1, 8}, shape{3, 2}, shape{2, 33}, shape{64, 128}),
                         [](const auto &i) {
                           return std::to_string(i.param.workers) + "_" + std::to_string(i.param.slots);
                         });

TEST(PipelineTraffic, SeveralInjectorsShareTheRing) {
  constexpr std::uint64_t kInjectors = 4, kEach = 800;
  pipeline_rig rig(pipeline_rig::small(2, 5), kInjectors * kEach);
  rig.pipeline->start();
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kInjectors; ++i)
    threads.emplace_back([&rig, i] {
      ring_buffer_injector injector = rig.pipeline->create_injector();
      for (std::uint64_t k = 0; k < kEach; ++k)
        rig.submit(injector, k * kInjectors + i);
    });
  for (std::thread &t : threads)
    t.join();
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineTraffic, OverloadIsBackpressureAndNotLoss) {
  pipeline_rig rig(pipeline_rig::small(1, 4), 200);
  rig.pipeline->set_cpu_stage([](const cpu_stage_context &c) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    return pipeline_rig::echo(c);
  });
  ring_buffer_injector injector = rig.start();
  for (std::uint64_t k = 0; k < 200; ++k)
    rig.submit(injector, k);
  EXPECT_GT(injector.backpressure_stalls(), 0u);
  EXPECT_LE(injector.backpressure_stalls(), 200u);
  EXPECT_EQ(rig.pipeline->stats().backpressure_stalls, injector.backpressure_stalls());
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineTraffic, TrySubmitSaysThatAllSlotsAreBusy) {
  pipeline_rig rig(pipeline_rig::small(1, 3), 3); // not started, so no thread takes the requests
  ring_buffer_injector injector = rig.pipeline->create_injector();
  std::vector<std::uint8_t> payload = payload_of(rig.first_id, 8);
  for (std::uint64_t k = 0; k < 3; ++k) {
    payload = payload_of(rig.first_id + k, 8 + k);
    EXPECT_TRUE(injector.try_submit(kFunction, payload.data(), payload.size(), rig.first_id + k));
  }
  EXPECT_FALSE(injector.try_submit(kFunction, payload.data(), payload.size(), 99));
  EXPECT_EQ(injector.backpressure_stalls(), 0u) << "only a submit waits";
  rig.pipeline->start();
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineTraffic, RequestIdsKeepTheir64Bits) {
  pipeline_rig rig(pipeline_rig::small(), 100);
  rig.first_id = UINT64_MAX - 99;
  rig.run_all();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

// Known failure 19.
TEST(PipelineTraffic, ASlowRequestDelaysNoOther) {
  pipeline_rig rig(pipeline_rig::small(2, 8), 300);
  std::atomic<bool> held{true};
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    std::uint64_t id = 0;
    std::memcpy(&id, c.gpu_output, sizeof(id));
    if (id == rig.first_id) { // the first request; later requests use the other slots
      EXPECT_TRUE(eventually([&] { return !held; }));
    }
    return pipeline_rig::echo(c);
  });
  ring_buffer_injector injector = rig.start();
  for (std::uint64_t k = 0; k < 8; ++k) // all slots; a ninth request would wait for the first
    rig.submit(injector, k);
  EXPECT_TRUE(eventually([&] { return rig.seen.all == 7; }));
  EXPECT_EQ(rig.seen.times[0], 0);
  held = false;
  for (std::uint64_t k = 8; k < 300; ++k)
    rig.submit(injector, k);
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineTraffic, WorkersOfTwoFunctionsServeTheirOwn) {
  constexpr std::uint32_t kOther = kFunction + 1;
  pipeline_rig rig(pipeline_rig::small(3, 16), 600);
  rig.change_stage([&](gpu_worker_resources &r, int id) { r.function_id = id == 0 ? kOther : kFunction; });
  ring_buffer_injector injector = rig.start();
  for (std::uint64_t k = 0; k < 600; ++k) {
    const std::vector<std::uint8_t> payload = payload_of(rig.first_id + k, 8 + k % 64);
    injector.submit(k % 3 == 0 ? kOther : kFunction, payload.data(), payload.size(), rig.first_id + k);
  }
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
  EXPECT_EQ(rig.workers[0].launches, 200u);
  EXPECT_EQ(rig.workers[1].launches + rig.workers[2].launches, 400u);
}

} // namespace
} // namespace cudaq::qec::realtime::test
