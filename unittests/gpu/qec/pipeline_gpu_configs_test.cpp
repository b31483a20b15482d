// SPDX-License-Identifier: Apache-2.0
// Every configuration with its slot size, on a ring of the pipeline and on an external ring, with the local predecoder
// on the GPU and the matcher after it. `make_data.py --pipeline` records the larger data sets; CUDAQ_REALTIME_DATA
// names their folder.
#include "unittests/gpu/graphs/host_graph_rig.h"
#include "unittests/gpu/qec/pipeline_gpu_rig.h"

#include "lib/qec/decoding/decoding_config.h"
#include "unittests/support/program_paths.h"

namespace cudaq::realtime::test {
namespace {

struct config_case {
  std::string config;
  bool external;
};
void PrintTo(const config_case &c, std::ostream *out) { *out << c.config << (c.external ? "External" : "Own"); }

class PipelineConfigsOnGpu : public gpu_test, public ::testing::WithParamInterface<config_case> {};

TEST_P(PipelineConfigsOnGpu, EveryShotCompletesOnceAndIsDecodedAsOffline) {
  constexpr int kWorkers = 8;
  constexpr std::uint32_t kSlots = 32;
  constexpr std::uint64_t kShots = 3000;
  const qec::decoding_config &config = *qec::find_decoding_config(GetParam().config);
  const char *const folder = std::getenv("CUDAQ_REALTIME_DATA");
  const auto found =
      qec::load_shot_set(folder != nullptr ? folder : CUDAQ_TEST_DATA_DIR, config.shot_set_name("0.003"));
  if (found.failed())
    GTEST_SKIP() << found.text();
  const qec::shot_set &set = *found;
  const auto expected = offline_answers(set, *offline_worker(set, "local"));
  const qec::predecoder_layout layout{static_cast<std::uint32_t>(set.num_detectors),
                                      static_cast<std::uint32_t>(set.num_observables)};
  const auto graph = std::make_shared<const gpu::device_graph>(*qec::detector_graph::from_text(set.dem_text));
  std::vector<std::unique_ptr<gpu::predecoding_worker>> workers;
  std::vector<std::unique_ptr<qec::decoding_worker>> matchers;
  for (int id = 0; id < kWorkers; ++id) {
    workers.push_back(
        std::make_unique<gpu::predecoding_worker>(layout, graph, gpu::staging::automatic, config.slot_size));
    matchers.push_back(offline_worker(set, "local"));
  }
  const host_ring ring({kSlots, static_cast<std::uint32_t>(config.slot_size), false}, CUDAQ_MEMORY_MAPPED);
  cudaq_ringbuffer_t view = ring.ring;
  pipe::pipeline_stage_config settings = gpu_pipeline(kWorkers, kSlots, config.slot_size);
  if (GetParam().external)
    settings.external_ringbuffer = &view;
  expect_offline_answers(settings, set, stage_of(workers), matchers, expected, kShots);
}

std::vector<config_case> every_config() {
  std::vector<config_case> all;
  for (const qec::decoding_config &c : qec::kDecodingConfigs)
    for (const bool external : {false, true})
      all.push_back({std::string(c.name), external});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Configs, PipelineConfigsOnGpu, ::testing::ValuesIn(every_config()),
                         ::testing::PrintToStringParamName());

} // namespace
} // namespace cudaq::realtime::test
