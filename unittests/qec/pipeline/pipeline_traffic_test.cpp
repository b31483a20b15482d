// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stages/decoding_worker.h"
#include "unittests/qec/pipeline/pipeline_rig.h"
#include "unittests/qec/qec_test_support.h"
#include "unittests/support/held_page.h"

namespace cudaq::qec::realtime::test {
namespace {

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

// An injector is held after it has taken its ticket and before it writes its slot. The flags show that slot as free.

using cudaq::realtime::test::held_page;

TEST(PipelineSlowInjector, NoOtherInjectorGetsItsSlot) {
  pipeline_rig rig(pipeline_rig::small(1, 2), 2);
  held_page slow(PROT_NONE, payload_of(rig.first_id, 8)); // read where the payload is copied
  std::thread injecting([&] {
    ring_buffer_injector injector = rig.pipeline->create_injector();
    EXPECT_TRUE(injector.try_submit(kFunction, slow.data(), 8, rig.first_id));
  });
  ASSERT_TRUE(eventually([] { return held_page::has_waiting_thread(); }));
  ring_buffer_injector other = rig.pipeline->create_injector();
  rig.submit(other, 1);
  const std::vector<std::uint8_t> third = payload_of(99, 8);
  EXPECT_FALSE(other.try_submit(kFunction, third.data(), third.size(), 99))
      << "slot 0 looks free, but a ticket for it was taken";
  EXPECT_EQ(rig.pipeline->stats().submitted, 1u);
  slow.release();
  injecting.join();
  rig.pipeline->start();
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

// Recorded shots through predecoder, pipeline and matcher. Every answer is compared with an offline decode of its shot.

std::unique_ptr<decoding_worker> make_worker(std::string_view engine, const shot_set &set) {
  return std::make_unique<decoding_worker>(std::move(*make_predecoder(engine, set.dem_text)),
                                           make_or_throw("auto", set.dem_text));
}

/// Decodes one shot without the pipeline.
std::vector<std::uint8_t> offline(decoding_worker &with, std::span<const std::uint8_t> shot) {
  std::vector<std::uint8_t> result(with.stage().response_bytes());
  decode_status status{};
  result.resize(with.decode(shot, result, status));
  EXPECT_EQ(status, decode_status::ok);
  return result;
}

struct decoding_case {
  std::string set, engine;
  int workers;
};

class PipelineDecoding : public testing::TestWithParam<decoding_case> {};

// Known failure 18.
TEST_P(PipelineDecoding, EveryShotCompletesOnceAndEqualsTheOfflineDecode) {
  const auto &[name, engine, num_workers] = GetParam();
  const shot_set set = load_committed(name);
  pipeline_stage_config config;
  config.num_workers = num_workers;
  config.num_slots = 16;
  config.slot_size = 4096;
  config.memory = ring_memory::host;
  std::vector<std::unique_ptr<decoding_worker>> workers;
  realtime_pipeline p(config);
  p.set_gpu_stage([&](int) { return workers.emplace_back(make_worker(engine, set))->resources(kFunction); });
  p.set_cpu_stage(&decoding_worker::match);
  std::vector<int> times(set.shots);
  std::vector<std::vector<std::uint8_t>> answers(set.shots);
  std::uint64_t failed = 0;
  p.set_completion_handler([&](const completion &c) {
    const auto *bytes = static_cast<const std::uint8_t *>(c.response);
    ++times[c.request_id];
    answers[c.request_id].assign(bytes, bytes + c.response_size);
    failed += !c.success || c.status != 0;
  });
  p.start();
  ring_buffer_injector injector = p.create_injector();
  for (std::uint64_t shot = 0; shot < set.shots; ++shot)
    injector.submit(kFunction, set.detection_row(shot).data(), set.detection_bytes(), shot);
  p.stop();
  EXPECT_TRUE(p.last_stop().drained) << p.last_stop().text;
  EXPECT_EQ(failed, 0u);

  const auto alone = make_worker(engine, set);
  std::uint64_t wrong = 0, not_predicted = 0;
  for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
    ASSERT_EQ(times[shot], 1) << shot;
    ASSERT_EQ(answers[shot], offline(*alone, set.detection_row(shot))) << shot;
    const std::uint8_t observables = answers[shot].at(sizeof(DecodeResponse));
    wrong += observables != set.observable_row(shot)[0];
    not_predicted += observables != set.prediction_row(shot)[0];
  }
  if (pymatching_available() && engine == "passthrough") {
    EXPECT_EQ(not_predicted, 0u) << "only the matcher decides";
    EXPECT_EQ(wrong, set.offline_logical_errors);
  }
}

std::vector<decoding_case> cases() {
  if (!pymatching_available())
    return {{"surface_z_d3_p0.005", "local", 3}, {"surface_z_d3_p0.005", "passthrough", 3}};
  std::vector<decoding_case> all;
  for (const char *engine : {"local", "passthrough"})
    for (const char *set : {"surface_z_d5_p0.003", "surface_z_d5_p0.005", "surface_z_d7_p0.003", "surface_z_d7_p0.005"})
      all.push_back({set, engine, 3});
  all.push_back({"surface_z_d5_p0.005", "local", 1});
  all.push_back({"surface_z_d5_p0.005", "local", 20});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Sets, PipelineDecoding, testing::ValuesIn(cases()), [](const auto &i) {
  std::string name = i.param.set + "_" + i.param.engine + "_" + std::to_string(i.param.workers);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

} // namespace
} // namespace cudaq::qec::realtime::test
