// SPDX-License-Identifier: Apache-2.0
// Recorded shots through predecoder, pipeline and matcher. Every answer is compared with an offline decode of its shot.
#include "lib/qec/stages/decoding_worker.h"
#include "unittests/qec/pipeline/pipeline_rig.h"
#include "unittests/qec/qec_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

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
